"""Parse and format the timestamps of the protocol: nanoseconds, UTC, RFC 3339.

Python's datetime has only microseconds, and an event must be forwarded without loss.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from maestropy.wire import errors

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_SECOND = -62135596800
_LAST_SECOND = 253402300799
_RFC3339 = re.compile(r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)


class Timestamp(NamedTuple):
    """Seconds and nanoseconds since 1970 in UTC."""

    seconds: int
    nanos: int = 0

    @property
    def milliseconds(self) -> int:
        """Whole milliseconds since 1970."""
        return self.seconds * 1000 + self.nanos // 1_000_000

    def rfc3339(self) -> str:
        """Return `2006-01-02T15:04:05.999999999Z`, without trailing zeros in the fraction."""
        whole = _second_text(self.seconds)
        if not self.nanos:
            return f"{whole}Z"
        fraction = f"{self.nanos:09d}".rstrip("0")
        return f"{whole}.{fraction}Z"

    def rfc3339_seconds(self) -> str:
        """Return the whole seconds only, as Kubernetes writes its timestamps."""
        return f"{_second_text(self.seconds)}Z"

    def to_datetime(self) -> datetime:
        """Return the nearest earlier datetime (microseconds)."""
        return _EPOCH + timedelta(seconds=self.seconds, microseconds=self.nanos // 1000)


def checked(seconds: int, nanos: int) -> Timestamp:
    """Return a received timestamp, or raise `MalformedMessage` if RFC 3339 cannot express it (years 1 to 9999)."""
    if not (_FIRST_SECOND <= seconds <= _LAST_SECOND and 0 <= nanos < 1_000_000_000):
        raise errors.MalformedMessage(
            f"a timestamp of {seconds} seconds and {nanos} nanoseconds is not a date that exists"
        )
    return Timestamp(seconds, nanos)


def from_datetime(time: datetime) -> Timestamp:
    """Convert `time`, which must have a time zone, to a timestamp."""
    delta = time - _EPOCH
    return Timestamp(delta.days * 86400 + delta.seconds, delta.microseconds * 1000)


def parse(text: str) -> Timestamp:
    """Parse an RFC 3339 timestamp with any time zone and up to nine digits of fraction."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise errors.MalformedMessage(f"{text[:64]!r} is not an RFC 3339 timestamp such as 2006-01-02T15:04:05Z")
    date, clock, fraction, zone = match.groups()
    try:
        seconds = _seconds_at(date, clock, "+00:00" if zone in "Zz" else zone)
    except (ValueError, OverflowError) as error:
        raise errors.MalformedMessage(f"{text[:64]!r} is not a date that exists") from error
    return Timestamp(seconds, int(fraction.ljust(9, "0")) if fraction else 0)


# A resync parses and writes the times of all works of a cluster, many of which were published in one second.
@lru_cache(maxsize=1024)
def _seconds_at(date: str, clock: str, zone: str) -> int:
    return from_datetime(datetime.fromisoformat(f"{date}T{clock}{zone}").astimezone(UTC)).seconds


@lru_cache(maxsize=1024)
def _second_text(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]
