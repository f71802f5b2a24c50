"""Find values that JSON cannot carry, or that Kubernetes would change, and name their paths.

The encoder writes NaN and infinity as null; Kubernetes reads an integer beyond 64 bits as a float; half of a surrogate
pair has no UTF-8. Pure.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MOST_INTEGER: Final = 2**63 - 1
_MOST_PROBLEMS: Final = 10
_DEPTH: Final = 600
"""Deeper than anything that can be stored; the encoder finds objects that hold themselves."""


def problems(value: object, *, path: str = "") -> list[str]:
    """Return the first problems of a value, each with the path and the remedy."""
    found = []
    for problem in _problems(value, path, depth=0):
        found.append(problem)
        if len(found) == _MOST_PROBLEMS:
            break
    return found


def _problems(value: Any, path: str, *, depth: int) -> Iterator[str]:
    kind = type(value)
    if kind is str:
        if _SURROGATE.search(value):
            yield f"{_shown(path)} holds half of a surrogate pair, which has no UTF-8: write the whole character"
    elif kind is bool or value is None or depth > _DEPTH:
        return
    elif kind is float:
        if not math.isfinite(value):
            text = "not a number (NaN)" if math.isnan(value) else "infinite, or too large for a float"
            yield f"{_shown(path)} is {text}, which JSON cannot carry: use a finite number or a string"
    elif kind is int:
        if not -_MOST_INTEGER - 1 <= value <= _MOST_INTEGER:
            yield f"{_shown(path)} is an integer of more than 64 bits: use a string"
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield from _key_problems(name, path)
            yield from _problems(member, _joined(path, name), depth=depth + 1)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _problems(item, f"{path}[{index}]", depth=depth + 1)


def _key_problems(name: Any, path: str) -> Iterator[str]:
    if isinstance(name, bool) or name is None:
        yield f"{_shown(path)} has the key {name}, which is not a string: quote it"
    elif isinstance(name, str) and _SURROGATE.search(name):
        yield f"a key of {_shown(path)} holds half of a surrogate pair, which has no UTF-8: write the whole character"


def _joined(path: str, name: object) -> str:
    text = escape_surrogates(str(name))
    return f"{path}.{text}" if path else text


def _shown(path: str) -> str:
    return path or "the document"


def escape_surrogates(text: str) -> str:
    """Return `text` with lone surrogates written out, so that it can be printed and encoded."""
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
