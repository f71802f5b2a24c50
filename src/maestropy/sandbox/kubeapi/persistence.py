"""Keeps the objects of a cluster in one file between two runs."""

from pathlib import Path

import orjson

from maestropy.sandbox.errors import SandboxError
from maestropy.sandbox.kubeapi import crds
from maestropy.sandbox.kubeapi.deleting import DEFINITIONS
from maestropy.sandbox.kubeapi.kinds import Registry
from maestropy.sandbox.kubeapi.store import Store

_FILE = "objects.json"


def save(directory: Path, store: Store) -> None:
    """Write all objects; the file is whole or the old one."""
    objects = [
        {"group": each.resource[0], "plural": each.resource[1], "object": each.obj} for each in store.everything()
    ]
    content = orjson.dumps({"version": store.version, "objects": objects})
    draft = directory / f"{_FILE}.new"
    draft.touch(mode=0o600)
    draft.write_bytes(content)
    draft.replace(directory / _FILE)


def load(directory: Path, store: Store, registry: Registry) -> None:
    """Take in what was saved, custom kinds included; nothing was saved: nothing happens."""
    path = directory / _FILE
    if not path.exists():
        return
    try:
        content = orjson.loads(path.read_bytes())
        entries = [((each["group"], each["plural"]), each["object"]) for each in content["objects"]]
        version = int(content["version"])
    except (ValueError, KeyError, TypeError) as error:
        raise SandboxError(
            f"{path} cannot be read as saved objects; delete it to start with an empty cluster"
        ) from error
    store.load(entries, version)
    for stored in store.select(DEFINITIONS):
        spec = stored.obj["spec"]
        registry.replace_custom(spec["group"], spec["names"]["plural"], crds.kinds_of(stored.obj))
