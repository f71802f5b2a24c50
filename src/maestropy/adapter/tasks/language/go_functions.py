"""Define the functions of HyperFleet's Go templates, and how Go shows values as text. Pure."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

CONSTANTS: dict[str, Any] = {"true": True, "false": False, "nil": None}
_LAYOUT = re.compile(r"2006|January|Monday|Jan|Mon|MST|Z07:00|-07:00|-0700|\.0+|15|01|02|03|04|05|06|PM|_2|1|2|3|4|5")


class TemplateError(Exception):
    """A template cannot be parsed or rendered."""


def shown(value: Any) -> str:
    """Return a value as Go's templates print it."""
    match value:
        case None:
            return "<no value>"
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < 1e21:
            return str(int(value))
        case Mapping():
            return f"map[{' '.join(f'{key}:{shown(value[key])}' for key in sorted(value, key=str))}]"
        case list():
            return f"[{' '.join(map(shown, value))}]"
        case datetime():
            return value.isoformat(sep=" ")
        case _:
            return str(value)


def is_true(value: Any) -> bool:
    """Whether Go's `if` takes a value as true: everything but false, nil, 0 and what is empty."""
    return bool(value)


def moment(text: str) -> datetime:
    """Return a time from RFC 3339."""
    return datetime.fromisoformat(text)


def unquoted(literal: str) -> str:
    """Return the text of a string literal, in quotes or backquotes."""
    if literal.startswith("`"):
        return literal[1:-1]
    escapes = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
    return re.sub(r"\\(.)", lambda match: escapes.get(match[1], match[1]), literal[1:-1])


def formatted(layout: str, value: datetime) -> str:
    """Return a time in a layout of Go's reference time, Mon Jan 2 15:04:05 MST 2006."""
    return _LAYOUT.sub(lambda match: _LAYOUT_PARTS[match[0][:2] if match[0][0] == "." else match[0]](value), layout)


def _zone(value: datetime, *, zulu: bool, colon: bool) -> str:
    offset = value.utcoffset()
    if zulu and not offset:
        return "Z"
    text = value.strftime("%z") or "+0000"
    return f"{text[:3]}:{text[3:5]}" if colon else text[:5]


_LAYOUT_PARTS: dict[str, Callable[[datetime], str]] = {
    "2006": lambda value: f"{value.year:04}",
    "06": lambda value: f"{value.year % 100:02}",
    "January": lambda value: value.strftime("%B"),
    "Jan": lambda value: value.strftime("%b"),
    "01": lambda value: f"{value.month:02}",
    "1": lambda value: str(value.month),
    "Monday": lambda value: value.strftime("%A"),
    "Mon": lambda value: value.strftime("%a"),
    "02": lambda value: f"{value.day:02}",
    "_2": lambda value: f"{value.day:2}",
    "2": lambda value: str(value.day),
    "15": lambda value: f"{value.hour:02}",
    "03": lambda value: f"{value.hour % 12 or 12:02}",
    "3": lambda value: str(value.hour % 12 or 12),
    "04": lambda value: f"{value.minute:02}",
    "4": lambda value: str(value.minute),
    "05": lambda value: f"{value.second:02}",
    "5": lambda value: str(value.second),
    "PM": lambda value: "PM" if value.hour >= 12 else "AM",
    "MST": lambda value: value.tzname() or "UTC",
    "Z07:00": lambda value: _zone(value, zulu=True, colon=True),
    "-07:00": lambda value: _zone(value, zulu=False, colon=True),
    "-0700": lambda value: _zone(value, zulu=False, colon=False),
    ".0": lambda value: f".{value.microsecond // 1000:03}",
}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, and got {shown(value)}")
    return value


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0


def _equal(first: Any, *others: Any) -> bool:
    return any(type(first) is type(other) and first == other for other in others)


def _all(*values: Any) -> Any:
    return next((value for value in values if not is_true(value)), values[-1])


def _any(*values: Any) -> Any:
    return next((value for value in values if is_true(value)), values[-1])


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else value[key]
    return value


def _printf(layout: str, *values: Any) -> str:
    pending = iter(values)

    def one(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        value = next(pending)
        return f'"{shown(value)}"' if match[1] == "q" else shown(value)

    return re.sub(r"%%|%([vsdqt])", one, layout)


def _quoted(value: Any) -> str:
    text = _text(value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "date": formatted,
    "dateFormat": formatted,
    "lower": lambda value: _text(value).lower(),
    "upper": lambda value: _text(value).upper(),
    "title": lambda value: _text(value).title(),
    "trim": lambda value: _text(value).strip(),
    # Go's functions take the text first; in a pipeline it comes last, and so these take what is piped as the affix.
    "trimPrefix": lambda value, prefix: _text(value).removeprefix(_text(prefix)),
    "trimSuffix": lambda value, suffix: _text(value).removesuffix(_text(suffix)),
    "replace": lambda value, old, new: _text(value).replace(_text(old), _text(new)),
    "contains": lambda value, part: _text(part) in _text(value),
    "hasPrefix": lambda value, prefix: _text(value).startswith(_text(prefix)),
    "hasSuffix": lambda value, suffix: _text(value).endswith(_text(suffix)),
    "quote": _quoted,
    "default": lambda otherwise, value: otherwise if value is None or value == "" else value,
    "int": lambda value: int(_number(value)),
    "int64": lambda value: int(_number(value)),
    "float": _number,
    "float64": _number,
    "string": shown,
    "eq": _equal,
    "ne": lambda first, second: not _equal(first, second),
    "lt": lambda first, second: first < second,
    "le": lambda first, second: first <= second,
    "gt": lambda first, second: first > second,
    "ge": lambda first, second: first >= second,
    "and": _all,
    "or": _any,
    "not": lambda value: not is_true(value),
    "len": len,
    "index": _index,
    "printf": _printf,
    "print": lambda *values: "".join(map(shown, values)),
}
"""Every function by its name, but `now`, which needs the time of the run."""
