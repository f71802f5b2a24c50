"""Implement CEL's type conversions, and the accessors of timestamps and durations."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from maestropy.agent.expressions import go_values
from maestropy.agent.expressions.cel.values import (
    INT_MAX,
    INT_MIN,
    TYPES,
    UINT_MAX,
    CelDuration,
    CelError,
    CelOpaque,
    CelTimestamp,
    CelType,
    CelUint,
    no_overload,
)
from maestropy.agent.expressions.cel.values import type_name as type_name
from maestropy.wire import errors, timestamps

_SECOND = 1_000_000_000
_UNITS = {"h": 3600 * _SECOND, "m": 60 * _SECOND, "s": _SECOND, "ms": 1_000_000, "us": 1000, "µs": 1000, "ns": 1}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(h|ms|m|s|us|µs|ns)")
_DURATION_MAX_LENGTH = 65
_NUMBER_MAX_LENGTH = 1024
_OFFSET = re.compile(r"([+-]?)([0-9]{2}):([0-9]{2})")
_TRUE = ("true", "True", "TRUE", "t", "T", "1")
_FALSE = ("false", "False", "FALSE", "f", "F", "0")


def _int(_: str, arguments: list[Any]) -> int:
    (value,) = arguments
    if isinstance(value, CelTimestamp):
        return value.nanos // _SECOND
    return _whole(value, low=INT_MIN, high=INT_MAX, kind="int")


def _uint(_: str, arguments: list[Any]) -> CelUint:
    (value,) = arguments
    return CelUint(_whole(value, low=0, high=UINT_MAX, kind="uint"))


def _whole(value: object, *, low: int, high: int, kind: str) -> int:
    if isinstance(value, str):
        if not re.fullmatch(r"[+-]?[0-9]{1,20}", value) or not low <= int(value) <= high:
            raise CelError(f"type conversion error from 'string' to '{kind}'")
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise no_overload(f"{kind}({type_name(value)})")
    if isinstance(value, float) and not low <= value <= high:
        raise CelError("integer overflow")
    number = int(value)
    if not low <= number <= high:
        raise CelError("integer overflow" if kind == "int" else "unsigned integer overflow")
    return number


def _double(_: str, arguments: list[Any]) -> float:
    (value,) = arguments
    if isinstance(value, str):
        if len(value) > _NUMBER_MAX_LENGTH:
            raise CelError("type conversion error from 'string' to 'double'")
        try:
            return float(value)
        except ValueError as error:
            raise CelError("type conversion error from 'string' to 'double'") from error
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise no_overload(f"double({type_name(value)})")
    return float(value)


def _bool(_: str, arguments: list[Any]) -> bool:
    (value,) = arguments
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in (*_TRUE, *_FALSE):
        return value in _TRUE
    raise CelError("type conversion error from 'string' to 'bool'") if isinstance(value, str) else no_overload("")


def _string(_: str, arguments: list[Any]) -> str:
    (value,) = arguments
    match value:
        case str():
            return value
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError as error:
                raise CelError("invalid UTF-8 in bytes, cannot convert to string") from error
        case bool() | int() | float():
            return go_values.rendering(value)
        case CelDuration(nanos):
            return f"{go_values.rendering(nanos / _SECOND)}s"
        case CelTimestamp(nanos):
            return timestamps.Timestamp(nanos // _SECOND, nanos % _SECOND).rfc3339()
        case CelOpaque():
            return str(value.value)
        case _:
            raise no_overload(f"string({type_name(value)})")


def _bytes(_: str, arguments: list[Any]) -> bytes:
    (value,) = arguments
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise no_overload("")


def _timestamp(_: str, arguments: list[Any]) -> CelTimestamp:
    (value,) = arguments
    if isinstance(value, CelTimestamp):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return CelTimestamp(value * _SECOND)
    if not isinstance(value, str):
        raise no_overload("")
    try:
        parsed = timestamps.parse(value)
    except errors.MalformedMessage as error:
        raise CelError("type conversion error from 'string' to 'google.protobuf.Timestamp'") from error
    return CelTimestamp(parsed.seconds * _SECOND + parsed.nanos)


def _duration(_: str, arguments: list[Any]) -> CelDuration:
    (value,) = arguments
    if isinstance(value, CelDuration):
        return value
    if not isinstance(value, str):
        raise CelError(f"type conversion error from '{type_name(value)}' to 'google.protobuf.Duration'")
    if len(value) > _DURATION_MAX_LENGTH:
        raise CelError("type conversion error from 'string' to 'google.protobuf.Duration'")
    unsigned = value.removeprefix("-").removeprefix("+") if value not in ("-", "+") else ""
    parts = [*_DURATION.finditer(unsigned)]
    if unsigned != "0" and (not parts or "".join(part.group() for part in parts) != unsigned):
        raise CelError("type conversion error from 'string' to 'google.protobuf.Duration'")
    nanos = sum(round(float(number) * _UNITS[unit]) for number, unit in (part.groups() for part in parts))
    return CelDuration(-nanos if value.startswith("-") else nanos)


def _type(_: str, arguments: list[Any]) -> CelType:
    (value,) = arguments
    name = type_name(value)
    return TYPES.get(name) or CelType(name)


_DATE: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
    "getMilliseconds": lambda moment: moment.microsecond // 1000,
}
_SPAN = {"getHours": 3600 * _SECOND, "getMinutes": 60 * _SECOND, "getSeconds": _SECOND, "getMilliseconds": 1_000_000}


def _part(name: str, arguments: list[Any]) -> int:
    value, *zone = arguments
    if isinstance(value, CelDuration) and name in _SPAN and not zone:
        whole = abs(value.nanos) // _SPAN[name]
        return whole if value.nanos >= 0 else -whole
    if not isinstance(value, CelTimestamp):
        raise no_overload("")
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value.nanos // 1000)
    return _DATE[name](moment.astimezone(_zone(zone[0])) if zone else moment)


def _zone(name: object) -> timezone:
    if name == "UTC":
        return UTC
    offset = _OFFSET.fullmatch(name) if isinstance(name, str) else None
    if offset is None:
        raise CelError(f"unknown time zone {name}: give it as +01:00")
    sign, hours, minutes = offset.groups()
    return timezone((-1 if sign == "-" else 1) * timedelta(hours=int(hours), minutes=int(minutes)))


FUNCTIONS: dict[str, Callable[[str, list[Any]], Any]] = {
    "int": _int,
    "uint": _uint,
    "double": _double,
    "bool": _bool,
    "string": _string,
    "bytes": _bytes,
    "timestamp": _timestamp,
    "duration": _duration,
    "type": _type,
    **dict.fromkeys(_DATE, _part),
}
