"""Find values that JSON cannot carry, or that Kubernetes would change, and name their paths.

The encoder writes NaN and infinity as null, bytes as base64, a set as a list in no order and the key 1 as "1";
Kubernetes reads an integer beyond 64 bits as a float; half of a surrogate pair has no UTF-8. Pure.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Set
from typing import Any, Final

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_HALF_PAIR: Final = "holds half of a surrogate pair, which has no UTF-8: write the whole character"
_MOST_INTEGER: Final = 2**63 - 1
_MOST_PROBLEMS: Final = 10
_DEPTH: Final = 300
"""Deeper than any object of Kubernetes; a walk through more levels reaches Python's limit of recursion."""
_NOT_JSON: Final = {
    bytes: "is bytes, and JSON has none: use a string, such as the base64 of them",
    bytearray: "is a bytearray, and JSON has none: use a string, such as the base64 of it",
    Set: "is a set, and JSON has none: use a list",
}


def problems(value: object, *, path: str = "") -> list[str]:
    """Return the first problems of a value, each with the path and the remedy."""
    found = []
    for problem in _problems(value, path, holders=set()):
        found.append(problem)
        if len(found) == _MOST_PROBLEMS:
            break
    return found


def identity_problems(manifest: Mapping[str, Any], *, path: str) -> list[str]:
    """Return which names of a manifest are not strings; the server would say that they are not set."""
    metadata = manifest.get("metadata")
    fields = {"apiVersion": manifest.get("apiVersion"), "kind": manifest.get("kind")}
    if isinstance(metadata, Mapping):
        fields |= {f"metadata.{name}": metadata.get(name) for name in ("name", "namespace")}
    return [
        f'{path}.{name} is {json.dumps(value)}, not a string: quote it ("{value}")'
        for name, value in fields.items()
        if isinstance(value, (bool, int, float))
    ]


def _problems(value: Any, path: str, *, holders: set[int]) -> Iterator[str]:
    """Yield the problems of a value; `holders` are the objects and lists that it is in."""
    if isinstance(value, (Mapping, list, tuple)):
        if id(value) in holders:
            yield f"{path} holds itself, which JSON cannot carry: use a copy"
        elif len(holders) > _DEPTH:
            yield f"{path[:100]}… is nested more than {_DEPTH} levels deep: nest it less"
        else:
            holders.add(id(value))
            yield from _member_problems(value, path, holders=holders)
            holders.discard(id(value))
    elif reason := _reason(value):
        yield f"{path or 'the document'} {reason}"


def _member_problems(
    value: Mapping[Any, Any] | list[Any] | tuple[Any, ...], path: str, *, holders: set[int]
) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield from _key_problems(name, path)
            yield from _problems(member, _joined(path, name), holders=holders)
    else:
        for index, item in enumerate(value):
            yield from _problems(item, f"{path}[{index}]", holders=holders)


def _reason(value: Any) -> str:
    """Return why a scalar cannot be used, and the remedy; empty if it can."""
    if isinstance(value, str):
        return _HALF_PAIR if _SURROGATE.search(value) else ""
    if isinstance(value, float) and not math.isfinite(value):
        kind = "not a number (NaN)" if math.isnan(value) else "infinite, or too large for a float"
        return f"is {kind}, which JSON cannot carry: use a finite number or a string"
    if isinstance(value, int) and not -_MOST_INTEGER - 1 <= value <= _MOST_INTEGER:
        return "is an integer of more than 64 bits: use a string"
    return next((reason for kind, reason in _NOT_JSON.items() if isinstance(value, kind)), "")


def _key_problems(name: Any, path: str) -> Iterator[str]:
    if not isinstance(name, str):
        yield f"{path or 'the document'} has the key {name!r}, which is not a string: quote it"
    elif _SURROGATE.search(name):
        yield f"a key of {path or 'the document'} {_HALF_PAIR}"


def _joined(path: str, name: object) -> str:
    text = escape_surrogates(str(name))
    return f"{path}.{text}" if path else text


def escape_surrogates(text: str) -> str:
    """Return `text` with lone surrogates written out, so that it can be printed and encoded."""
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
