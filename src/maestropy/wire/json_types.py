"""Read typed members of JSON objects: an absent member has a default, a wrong type is an error that names the path."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from maestropy.wire import errors

Object = Mapping[str, Any]
"""A JSON object. Values of this package share such objects, so they must not be changed in place."""

# A pair of surrogates, or any other escape.
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u(?P<code>[0-9a-fA-F]{4})|.)")


def decode_object(document: bytes | str, *, label: str) -> dict[str, Any]:
    """Parse a JSON object; `label` names it in errors."""
    try:
        value = msgspec.json.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.MalformedMessage(f"failed to unmarshal {label}: {decode_problem(error, document)}") from error
    if not isinstance(value, dict):
        raise errors.MalformedMessage(f"failed to unmarshal {label}: expected a JSON object")
    return value


def decode_problem(error: Exception, document: bytes | str) -> str:
    """Return what is wrong with a document that cannot be parsed; the parser calls some of them truncated."""
    text = document if isinstance(document, str) else document.decode(errors="replace")
    if not text.strip():
        return "it is empty"
    for escape in _ESCAPE.finditer(text):
        code = escape["code"] or ""
        if "d800" <= code.lower() <= "dfff":
            return f"\\u{code} is half of a surrogate pair and no character; remove it, or write both halves"
    return str(error)[:200]


def encode(value: object) -> bytes:
    """Write a JSON value."""
    return msgspec.json.encode(value)


def object_at(parent: Object, *path: str) -> Object:
    """Return the object at `path`, empty if there is none."""
    value: Any = parent
    for depth, name in enumerate(path, start=1):
        value = value.get(name)
        if value is None:
            return {}
        # The exact type is checked first, because the check of the abstract class is many times slower.
        if type(value) is not dict and not isinstance(value, Mapping):
            raise _wrong_type(path[:depth], expected="an object")
    return value  # type: ignore[no-any-return]  # narrowed to a Mapping in every iteration


def objects_at(parent: Object, *path: str) -> Sequence[Object]:
    """Return the list of objects at `path`, empty if there is none."""
    items = _list_at(parent, path)
    for index, item in enumerate(items):
        if type(item) is not dict and not isinstance(item, Mapping):
            raise _wrong_type((*path[:-1], f"{path[-1]}[{index}]"), expected="an object")
    return items


def texts_at(parent: Object, *path: str) -> Sequence[str]:
    """Return the list of strings at `path`, empty if there is none."""
    items = _list_at(parent, path)
    if not all(isinstance(item, str) for item in items):
        raise _wrong_type(path, expected="a list of strings")
    return items


def text_map_at(parent: Object, *path: str) -> Mapping[str, str]:
    """Return the map of strings at `path`, empty if there is none."""
    members = object_at(parent, *path)
    if not all(isinstance(item, str) for item in members.values()):
        raise _wrong_type(path, expected="a map of strings")
    return members


def text_at(parent: Object, *path: str) -> str:
    """Return the string at `path`, empty if there is none."""
    value = _member_at(parent, path)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong_type(path, expected="a string")
    return value


def integer_at(parent: Object, *path: str) -> int:
    """Return the whole number at `path`, 0 if there is none."""
    value = _member_at(parent, path)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong_type(path, expected="a whole number")
    return value


def boolean_at(parent: Object, *path: str) -> bool:
    """Return the boolean at `path`, false if there is none."""
    value = _member_at(parent, path)
    if value is not None and not isinstance(value, bool):
        raise _wrong_type(path, expected="true or false")
    return bool(value)


def merged(parent: Object, changes: Object) -> dict[str, Any]:
    """Return `parent` with some members set; a member set to None is removed."""
    return {name: value for name, value in {**parent, **changes}.items() if name not in changes or value is not None}


def _member_at(parent: Object, path: tuple[str, ...]) -> Any:
    """Return the value at `path`, None if there is none."""
    return parent.get(path[0]) if len(path) == 1 else object_at(parent, *path[:-1]).get(path[-1])


def _list_at(parent: Object, path: tuple[str, ...]) -> list[Any]:
    value = _member_at(parent, path)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _wrong_type(path, expected="a list")
    return value


def _wrong_type(path: Sequence[str], *, expected: str) -> errors.MalformedMessage:
    return errors.MalformedMessage(f"{'.'.join(path)} must be {expected}")
