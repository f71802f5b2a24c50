"""Prune, default and validate custom resources by their structural `openAPIV3Schema`.

Covers types, required fields, enumerations, patterns, bounds and nullability. CEL validation rules are not evaluated:
an object that a real cluster would reject for one of them is accepted here.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

from maestropy.sandbox.kubeapi.errors import Cause
from maestropy.sandbox.kubeapi.rules.validation import invalid_value, required, show, unsupported

Json = dict[str, Any]
_ROOT = ("apiVersion", "kind", "metadata")
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def pruned(obj: Json, definition: Mapping[str, Any], *, unknown: list[str] | None = None) -> Json:
    """Return `obj` without the fields that its schema does not specify; their paths are added to `unknown`."""
    body = {name: value for name, value in obj.items() if name not in _ROOT}
    dropped: list[str] = []
    body = _prune(body, definition, "", dropped)
    if unknown is not None:
        unknown.extend(dropped)
    return {**{name: obj[name] for name in _ROOT if name in obj}, **body}


def _prune(value: Any, definition: Mapping[str, Any], path: str, dropped: list[str]) -> Any:
    if isinstance(value, list):
        item = definition.get("items") or {}
        return [_prune(child, item, f"{path}[{index}]", dropped) for index, child in enumerate(value)]
    if not isinstance(value, dict):
        return value
    properties = definition.get("properties") or {}
    values = definition.get("additionalProperties")
    preserve = definition.get("x-kubernetes-preserve-unknown-fields")
    embedded = _ROOT if definition.get("x-kubernetes-embedded-resource") else ()
    kept = {}
    for name, child in value.items():
        below = f"{path}.{name}" if path else name
        if name in properties:
            kept[name] = _prune(child, properties[name], below, dropped)
        elif isinstance(values, Mapping):
            kept[name] = _prune(child, values, below, dropped)
        elif values or preserve or name in embedded:
            kept[name] = child
        else:
            dropped.append(below)
    return kept


def completed(value: Any, definition: Mapping[str, Any]) -> Any:
    """Return `value` with the defaults of its schema, also in place of nulls that are not nullable."""
    if isinstance(value, list):
        return [completed(child, definition.get("items") or {}) for child in value]
    if not isinstance(value, dict):
        return value
    properties = definition.get("properties") or {}
    values = definition.get("additionalProperties")
    result = {}
    for name, child in value.items():
        part = properties.get(name) or (values if isinstance(values, Mapping) else {})
        if child is None and "default" in part and not part.get("nullable"):
            continue
        result[name] = completed(child, part)
    for name, part in properties.items():
        if name not in result and "default" in part:
            result[name] = completed(copy.deepcopy(part["default"]), part)
    return result


def causes(value: Any, definition: Mapping[str, Any], path: str = "") -> Iterator[Cause]:
    """Yield the validation errors of `value`."""
    if value is None:
        if not definition.get("nullable") and definition.get("type"):
            message = f'Invalid value: "null": {path} in body must be of type {definition["type"]}: "null"'
            yield Cause(field=path, message=message, reason="FieldValueTypeInvalid")
        return
    expected = definition.get("type")
    if expected and not _is(value, expected):
        message = f"Invalid value: {show(_kind_name(value))}: {path} in body must be of type {expected}: "
        yield Cause(field=path or "<nil>", message=message + show(_kind_name(value)), reason="FieldValueTypeInvalid")
        return
    if "enum" in definition and value not in definition["enum"]:
        yield unsupported(path, value, [str(choice) for choice in definition["enum"]])
    if isinstance(value, dict):
        yield from _object_causes(value, definition, path)
    elif isinstance(value, list):
        yield from _list_causes(value, definition, path)
    elif isinstance(value, str):
        yield from _text_causes(value, definition, path)
    elif not isinstance(value, bool):
        yield from _number_causes(value, definition, path)


def _is(value: Any, expected: str) -> bool:
    if isinstance(value, bool):
        return expected == "boolean"
    if expected == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(expected, (object,)))


def _kind_name(value: Any) -> str:
    return next((name for name in _TYPES if _is(value, name)), "null")


def _object_causes(value: Json, definition: Mapping[str, Any], path: str) -> Iterator[Cause]:
    prefix = f"{path}." if path else ""
    for name in definition.get("required") or ():
        if name not in value:
            yield required(f"{prefix}{name}")
    properties = definition.get("properties") or {}
    values = definition.get("additionalProperties")
    for name, child in value.items():
        if not path and name in _ROOT:
            continue
        part = properties.get(name) or (values if isinstance(values, Mapping) else None)
        if part:
            yield from causes(child, part, f"{prefix}{name}")
    if len(value) > definition.get("maxProperties", len(value)):
        yield invalid_value(path, "object", f"must have at most {definition['maxProperties']} items")


def _list_causes(value: list[Any], definition: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for index, child in enumerate(value):
        yield from causes(child, definition.get("items") or {}, f"{path}[{index}]")
    if len(value) > definition.get("maxItems", len(value)):
        yield Cause(
            field=path,
            message=f"Too many: {len(value)}: must have at most {definition['maxItems']} items",
            reason="FieldValueTooMany",
        )
    if len(value) < definition.get("minItems", 0):
        yield invalid_value(path, len(value), f"{path} in body should have at least {definition['minItems']} items")


def _text_causes(value: str, definition: Mapping[str, Any], path: str) -> Iterator[Cause]:
    pattern = definition.get("pattern")
    if pattern and not re.search(pattern, value):
        yield invalid_value(path, value, f"{path} in body should match '{pattern}'")
    if len(value) > definition.get("maxLength", len(value)):
        message = f"Too long: may not be more than {definition['maxLength']} bytes"
        yield Cause(field=path, message=message, reason="FieldValueTooLong")
    if len(value) < definition.get("minLength", 0):
        yield invalid_value(path, value, f"{path} in body should be at least {definition['minLength']} chars long")


def _number_causes(value: float, definition: Mapping[str, Any], path: str) -> Iterator[Cause]:
    if "minimum" in definition and value < definition["minimum"]:
        yield invalid_value(path, value, f"{path} in body should be greater than or equal to {definition['minimum']}")
    if "maximum" in definition and value > definition["maximum"]:
        yield invalid_value(path, value, f"{path} in body should be less than or equal to {definition['maximum']}")
