"""What of a sent object does the API keep? Unknown fields, nulls and wrong types of built-in kinds.

Typed kinds drop what they do not know; custom kinds are judged by their own schema (`crdschema`).
"""

from typing import Any

from maestropy.sandbox.kubeapi.schema import Schema

Json = dict[str, Any]


class WrongType(Exception):
    """A value cannot be read as the type its field has."""


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
    """Return `value` as the API would keep it; the paths of dropped fields are added to `unknown`."""
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
    return value


def _struct(value: Json, schema: Schema, *, path: str, unknown: list[str] | None) -> Json:
    kept = {}
    for name, child in value.items():
        field = schema.fields.get(name)
        below = f"{path}.{name}" if path else name
        if field is None:
            if unknown is not None:
                unknown.append(below)
        elif child is not None and not _is_left_out(name, child, schema):
            kept[name] = typed(child, field, path=below, unknown=unknown)
    for name in schema.always_there:
        kept.setdefault(name, typed({}, schema.fields[name]))
    for name in schema.written_as_null:
        kept.setdefault(name, None)
    return kept


def _is_left_out(name: str, value: Any, schema: Schema) -> bool:
    """Whether a value is as good as none: empty lists and maps of optional fields are, and zero where Go omits it."""
    if name in schema.left_out:
        return value in ("", 0) and not isinstance(value, (list, dict))
    optional = name not in schema.required
    return optional and value in ([], {}) and schema.fields[name].type in ("list", "map")


def _check(value: Any, schema: Schema, path: str) -> None:
    accepted = _ACCEPTED[schema.type]
    # Python takes True for a number; Kubernetes does not.
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
        wanted = _GO_TYPES.get(schema.type, schema.type)
        found = _GO_NAMES.get(type(value), "null")
        raise WrongType(f"json: cannot unmarshal {found} into Go struct field {path} of type {wanted}")
