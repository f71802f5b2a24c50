"""Apply JSON patches, JSON merge patches and strategic merge patches to JSON values.

Pure: the input is never changed. Server-side apply is in `server_side_apply`.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from maestropy.sandbox.kubeapi.schemas.schema import Schema

Json = dict[str, Any]

_DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"
_DIRECTIVE = "$patch"


class BadPatch(Exception):
    """The patch is malformed."""


class Unprocessable(Exception):
    """The patch is well-formed but does not fit the object."""


def merge_patch(target: Any, patch: Any) -> Any:
    """Return `target` after a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def json_patch(target: Any, operations: Any) -> Any:
    """Return `target` after a JSON patch (RFC 6902)."""
    if not isinstance(operations, list):
        raise BadPatch("a JSON patch must be a list of operations")
    document = copy.deepcopy(target)
    for operation in operations:
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise BadPatch("every operation of a JSON patch needs a path")
        document = _operate(document, operation)
    return document


def _operate(document: Any, operation: Mapping[str, Any]) -> Any:
    name, path = operation.get("op"), _pointer(operation["path"])
    match name:
        case "add" | "replace" | "test" if "value" not in operation:
            raise BadPatch(f"operation {name} needs a value")
        case "add":
            return _put(document, path, copy.deepcopy(operation["value"]), replacing=False)
        case "replace":
            _read(document, path)
            return _put(document, path, copy.deepcopy(operation["value"]), replacing=True)
        case "remove":
            return _take(document, path)
        case "test":
            if _read(document, path) != operation["value"]:
                raise Unprocessable(f"testing value {operation['path']} failed: test failed")
            return document
        case "move" | "copy":
            source = _pointer(str(operation.get("from")))
            value = copy.deepcopy(_read(document, source))
            remaining = _take(document, source) if name == "move" else document
            return _put(remaining, path, value, replacing=False)
    raise BadPatch(f"unknown operation {name!r} in a JSON patch")


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise BadPatch(f"{text!r} is not a JSON pointer: it must begin with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _read(document: Any, path: Sequence[str]) -> Any:
    for part in path:
        document = _step(document, part, path)
    return document


def _step(document: Any, part: str, path: Sequence[str]) -> Any:
    shown = "/" + "/".join(path)
    if isinstance(document, dict):
        if part not in document:
            raise Unprocessable(f"{shown}: missing value: no key {part!r}")
        return document[part]
    if isinstance(document, list):
        return document[_position(document, part, shown, last=len(document) - 1)]
    raise Unprocessable(f"{shown}: nothing can lie below a scalar")


def _position(items: list[Any], part: str, shown: str, *, last: int) -> int:
    index = int(part) if part.lstrip("-").isdigit() and part.isascii() else None
    if index is not None and index < 0:
        index += len(items)
    if index is None or not 0 <= index <= last:
        raise Unprocessable(f"{shown}: {part!r} is no index of this list")
    return index


def _put(document: Any, path: Sequence[str], value: Any, *, replacing: bool) -> Any:
    if not path:
        return value
    parent, part = _read(document, path[:-1]), path[-1]
    shown = "/" + "/".join(path)
    if isinstance(parent, dict):
        parent[part] = value
    elif isinstance(parent, list) and replacing:
        parent[_position(parent, part, shown, last=len(parent) - 1)] = value
    elif isinstance(parent, list):
        parent.insert(len(parent) if part == "-" else _position(parent, part, shown, last=len(parent)), value)
    else:
        raise Unprocessable(f"{shown}: nothing can lie below a scalar")
    return document


def _take(document: Any, path: Sequence[str]) -> Any:
    if not path:
        return None
    parent, part = _read(document, path[:-1]), path[-1]
    _step(parent, part, path)
    if isinstance(parent, list):
        del parent[_position(parent, part, "/" + "/".join(path), last=len(parent) - 1)]
    else:
        del parent[part]
    return document


def strategic_patch(target: Any, patch: Any, schema: Schema) -> Any:
    """Return `target` after a strategic merge patch; `schema` defines which lists merge and by what key."""
    if not isinstance(patch, dict):
        raise BadPatch("a strategic merge patch must be an object")
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise BadPatch(f"unknown patch directive {directive!r}")
    result = dict(target) if isinstance(target, dict) else {}
    if _RETAIN in patch:
        result = {name: value for name, value in result.items() if name in patch[_RETAIN]}
    for name, value in patch.items():
        _patch_field(result, name, value, schema)
    for name, order in patch.items():
        if name.startswith(_ORDER):
            _reorder(result, name.removeprefix(_ORDER), order, schema)
    return result


def _patch_field(result: Json, name: str, value: Any, schema: Schema) -> None:
    if name.startswith(_DELETE_PRIMITIVES):
        field = name.removeprefix(_DELETE_PRIMITIVES)
        if isinstance(result.get(field), list):
            result[field] = [item for item in result[field] if item not in value]
    elif name.startswith("$"):
        return
    elif value is None:
        result.pop(name, None)
    else:
        result[name] = _patch_value(result.get(name), value, schema.child(name))


def _patch_value(current: Any, value: Any, schema: Schema) -> Any:
    if isinstance(value, dict):
        return strategic_patch(current, value, schema)
    if isinstance(value, list) and schema.merge_key is not None:
        return _patch_list(current if isinstance(current, list) else [], value, schema)
    return value


def _patch_list(current: list[Any], patch: list[Any], schema: Schema) -> list[Any]:
    key = schema.merge_key
    if not key:
        return [*current, *(item for item in patch if item not in current)]
    if any(isinstance(item, dict) and item.get(_DIRECTIVE) == "replace" for item in patch):
        return [item for item in patch if item.get(_DIRECTIVE) != "replace"]
    result = list(current)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise BadPatch(f"map: {item} does not contain declared merge key: {key}")
        indexes = [index for index, existing in enumerate(result) if existing.get(key) == item[key]]
        if item.get(_DIRECTIVE) == "delete":
            result = [existing for existing in result if existing.get(key) != item[key]]
        elif indexes:
            result[indexes[0]] = strategic_patch(result[indexes[0]], item, schema.item)
        else:
            result.append(strategic_patch({}, item, schema.item))
    return result


def _reorder(result: Json, field: str, order: Any, schema: Schema) -> None:
    """Reorder the items that `order` lists among their own positions; the other items keep their positions."""
    items = result.get(field)
    key = schema.child(field).merge_key
    if not isinstance(items, list) or not isinstance(order, list):
        return

    def identity(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    ordered = [identity(entry) for entry in order]
    positions = [index for index, item in enumerate(items) if identity(item) in ordered]
    ranked = sorted((items[index] for index in positions), key=lambda item: ordered.index(identity(item)))
    arranged = list(items)
    for index, item in zip(positions, ranked, strict=True):
        arranged[index] = item
    result[field] = arranged
