"""Evaluate the conditions of a precondition: a field, an operator and a value. All of them must hold. Pure."""

import re
from collections.abc import Callable, Mapping
from typing import Any

_FILTER = re.compile(r"^(\w*)\[\?\(@\.(\w+)\s*==\s*['\"](.*)['\"]\)\]$")


class CriteriaError(Exception):
    """A condition cannot be evaluated."""


def holds(operator: str, actual: Any, expected: Any) -> bool:
    """Whether a condition holds; raises CriteriaError.

    Values are equal only with their types: the text "1" is not the number 1.
    """
    return _OPERATORS[operator](actual, expected)


def value_at(values: Any, path: str) -> Any:
    """Return the value at a path such as `status.phase` or `{.items[?(@.adapter=='x')].data}`; None without one."""
    inner = path.strip()
    inner = inner[1:-1] if inner.startswith("{") and inner.endswith("}") else inner
    current = values
    for part in _parts(inner.lstrip("$").strip(".")):
        current = _step(current, part)
    return current


def _parts(path: str) -> list[str]:
    """Split a path at the dots outside of brackets."""
    parts, depth = [""], 0
    for character in path:
        depth += (character == "[") - (character == "]")
        if character == "." and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part]


def _step(value: Any, part: str) -> Any:
    match = _FILTER.match(part)
    if match is not None:
        items = _step(value, match[1]) if match[1] else value
        items = items if isinstance(items, list) else []
        return next((item for item in items if isinstance(item, Mapping) and item.get(match[2]) == match[3]), None)
    name, _, index = part.partition("[")
    inner = value.get(name) if name and isinstance(value, Mapping) else None if name else value
    position = index.rstrip("]")
    if not position:
        return inner
    if not isinstance(inner, list) or not position.isdigit() or int(position) >= len(inner):
        return None
    return inner[int(position)]


def _equal(actual: Any, expected: Any) -> bool:
    if isinstance(actual, bool) is not isinstance(expected, bool):
        return False
    return type(actual) is type(expected) and bool(actual == expected)


def _in(actual: Any, expected: Any) -> bool:
    if not isinstance(expected, list):
        raise CriteriaError('value must be a list for operator "in"')
    return any(_equal(actual, item) for item in expected)


def _contains(actual: Any, expected: Any) -> bool:
    match actual:
        case str():
            return str(expected) in actual
        case list():
            return any(_equal(item, expected) for item in actual)
        case Mapping():
            return expected in actual
        case _:
            raise CriteriaError(f"contains needs a text, a list or an object, and got {actual!r}")


def _compared(actual: Any, expected: Any) -> float:
    for value in (actual, expected):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise CriteriaError(f"only numbers can be compared, and {value!r} is none")
    return float(actual) - float(expected)


def _exists(actual: Any, _: Any) -> bool:
    return actual is not None and actual not in ("", [], {})


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "equals": _equal,
    "notEquals": lambda actual, expected: not _equal(actual, expected),
    "in": _in,
    "notIn": lambda actual, expected: not _in(actual, expected),
    "contains": _contains,
    "greaterThan": lambda actual, expected: _compared(actual, expected) > 0,
    "lessThan": lambda actual, expected: _compared(actual, expected) < 0,
    "exists": _exists,
}
