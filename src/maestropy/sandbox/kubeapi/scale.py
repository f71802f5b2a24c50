"""How does `/scale` show and change the replicas of an object? Pure."""

from collections.abc import Mapping
from typing import Any

from maestropy.sandbox.kubeapi.kinds import Kind

Json = dict[str, Any]


def view(kind: Kind, obj: Json) -> Json:
    """Return the Scale of an object."""
    assert kind.scale is not None
    wanted, present, selector = kind.scale
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Json = {"replicas": _read(obj, present) or 0}
    chosen = _read(obj, "spec.selector") if not kind.custom else _read(obj, selector)
    if chosen:
        status["selector"] = chosen if isinstance(chosen, str) else _text(chosen)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"replicas": _read(obj, wanted) or 0},
        "status": status,
    }


def changed(kind: Kind, obj: Json, scale: Mapping[str, Any]) -> Json:
    """Return an object with the replicas of a Scale that was sent for it."""
    assert kind.scale is not None
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    version = (scale.get("metadata") or {}).get("resourceVersion")
    metadata = {**obj["metadata"]} | ({"resourceVersion": version} if version else {})
    return {**_write(obj, kind.scale[0].split("."), replicas), "metadata": metadata}


def _read(obj: Any, path: str) -> Any:
    if not path:
        return None
    for name in path.split("."):
        obj = obj.get(name) if isinstance(obj, Mapping) else None
    return obj


def _write(obj: Json, path: list[str], value: Any) -> Json:
    head, *rest = path
    return {**obj, head: _write(obj.get(head) or {}, rest, value) if rest else value}


def _text(selector: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items()))
