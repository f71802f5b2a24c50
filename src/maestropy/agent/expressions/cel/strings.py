"""Implement CEL's string functions: the standard ones and the extensions."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from maestropy.agent.expressions import go_values
from maestropy.agent.expressions.budget import Budget, slow_text_steps, text_steps
from maestropy.agent.expressions.cel import conversions
from maestropy.agent.expressions.cel.values import CelDuration, CelError, CelTimestamp, CelType, no_overload

_MAX_PADDING = 1000
_CLAUSE_STEPS = 4
_NODE_STEPS = 3
_VERB = re.compile(r"%(?:\.([0-9]{1,3}))?(.)", re.DOTALL)
_TO_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_TO_UPPER = {code + 32: code for code in range(ord("A"), ord("Z") + 1)}
_QUOTED = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}


def _texts(arguments: list[Any], *kinds: type) -> None:
    """Raise unless the arguments have these types."""
    is_fitting = len(arguments) == len(kinds) and all(map(isinstance, arguments, kinds))
    if not is_fitting or any(isinstance(argument, bool) for argument in arguments):
        raise no_overload("")


def _predicate(name: str, arguments: list[Any]) -> bool:
    _texts(arguments, str, str)
    text, part = arguments
    match name:
        case "contains":
            return part in text
        case "startsWith":
            return bool(text.startswith(part))
        case _:
            return bool(text.endswith(part))


def _char_at(_: str, arguments: list[Any]) -> str:
    _texts(arguments, str, int)
    text, index = arguments
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return str(text[index : index + 1])


def index_of(name: str, arguments: list[Any]) -> int:
    """Return the index of a part of a string, or -1."""
    _texts(arguments, str, str, *[int] * (len(arguments) - 2))
    text, part, *offset = arguments
    if offset and not 0 <= offset[0] <= len(text):
        raise CelError(f"index out of range: {offset[0]}")
    if name == "indexOf":
        return int(text.find(part, *offset))
    searched = text[: offset[0] + len(part)] if offset else text
    # Python searches in linear time only forwards.
    index = searched[::-1].find(part[::-1])
    return len(searched) - index - len(part) if index >= 0 else -1


def _substring(_: str, arguments: list[Any]) -> str:
    _texts(arguments, str, *[int] * (len(arguments) - 1))
    text, start, *end = arguments
    stop = end[0] if end else len(text)
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    if not 0 <= stop <= len(text):
        raise CelError(f"index out of range: {stop}")
    if start > stop:
        raise CelError(f"invalid substring range. start: {start}, end: {stop}")
    return str(text[start:stop])


def _split(_: str, arguments: list[Any]) -> list[str]:
    text, separator, *limit = arguments
    _texts(arguments, str, str, *[int] * len(limit))
    count = limit[0] if limit else -1
    if count == 0:
        return []
    parts = text.split(separator) if separator else [*text]
    if count < 0 or len(parts) <= count:
        return [*parts]
    return [*parts[: count - 1], separator.join(parts[count - 1 :])]


def _replace(_: str, arguments: list[Any]) -> str:
    text, old, new, *limit = arguments
    _texts(arguments, str, str, str, *[int] * len(limit))
    return str(text.replace(old, new, limit[0] if limit else -1))


def _join(_: str, arguments: list[Any]) -> str:
    items, *separator = arguments
    _texts(arguments, list, *[str] * len(separator))
    if not all(isinstance(item, str) for item in items):
        raise no_overload("")
    return (separator[0] if separator else "").join(items)


def _plain(name: str, arguments: list[Any]) -> str:
    _texts(arguments, str)
    (text,) = arguments
    match name:
        case "lowerAscii":
            return str(text.translate(_TO_LOWER))
        case "upperAscii":
            return str(text.translate(_TO_UPPER))
        case "trim":
            return str(text.strip())
        case "reverse":
            return str(text[::-1])
        case _:
            return '"' + "".join(_QUOTED.get(char, char) for char in text) + '"'


def formatted(_: str, arguments: list[Any], budget: Budget) -> str:
    """Fill the verbs of a string with the items of a list."""
    _texts(arguments, str, list)
    text, values = arguments
    budget.spend(slow_text_steps(len(text)))
    remaining = iter(values)

    def filled(clause: re.Match[str]) -> str:
        precision, verb = clause.groups()
        if verb == "%":
            return "%"
        try:
            value = next(remaining)
        except StopIteration:
            raise CelError(f"index {len(values)} out of range") from None
        digits = 6 if precision is None else min(int(precision), _MAX_PADDING)
        budget.spend(_CLAUSE_STEPS + slow_text_steps(digits))
        return _formatted(verb, value, precision=digits, budget=budget)

    return _VERB.sub(filled, text)


def _formatted(verb: str, value: Any, *, precision: int, budget: Budget) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match verb:
        case "s":
            return _shown(value, budget=budget)
        case "d" if isinstance(value, int) and is_number:
            return str(value)
        case "f" | "e" if is_number:
            return f"{float(value):.{precision}{verb}}"
        case "b" | "o" if isinstance(value, int):
            return f"{value:{verb}}"
        case "x" | "X" if isinstance(value, int) and is_number:
            return f"{value:{verb}}"
        case "x" | "X" if isinstance(value, str | bytes):
            budget.spend(text_steps(len(value)))
            digits = (value.encode() if isinstance(value, str) else value).hex()
            return digits.upper() if verb == "X" else digits
        case _:
            problem = f'could not parse formatting clause: unrecognized formatting clause "{verb}"'
            raise CelError(
                problem if verb not in "dfebxXo" else f"%{verb} does not take a {conversions.type_name(value)}"
            )


def _shown(value: Any, *, budget: Budget) -> str:
    budget.spend(_NODE_STEPS)
    match value:
        case None:
            return "null"
        case list():
            shown = [_shown(item, budget=budget) for item in value]
            return _joined("[", shown, "]", budget=budget)
        case Mapping():
            budget.spend(len(value))
            shown = [
                f"{_shown(key, budget=budget)}: {_shown(value[key], budget=budget)}" for key in sorted(value, key=str)
            ]
            return _joined("{", shown, "}", budget=budget)
        case CelType(name):
            return name
        case bool() | int() | float():
            return go_values.rendering(value)
        case CelDuration() | CelTimestamp() | bytes():
            return str(conversions.FUNCTIONS["string"]("string", [value]))
        case _:
            return str(value)


def _joined(opening: str, items: list[str], closing: str, *, budget: Budget) -> str:
    budget.spend(text_steps(sum(map(len, items))))
    return opening + ", ".join(items) + closing


FUNCTIONS: dict[str, Callable[[str, list[Any]], Any]] = {
    **dict.fromkeys(("contains", "startsWith", "endsWith"), _predicate),
    "charAt": _char_at,
    "substring": _substring,
    "split": _split,
    "replace": _replace,
    "join": _join,
    **dict.fromkeys(("lowerAscii", "upperAscii", "trim", "reverse", "strings.quote"), _plain),
}
