"""Save the objects of a cluster to one file, and load them at the next start."""

from pathlib import Path

import orjson

from maestropy.sandbox.errors import SandboxError
from maestropy.sandbox.kubeapi.schemas import crd_kinds
from maestropy.sandbox.kubeapi.schemas.kinds import Registry
from maestropy.sandbox.kubeapi.storage.deletion import DEFINITIONS
from maestropy.sandbox.kubeapi.storage.store import ObjectStore

_FILE = "objects.json"


def save(directory: Path, store: ObjectStore) -> None:
    """Write all objects. The file is replaced atomically."""
    objects = [
        {"group": stored.resource[0], "plural": stored.resource[1], "object": stored.obj}
        for stored in store.all_objects()
    ]
    content = orjson.dumps({"version": store.version, "objects": objects})
    draft = directory / f"{_FILE}.new"
    draft.touch(mode=0o600)
    draft.write_bytes(content)
    draft.replace(directory / _FILE)


def load(directory: Path, store: ObjectStore, registry: Registry) -> None:
    """Load the saved objects and register their custom kinds; do nothing if there is no file."""
    path = directory / _FILE
    if not path.exists():
        return
    try:
        content = orjson.loads(path.read_bytes())
        entries = [((entry["group"], entry["plural"]), entry["object"]) for entry in content["objects"]]
        version = int(content["version"])
    except (ValueError, KeyError, TypeError) as error:
        raise SandboxError(
            f"{path} cannot be read as saved objects; delete it to start with an empty cluster"
        ) from error
    store.load(entries, version)
    for stored in store.select(DEFINITIONS):
        spec = stored.obj["spec"]
        registry.replace_custom(spec["group"], spec["names"]["plural"], crd_kinds.kinds_of(stored.obj))
