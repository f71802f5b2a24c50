"""Convert times of a report to the reader's time zone. Pure: the zone is a parameter, None is the local one."""

import dataclasses
from datetime import UTC, datetime, tzinfo
from typing import Any, TypeVar, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from maestropy.trace.errors import InvalidArguments

Value = TypeVar("Value")

LOCAL = "local"


def named(name: str) -> tzinfo | None:
    """Return the zone of that name; None for this computer's."""
    if name == LOCAL:
        return None
    if name.upper() in {"UTC", "Z"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidArguments(
            f"--tz {name} is not a known time zone; write a name such as Europe/Berlin, or UTC, or {LOCAL}"
        ) from error


def shown_in(value: Value, zone: tzinfo | None) -> Value:
    """Return a copy of a value with all its times, at any depth of dataclasses and tuples, in `zone`."""
    converted: Any = value
    if isinstance(converted, datetime):
        converted = converted.astimezone(zone)
    elif isinstance(converted, tuple):
        converted = tuple(shown_in(item, zone) for item in converted)
    elif dataclasses.is_dataclass(converted) and not isinstance(converted, type):
        parts = {field.name: getattr(converted, field.name) for field in dataclasses.fields(converted)}
        converted = dataclasses.replace(converted, **{name: shown_in(part, zone) for name, part in parts.items()})
    return cast("Value", converted)
