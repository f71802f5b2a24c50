"""Decode an object of a built-in kind: drop unknown fields and nulls, reject wrong types.

Custom resources are pruned and validated by their own schema, in `crd_schema`.
"""

import math
from typing import Any

from maestropy.sandbox.kubeapi.schemas.schema import Schema

Json = dict[str, Any]


class WrongType(Exception):
    """A value does not have the type of its field."""


_GO_NAMES = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
_ACCEPTED: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "map": (dict,),
    "list": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "int-or-string": (int, str),
    "quantity": (int, float, str),
}
_GO_TYPES = {"integer": "int32", "boolean": "bool", "string": "string", "number": "float64"}


def typed(value: Any, schema: Schema, *, path: str = "", unknown: list[str] | None = None) -> Any:
    """Return `value` as the API server stores it; the paths of dropped fields are added to `unknown`."""
    if schema.type == "any":
        return value
    _check(value, schema, path)
    if schema.type == "object":
        return _struct(value, schema, path=path, unknown=unknown)
    if schema.type == "map":
        return {
            name: typed(child, schema.item, path=f"{path}.{name}", unknown=unknown)
            for name, child in value.items()
            if child is not None or schema.item.type != "any"
        }
    if schema.type == "list":
        return [
            typed(item, schema.item, path=f"{path}[{index}]", unknown=unknown)
            for index, item in enumerate(value)
            if item is not None
        ]
    return _quantity(value) if schema.type == "quantity" else value


def _quantity(value: float | str) -> str:
    """Return a quantity as it is stored: a number becomes a string, a fraction is in thousandths."""
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) else f"{math.ceil(value * 1000)}m"


def _struct(value: Json, schema: Schema, *, path: str, unknown: list[str] | None) -> Json:
    kept = {}
    for name, child in value.items():
        field = schema.fields.get(name)
        below = f"{path}.{name}" if path else name
        if field is None:
            if unknown is not None:
                unknown.append(below)
        elif child is not None and not _is_omitted(name, child, schema):
            kept[name] = typed(child, field, path=below, unknown=unknown)
    for name in schema.always_written:
        kept.setdefault(name, typed({}, schema.fields[name]))
    for name in schema.written_as_null:
        kept.setdefault(name, None)
    return kept


def _is_omitted(name: str, value: Any, schema: Schema) -> bool:
    """Whether Go omits the value: empty lists and maps of optional fields, and zero with `omitempty`."""
    if name in schema.omitted_when_zero:
        return value in ("", 0) and not isinstance(value, (list, dict))
    optional = name not in schema.required
    return optional and value in ([], {}) and schema.fields[name].type in ("list", "map")


def _check(value: Any, schema: Schema, path: str) -> None:
    accepted = _ACCEPTED[schema.type]
    # In Python True is an int; in Kubernetes it is not a number.
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
        expected = _GO_TYPES.get(schema.type, schema.type)
        actual = _GO_NAMES.get(type(value), "null")
        raise WrongType(f"json: cannot unmarshal {actual} into Go struct field {path} of type {expected}")
