"""Find fields of an object that nobody reads, and suggest the field that was meant.

A misspelt option is worse than a missing one: a work with `executor` for `executer` would be applied with all the
permissions of the agent. Pure.
"""

import difflib
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any, get_args

import msgspec

from maestropy.wire import kubernetes_names

_COMPARED_CHARACTERS = 64
_ALIKE = 0.6


def problems(value: object, shape: type[msgspec.Struct], *, path: str = "") -> Iterator[str]:
    """Yield a problem for each field of a decoded JSON value that `shape` does not have, at any depth."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from problems(item, shape, path=f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    known = _fields(shape)
    for name, member in value.items():
        if name not in known:
            yield problem(name, known, path=path)
        elif (inner := known[name]) is not None:
            yield from problems(member, inner, path=f"{path}.{name}" if path else name)


def problem(name: str, known: Collection[str], *, path: str = "") -> str:
    """Return what is wrong with a field, with the nearest known field."""
    meant = nearest(name, known)
    hint = f"did you mean {kubernetes_names.quote(meant)}?" if meant else f"known fields are {', '.join(known)}"
    return f"unknown field {kubernetes_names.quote(f'{path}.{name}' if path else name)}, {hint}"


def nearest(name: str, known: Collection[str]) -> str:
    """Return the known field that is most like `name`, or an empty string."""
    shortened = name[:_COMPARED_CHARACTERS].lower()
    by_lower = {field.lower(): field for field in known}
    matches = difflib.get_close_matches(shortened, by_lower, n=1, cutoff=_ALIKE)
    return by_lower[matches[0]] if matches else ""


@lru_cache(maxsize=64)
def _fields(shape: type[msgspec.Struct]) -> dict[str, type[msgspec.Struct] | None]:
    """Return the JSON names of the fields, with the shape of those that are objects or lists of objects."""
    return {field.encode_name: _inner_shape(field.type) for field in msgspec.structs.fields(shape)}


def _inner_shape(annotation: Any) -> type[msgspec.Struct] | None:
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    return next((shape for part in get_args(annotation) if (shape := _inner_shape(part)) is not None), None)
