"""Times as the reader's clock shows them. Pure: the zone is given, and None means this computer's."""

import dataclasses
from datetime import UTC, datetime, tzinfo
from typing import Any, TypeVar, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from maestropy.trace.errors import BadQuestion

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
        raise BadQuestion(
            f"--tz {name} is no time zone known here; write a name such as Europe/Berlin, or UTC, or {LOCAL}"
        ) from error


def shown_in(value: Value, zone: tzinfo | None) -> Value:
    """Return a value whose times, at any depth of dataclasses and tuples, are those of `zone`."""
    found: Any = value
    if isinstance(found, datetime):
        found = found.astimezone(zone)
    elif isinstance(found, tuple):
        found = tuple(shown_in(each, zone) for each in found)
    elif dataclasses.is_dataclass(found) and not isinstance(found, type):
        parts = {each.name: getattr(found, each.name) for each in dataclasses.fields(found)}
        found = dataclasses.replace(found, **{name: shown_in(part, zone) for name, part in parts.items()})
    return cast("Value", found)
