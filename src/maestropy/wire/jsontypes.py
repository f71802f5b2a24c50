"""Reading JSON objects with types: what is absent has a default, what has the wrong type is refused by its path."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from maestropy.wire import errors

Object = Mapping[str, Any]
"""A JSON object. Values of this package share such objects, so nobody may change one in place."""


def decode_object(document: bytes | str, *, what: str) -> dict[str, Any]:
    """Parse a JSON object; `what` names it in the error."""
    try:
        found = msgspec.json.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.Malformed(f"failed to unmarshal {what}: {str(error)[:200]}") from error
    if not isinstance(found, dict):
        raise errors.Malformed(f"failed to unmarshal {what}: expected a JSON object")
    return found


def encode(value: object) -> bytes:
    """Write a JSON value."""
    return msgspec.json.encode(value)


def object_at(parent: Object, *path: str) -> Object:
    """Return the object at `path`, empty if there is none."""
    found: Any = parent
    for depth, name in enumerate(path, start=1):
        found = found.get(name)
        if found is None:
            return {}
        # Nearly always; asking the abstract class is many times slower.
        if type(found) is not dict and not isinstance(found, Mapping):
            raise _wrong_type(path[:depth], expected="an object")
    return found  # type: ignore[no-any-return]  # narrowed to a Mapping on every round


def objects_at(parent: Object, *path: str) -> Sequence[Object]:
    """Return the list of objects at `path`, empty if there is none."""
    found = _list_at(parent, path)
    for index, item in enumerate(found):
        if type(item) is not dict and not isinstance(item, Mapping):
            raise _wrong_type((*path[:-1], f"{path[-1]}[{index}]"), expected="an object")
    return found


def texts_at(parent: Object, *path: str) -> Sequence[str]:
    """Return the list of strings at `path`, empty if there is none."""
    found = _list_at(parent, path)
    if not all(isinstance(item, str) for item in found):
        raise _wrong_type(path, expected="a list of strings")
    return found


def text_map_at(parent: Object, *path: str) -> Mapping[str, str]:
    """Return the map of strings at `path`, empty if there is none."""
    found = object_at(parent, *path)
    if not all(isinstance(item, str) for item in found.values()):
        raise _wrong_type(path, expected="a map of strings")
    return found


def text_at(parent: Object, *path: str) -> str:
    """Return the string at `path`, empty if there is none."""
    found = _member_at(parent, path)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise _wrong_type(path, expected="a string")
    return found


def integer_at(parent: Object, *path: str) -> int:
    """Return the whole number at `path`, 0 if there is none."""
    found = _member_at(parent, path)
    if found is None:
        return 0
    if isinstance(found, bool) or not isinstance(found, int):
        raise _wrong_type(path, expected="a whole number")
    return found


def boolean_at(parent: Object, *path: str) -> bool:
    """Return the truth value at `path`, false if there is none."""
    found = _member_at(parent, path)
    if found is not None and not isinstance(found, bool):
        raise _wrong_type(path, expected="true or false")
    return bool(found)


def merged(parent: Object, changes: Object) -> dict[str, Any]:
    """Return `parent` with some members set; a member set to None is removed."""
    return {name: value for name, value in {**parent, **changes}.items() if name not in changes or value is not None}


def _member_at(parent: Object, path: tuple[str, ...]) -> Any:
    """Return whatever is at `path`."""
    return parent.get(path[0]) if len(path) == 1 else object_at(parent, *path[:-1]).get(path[-1])


def _list_at(parent: Object, path: tuple[str, ...]) -> list[Any]:
    found = _member_at(parent, path)
    if found is None:
        return []
    if not isinstance(found, list):
        raise _wrong_type(path, expected="a list")
    return found


def _wrong_type(path: Sequence[str], *, expected: str) -> errors.Malformed:
    return errors.Malformed(f"{'.'.join(path)} must be {expected}")
