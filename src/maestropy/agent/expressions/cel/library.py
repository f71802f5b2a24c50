"""Define the functions and operators of CEL.

Every function gets its name, its arguments, receiver first, and the budget, and raises CEL's "no such overload" for
arguments it does not accept. `costs` says what a call is charged.
"""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from maestropy.agent.expressions import regex
from maestropy.agent.expressions.budget import Budget
from maestropy.agent.expressions.cel import conversions, kubernetes, strings
from maestropy.agent.expressions.cel.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    UINT_MAX,
    CelDuration,
    CelError,
    CelOptional,
    CelTimestamp,
    CelUint,
    equal,
    no_overload,
)

Function = Callable[[str, list[Any]], Any]
MeteredFunction = Callable[[str, list[Any], Budget], Any]


class NoSuchItem(CelError):
    """The list is shorter, or the map has no such key."""


def item(operand: object, index: object) -> Any:
    """Return `operand[index]`."""
    if isinstance(operand, Mapping):
        if isinstance(index, float) and index.is_integer():
            index = int(index)
        if not isinstance(index, str | int) or index not in operand:
            raise NoSuchItem(f"no such key: {index}")
        return operand[index]
    if not isinstance(operand, list):
        raise NoSuchItem(f"no such key: {index}")
    if isinstance(index, bool) or not isinstance(index, int | float) or index != int(index):
        raise CelError(f"unsupported index type '{conversions.type_name(index)}' in list")
    if not 0 <= index < len(operand):
        raise NoSuchItem(f"index out of bounds: {int(index)}")
    return operand[int(index)]


def _add(name: str, arguments: list[Any]) -> Any:
    left, right = arguments
    for kind in (str, bytes, list):
        if isinstance(left, kind) and isinstance(right, kind):
            return left + right  # type: ignore[operator]  # both are of this kind
    if isinstance(left, CelDuration | CelTimestamp) or isinstance(right, CelTimestamp):
        return _shifted(left, right, sign=1)
    return _number(name, arguments)


def _subtract(name: str, arguments: list[Any]) -> Any:
    left, right = arguments
    if isinstance(left, CelTimestamp) and isinstance(right, CelTimestamp):
        return CelDuration(left.nanos - right.nanos)
    if isinstance(left, CelDuration | CelTimestamp):
        return _shifted(left, right, sign=-1)
    return _number(name, arguments)


def _shifted(left: object, right: object, *, sign: int) -> Any:
    if isinstance(left, CelDuration) and isinstance(right, CelTimestamp) and sign > 0:
        left, right = right, left
    if isinstance(left, CelDuration | CelTimestamp) and isinstance(right, CelDuration):
        return type(left)(left.nanos + sign * right.nanos)
    raise no_overload("")


def _number(name: str, arguments: list[Any]) -> Any:
    """Compute with two numbers of one type."""
    left, right = arguments
    if type(left) is not type(right) or not isinstance(left, int | float) or isinstance(left, bool):
        raise no_overload("")
    if isinstance(left, float):
        return _float(name, left, right)
    if name in ("_/_", "_%_") and right == 0:
        raise CelError("division by zero" if name == "_/_" else "modulus by zero")
    match name:
        case "_+_":
            result = left + right
        case "_-_":
            result = left - right
        case "_*_":
            result = left * right
        case "_/_":
            result = _quotient(left, right)
        case _:
            result = left - right * _quotient(left, right)
    return _bounded(result, kind=type(left))


def _float(name: str, left: float, right: float) -> float:
    match name:
        case "_+_":
            return left + right
        case "_-_":
            return left - right
        case "_*_":
            return left * right
        case "_/_":
            if right == 0:
                return float("nan") if left == 0 or left != left else float("inf") if left > 0 else float("-inf")  # noqa: PLR0124  # nan
            return left / right
        case _:
            raise no_overload("")


def _quotient(left: int, right: int) -> int:
    """Divide and round toward zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) is (right < 0) else -quotient


def _bounded(number: int, *, kind: type[int]) -> int:
    low, high = (0, UINT_MAX) if kind is CelUint else (INT_MIN, INT_MAX)
    if not low <= number <= high:
        raise CelError("unsigned integer overflow" if kind is CelUint else "integer overflow")
    return kind(number)


def _negate(_: str, arguments: list[Any]) -> Any:
    (value,) = arguments
    if isinstance(value, CelDuration):
        return CelDuration(-value.nanos)
    if isinstance(value, bool | CelUint) or not isinstance(value, int | float):
        raise no_overload("")
    return -value if isinstance(value, float) else _bounded(-value, kind=int)


def _not(_: str, arguments: list[Any]) -> bool:
    (value,) = arguments
    if not isinstance(value, bool):
        raise no_overload("")
    return not value


def _compare(name: str, arguments: list[Any]) -> bool:
    left, right = arguments
    are_numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in arguments)
    is_ordered = isinstance(left, bool | str | bytes | CelDuration | CelTimestamp)
    if not are_numbers and (type(left) is not type(right) or not is_ordered):
        raise no_overload("")
    match name:
        case "_<_":
            return bool(left < right)
        case "_<=_":
            return bool(left <= right)
        case "_>_":
            return bool(left > right)
        case _:
            return bool(left >= right)


def _equals(name: str, arguments: list[Any], budget: Budget) -> bool:
    left, right = arguments
    return equal(left, right, budget=budget) is (name == "_==_")


def _contains(_: str, arguments: list[Any], budget: Budget) -> bool:
    value, container = arguments
    if isinstance(container, Mapping):
        return isinstance(value, str | int) and not isinstance(value, bool) and value in container
    if isinstance(container, list):
        return any(equal(value, item, budget=budget) for item in container)
    raise no_overload("")


def _size(_: str, arguments: list[Any]) -> int:
    if len(arguments) == 1 and isinstance(arguments[0], str | bytes | list | Mapping):
        return len(arguments[0])
    raise no_overload("size")


def _has_conditions(_: str, arguments: list[Any]) -> bool:
    (value,) = arguments
    conditions = value.get("conditions") if isinstance(value, Mapping) else None
    return isinstance(conditions, list) and bool(conditions)


def _optional_of(name: str, arguments: list[Any]) -> CelOptional:
    (value,) = arguments
    is_empty = value is None or (value in (False, 0, "", b"") if not isinstance(value, list | Mapping) else not value)
    if name == "optional.ofNonZeroValue" and is_empty:
        return NONE
    return CelOptional(value, is_present=True)


def _optional(name: str, arguments: list[Any]) -> Any:
    optional, *rest = arguments
    if not isinstance(optional, CelOptional) or len(rest) != (1 if name in ("or", "orValue") else 0):
        raise no_overload("")
    match name:
        case "hasValue":
            return optional.is_present
        case "or":
            return optional if optional.is_present else rest[0]
        case "orValue":
            return optional.value if optional.is_present else rest[0]
        case _:
            if not optional.is_present:
                raise CelError("optional.none() dereference")
            return optional.value


def _index_of(name: str, arguments: list[Any], budget: Budget) -> int:
    """Find a part of a string or an item of a list."""
    if isinstance(arguments[0], list):
        return kubernetes.index_of(name, arguments, budget)
    return strings.index_of(name, arguments)


def _unmetered(function: Function) -> MeteredFunction:
    return lambda name, arguments, _: function(name, arguments)


def _guarded(function: MeteredFunction) -> MeteredFunction:
    """Turn a wrong number or type of arguments into CEL's error."""

    def call(name: str, arguments: list[Any], budget: Budget) -> Any:
        try:
            return function(name, arguments, budget)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            raise no_overload("") from error

    return call


def _matches(_: str, arguments: list[Any], budget: Budget) -> bool:
    text, pattern = _two_texts(arguments)
    return bool(_spans(pattern, text, limit=1, budget=budget))


def _find(_: str, arguments: list[Any], budget: Budget) -> str:
    text, pattern = _two_texts(arguments)
    return next((text[start:end] for start, end in _spans(pattern, text, limit=1, budget=budget)), "")


def _find_all(_: str, arguments: list[Any], budget: Budget) -> list[str]:
    *texts, limit = arguments if len(arguments) == 3 else [*arguments, -1]
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise no_overload("")
    text, pattern = _two_texts(texts)
    spans = _spans(pattern, text, limit=None if limit < 0 else limit, budget=budget)
    return [text[start:end] for start, end in spans]


def _spans(pattern: str, text: str, *, limit: int | None, budget: Budget) -> list[tuple[int, int]]:
    try:
        return list(itertools.islice(regex.search_all(pattern, text, budget=budget), limit))
    except (regex.RegexError, UnicodeError) as error:
        raise CelError(str(error)) from error


def _two_texts(arguments: list[Any]) -> tuple[str, str]:
    match arguments:
        case [str(text), str(pattern)]:
            return text, pattern
        case _:
            raise no_overload("")


_METERED: dict[str, MeteredFunction] = {
    **dict.fromkeys(("_==_", "_!=_"), _equals),
    "_in_": _contains,
    "matches": _matches,
    "find": _find,
    "findAll": _find_all,
    "format": strings.formatted,
    **dict.fromkeys(("indexOf", "lastIndexOf"), _index_of),
}
"""Functions that charge steps of their own: they walk nested values or search regular expressions."""

_UNMETERED: dict[str, Function] = {
    "_+_": _add,
    "_-_": _subtract,
    **dict.fromkeys(("_*_", "_/_", "_%_"), _number),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _compare),
    "-_": _negate,
    "!_": _not,
    "size": _size,
    "dyn": lambda _, arguments: arguments[0],
    "hasConditions": _has_conditions,
    "optional.of": _optional_of,
    "optional.ofNonZeroValue": _optional_of,
    "optional.none": lambda _, __: NONE,
    **dict.fromkeys(("hasValue", "value", "or", "orValue"), _optional),
    **conversions.FUNCTIONS,
    **strings.FUNCTIONS,
    **kubernetes.FUNCTIONS,
}
FUNCTIONS: dict[str, MeteredFunction] = {
    **{name: _guarded(_unmetered(function)) for name, function in _UNMETERED.items()},
    **{name: _guarded(function) for name, function in _METERED.items()},
}
"""Every function by its name; operators have underscores for their operands."""
