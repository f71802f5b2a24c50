"""Read and change the replicas of an object through its scale subresource. Pure."""

from collections.abc import Mapping
from typing import Any

from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind

Json = dict[str, Any]


def view(kind: ServedKind, obj: Json) -> Json:
    """Return the Scale of an object."""
    assert kind.scale is not None
    spec_path, present, selector = kind.scale
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Json = {"replicas": _read(obj, present) or 0}
    chosen = _read(obj, "spec.selector") if not kind.is_custom else _read(obj, selector)
    if chosen:
        status["selector"] = chosen if isinstance(chosen, str) else _text(chosen)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"replicas": _read(obj, spec_path) or 0},
        "status": status,
    }


def changed(kind: ServedKind, obj: Json, scale: Mapping[str, Any]) -> Json:
    """Return an object with the replicas of a Scale."""
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
