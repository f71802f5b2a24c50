"""Find the first field of an apply configuration that its schema does not declare or cannot hold. Pure."""

from typing import Any

from maestropy.sandbox.kubeapi.schemas.schema import Schema

_SCALARS: dict[str, tuple[tuple[type, ...], str]] = {
    "integer": ((int, float), "numeric (int or float)"),
    "number": ((int, float), "numeric (int or float)"),
    "boolean": ((bool,), "boolean"),
    "string": ((str,), "string"),
}


def find(value: Any, schema: Schema, path: str = "") -> str | None:
    """Return the first schema error in `value`; None if it fits."""
    if value is None or schema.type == "any":
        return None
    if schema.type in ("object", "map"):
        return _in_map(value, schema, path)
    if schema.type == "list":
        return _in_list(value, schema, path)
    if schema.type in _SCALARS:
        accepted, name = _SCALARS[schema.type]
        if not isinstance(value, accepted) or (isinstance(value, bool) and schema.type != "boolean"):
            return f"{path}: expected {name}, got {_quoted(value)}"
    return None


def _in_map(value: Any, schema: Schema, path: str) -> str | None:
    if not isinstance(value, dict):
        return f"{path}: expected map, got {_quoted(value)}"
    for name, child in value.items():
        if schema.type == "object" and name not in schema.fields and not schema.preserve_unknown:
            return f"{path}.{name}: field not declared in schema"
        if fault := find(child, schema.child(name), f"{path}.{name}"):
            return fault
    return None


def _in_list(value: Any, schema: Schema, path: str) -> str | None:
    if not isinstance(value, list):
        return f"{path}: expected list, got {_quoted(value)}"
    faults = (find(item, schema.item, f"{path}[{index}]") for index, item in enumerate(value))
    return next((fault for fault in faults if fault), None)


def _quoted(value: Any) -> str:
    names = {str: "string", bool: "boolean", dict: "map", list: "list"}
    return names.get(type(value), "number")
