"""Add CEL's list extension (`ext.Lists`) to the expressions of HyperFleet tasks. Pure.

The expressions of works have no such functions: Kubernetes and Open Cluster Management do not register this extension.
Each function charges the budget before it works, so that a list of the API cannot keep a pass busy.
"""

from collections.abc import Callable
from typing import Any

from maestropy.agent.expressions.budget import Budget, text_steps
from maestropy.agent.expressions.cel import library
from maestropy.agent.expressions.cel.values import (
    NONE,
    CelDuration,
    CelError,
    CelOptional,
    CelTimestamp,
    CelUint,
    equal,
    no_overload,
    type_name,
)

_COMPARABLE = (bool, CelUint, int, float, str, bytes, CelDuration, CelTimestamp)


def _distinct(_: str, arguments: list[Any], budget: Budget) -> list[Any]:
    (items,) = arguments
    kept: list[Any] = []
    for item in _items(items):
        if not any(equal(item, other, budget=budget) for other in kept):
            kept.append(item)
    return kept


def _sort(_: str, arguments: list[Any], budget: Budget) -> list[Any]:
    (items,) = arguments
    return _sorted_by(_items(items), keys=items, budget=budget)


def _sort_by(_: str, arguments: list[Any], budget: Budget) -> list[Any]:
    """Sort items by the keys that the macro computed for them."""
    items, keys = arguments
    return _sorted_by(_items(items), keys=keys, budget=budget)


def _sorted_by(items: list[Any], *, keys: list[Any], budget: Budget) -> list[Any]:
    kinds = {type_name(key) for key in keys}
    if len(kinds) > 1:
        raise CelError("list elements must have the same type")
    if keys and not isinstance(keys[0], _COMPARABLE):
        raise CelError(f"list elements must be comparable, and are {type_name(keys[0])}")
    texts = sum(len(key) for key in keys if isinstance(key, str | bytes))
    budget.spend(len(items) * len(items).bit_length() + text_steps(texts) * max(1, len(items).bit_length()))
    order = sorted(range(len(items)), key=keys.__getitem__)
    return [items[index] for index in order]


def _slice(_: str, arguments: list[Any], budget: Budget) -> list[Any]:
    items, start, end = arguments
    if any(isinstance(bound, bool) or not isinstance(bound, int) for bound in (start, end)):
        raise no_overload("")
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(_items(items)):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    budget.spend(end - start)
    return list(items[start:end])


def _flatten(_: str, arguments: list[Any], budget: Budget) -> list[Any]:
    items, depth = arguments if len(arguments) == 2 else [*arguments, 1]
    if isinstance(depth, bool) or not isinstance(depth, int):
        raise no_overload("")
    if depth < 0:
        raise CelError("level must be non-negative")
    flat = _items(items)
    while depth > 0 and any(isinstance(item, list) for item in flat):
        budget.spend(len(flat))
        flat = [inner for item in flat for inner in (item if isinstance(item, list) else [item])]
        depth -= 1
    return flat


def _reverse(name: str, arguments: list[Any], budget: Budget) -> Any:
    if arguments and isinstance(arguments[0], list):
        (items,) = arguments
        budget.spend(len(items))
        return items[::-1]
    return library.FUNCTIONS[name](name, arguments, budget)


def _range(_: str, arguments: list[Any], budget: Budget) -> list[int]:
    (count,) = arguments
    if isinstance(count, bool) or not isinstance(count, int):
        raise no_overload("")
    budget.spend(max(0, count))
    return list(range(count))


def _end(name: str, arguments: list[Any], _: Budget) -> CelOptional:
    (items,) = arguments
    if not _items(items):
        return NONE
    return CelOptional(items[0 if name == "first" else -1], is_present=True)


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise no_overload("")
    return value


def _guarded(function: library.MeteredFunction) -> library.MeteredFunction:
    """Turn a wrong number of arguments into CEL's error."""

    def call(name: str, arguments: list[Any], budget: Budget) -> Any:
        try:
            return function(name, arguments, budget)
        except ValueError as error:
            raise no_overload("") from error

    return call


_ALL: dict[str, Callable[[str, list[Any], Budget], Any]] = {
    "distinct": _distinct,
    "sort": _sort,
    "sortBy": _sort_by,
    "slice": _slice,
    "flatten": _flatten,
    "reverse": _reverse,
    "lists.range": _range,
    "first": _end,
    "last": _end,
}
FUNCTIONS: dict[str, library.MeteredFunction] = {name: _guarded(function) for name, function in _ALL.items()}
