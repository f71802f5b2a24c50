"""Charge a CEL function for the size of its arguments and of its result, before it is called.

Functions that walk nested values (`==`, `in`, `format`, `indexOf` of a list) and regular expressions charge the walk
themselves, as they go.
"""

from collections.abc import Callable, Sequence
from typing import Any

from maestropy.agent.expressions.budget import Budget, search_steps, slow_text_steps, text_steps
from maestropy.agent.expressions.cel.values import CelOpaque

CALL = 2
LIBRARY_CALL = 20
"""Functions that parse text into a value of a library, or such a value into another."""

_Steps = Callable[[Sequence[Any]], int]


def charge(name: str, arguments: Sequence[Any], *, budget: Budget) -> None:
    """Charge a call of the function `name`."""
    steps = _STEPS.get(name)
    budget.spend(LIBRARY_CALL + _slow_texts(arguments) if steps is None else CALL + steps(arguments))


def _nothing(_: Sequence[Any]) -> int:
    return 0


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list) else 0


def _texts(arguments: Sequence[Any]) -> int:
    return sum(text_steps(_length(argument)) for argument in arguments)


def _slow_texts(arguments: Sequence[Any]) -> int:
    return sum(
        slow_text_steps(len(str(argument.value)) if isinstance(argument, CelOpaque) else _length(argument))
        for argument in arguments
        if isinstance(argument, str | bytes | CelOpaque)
    )


def _concatenation(arguments: Sequence[Any]) -> int:
    if isinstance(arguments[0], list):
        return sum(_length(argument) // 8 for argument in arguments)
    return _texts(arguments)


def _search(arguments: Sequence[Any]) -> int:
    match arguments:
        case [str(text), str(part), *_]:
            return search_steps(text, part)
        case _:
            return 0


def _split(arguments: Sequence[Any]) -> int:
    match arguments:
        case [str(text), str(separator), *_]:
            return search_steps(text, separator) + (text.count(separator) if separator else len(text)) // 4
        case _:
            return 0


def _replace(arguments: Sequence[Any]) -> int:
    match arguments:
        case [str(text), str(old), str(new), *limit]:
            count = text.count(old)
            if limit and isinstance(limit[0], int) and limit[0] >= 0:
                count = min(count, limit[0])
            return search_steps(text, old) * 2 + text_steps(len(text) + count * len(new)) + count // 8
        case _:
            return 0


def _join(arguments: Sequence[Any]) -> int:
    match arguments:
        case [list(items), *separator]:
            between = _length(separator[0]) if separator else 0
            return len(items) // 2 + text_steps(sum(map(_length, items)) + between * len(items))
        case _:
            return 0


def _items(arguments: Sequence[Any]) -> int:
    """Count the items of a list that are compared or added up."""
    match arguments:
        case [list(items), *_]:
            return len(items) + text_steps(sum(map(_length, items)))
        case _:
            return 0


_STEPS: dict[str, _Steps] = {
    **dict.fromkeys(("_==_", "_!=_", "_in_", "_-_", "_*_", "_/_", "_%_", "-_", "!_", "size", "dyn"), _nothing),
    **dict.fromkeys(("hasConditions", "optional.of", "optional.ofNonZeroValue", "optional.none"), _nothing),
    **dict.fromkeys(("hasValue", "value", "or", "orValue", "type", "bool"), _nothing),
    **dict.fromkeys(("matches", "find", "findAll", "format"), _nothing),
    "_+_": _concatenation,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _texts),
    **dict.fromkeys(("startsWith", "endsWith", "charAt", "substring", "trim", "reverse", "bytes"), _texts),
    **dict.fromkeys(("contains", "indexOf"), _search),
    "lastIndexOf": lambda arguments: 2 * _search(arguments),
    "split": _split,
    "replace": _replace,
    "join": _join,
    **dict.fromkeys(("sum", "min", "max", "isSorted"), _items),
}
"""The steps of each function beyond the call itself; all others parse text."""
