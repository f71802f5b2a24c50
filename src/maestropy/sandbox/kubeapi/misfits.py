"""Does an applied object fit its schema? Server-side apply refuses unknown fields and wrong types first of all."""

from typing import Any

from maestropy.sandbox.kubeapi.schema import Schema

_SCALARS: dict[str, tuple[tuple[type, ...], str]] = {
    "integer": ((int, float), "numeric (int or float)"),
    "number": ((int, float), "numeric (int or float)"),
    "boolean": ((bool,), "boolean"),
    "string": ((str,), "string"),
}


def find(wish: Any, schema: Schema, path: str = "") -> str | None:
    """Return the first field of `wish` that its schema does not know or cannot hold."""
    if wish is None or schema.type == "any":
        return None
    if schema.type in ("object", "map"):
        return _in_map(wish, schema, path)
    if schema.type == "list":
        return _in_list(wish, schema, path)
    if schema.type in _SCALARS:
        accepted, name = _SCALARS[schema.type]
        if not isinstance(wish, accepted) or (isinstance(wish, bool) and schema.type != "boolean"):
            return f"{path}: expected {name}, got {_quoted(wish)}"
    return None


def _in_map(wish: Any, schema: Schema, path: str) -> str | None:
    if not isinstance(wish, dict):
        return f"{path}: expected map, got {_quoted(wish)}"
    for name, child in wish.items():
        if schema.type == "object" and name not in schema.fields and not schema.preserve_unknown:
            return f"{path}.{name}: field not declared in schema"
        if fault := find(child, schema.child(name), f"{path}.{name}"):
            return fault
    return None


def _in_list(wish: Any, schema: Schema, path: str) -> str | None:
    if not isinstance(wish, list):
        return f"{path}: expected list, got {_quoted(wish)}"
    faults = (find(item, schema.item, f"{path}[{index}]") for index, item in enumerate(wish))
    return next((fault for fault in faults if fault), None)


def _quoted(value: Any) -> str:
    names = {str: "string", bool: "boolean", dict: "map", list: "list"}
    return names.get(type(value), "number")
