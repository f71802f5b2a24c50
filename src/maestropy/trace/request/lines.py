"""Find where a record begins, what its message is and when it was written; join records that span lines.

Formats are told apart record by record, never file by file: one pod may write klog text, zap console lines and JSON.
Prefixes that log collectors add (a timestamp, the pod, docker's JSON) are taken off. Pure: bytes in, values out.
"""

import calendar
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

import orjson

from maestropy.wire import order

JOINED_LINES = 200
_DAY = 86400.0
_SECONDS = 4096
_QUARTER = 900.0
_DIGITS = re.compile(rb"[0-9]{4}")
STAMPED = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)) (?:std(?:out|err) [FP] )?")
"""What kubectl and container runtimes write before a record."""
_PREFIXED = re.compile(rb"\[?pod/([^/\]\s]+)(?:/([^\]\s]+))?\]? ")
_SEQUENCE = re.compile(rb'sequenceid\\*"*\s*:\s*\\*"*(\d{17,19})')
_CE_TIME = re.compile(rb'(?:\\"time\\":\\"|  time: |"ts":")(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)')


class Raw(NamedTuple):
    """One record as it stands in its container."""

    number: int
    offset: int
    text: bytes
    stamp: float = 0.0
    """When the collector took it, where it says so."""


def starts_record(line: bytes) -> bool:
    """Say whether `line` begins a record; everything else continues the one before."""
    first = line[:1]
    if first in b"IWEF" and first:
        return line[5:6] == b" " and line[1:5].isdigit()
    if first == b"2":
        return line[10:11] == b"T" and line[4:5] == b"-"
    return first == b"{" or line[:5] in (b"[pod/", b"[opid")


def whole(start: Raw, more: list[bytes]) -> Raw:
    """Return a record with the lines that continue it."""
    return start if not more else start._replace(text=b"\n".join([start.text, *more[:JOINED_LINES]]))


def joined(lines: Iterable[Raw]) -> Iterator[Raw]:
    """Yield whole records of one writer."""
    held: Raw | None = None
    more: list[bytes] = []
    for raw in lines:
        if starts_record(raw.text):
            if held is not None:
                yield whole(held, more)
            held, more = raw, []
        elif held is None:
            yield raw  # the file begins within a record, or holds something else
        else:
            more.append(raw.text)
    if held is not None:
        yield whole(held, more)


def unwrapped(raw: Raw) -> Raw:
    """Return the record without what a collector has put around it."""
    text = raw.text
    if text[:5] == b"[pod/":
        found = _PREFIXED.match(text)
        if found:
            return unwrapped(raw._replace(text=text[found.end() :]))
    if text[:1] == b"2":
        found = STAMPED.match(text)
        if found and starts_record(text[found.end() :]):
            return raw._replace(text=text[found.end() :], stamp=rfc3339(found.group(1)) or 0.0)
    if text[:8] == b'{"log":"':
        try:
            document = orjson.loads(text)
            stamp = rfc3339(str(document.get("time", "")).encode()) or 0.0
            return raw._replace(text=str(document["log"]).rstrip("\n").encode(), stamp=stamp)
        except (orjson.JSONDecodeError, KeyError):
            return raw
    return raw


def rfc3339(text: bytes) -> float | None:
    """Return the seconds since 1970 of a timestamp with zone; nothing when it is not one."""
    try:
        base = _second(text[:19])
    except ValueError:
        return None
    rest = text[19:]
    digits = re.match(rb"\.(\d+)", rest)
    if digits:
        base += int(digits.group(1)) / 10 ** len(digits.group(1))
        rest = rest[digits.end() :]
    if rest in (b"Z", b"z", b""):
        return base
    zone = re.fullmatch(rb"([+-])(\d\d):?(\d\d)", rest)
    if zone is None:
        return None
    shift = (int(zone.group(2)) * 60 + int(zone.group(3))) * 60
    return base - shift if zone.group(1) == b"+" else base + shift


@lru_cache(maxsize=8)
def _second(text: bytes) -> float:
    return datetime.fromisoformat(text.decode("ascii", "replace")).replace(tzinfo=UTC).timestamp()


class Clock:
    """Reads the times of one file. klog writes neither year nor zone, so both are told at the beginning."""

    def __init__(self, *, around: float, zone: float = 0.0) -> None:
        self._around = around
        self._zone = zone
        self.seconds: dict[bytes, float] = {}
        """The seconds of the records lately read, by their first letters."""

    def second_of(self, line: bytes) -> float | None:
        """Return the second in which a klog record was written; nothing for what is none, or is damaged."""
        head = line[:14]
        found = self.seconds.get(head)
        if found is None:
            if not starts_record(line) or head[:1] not in b"IWEF":
                return None
            try:
                found = klog_second(head[1:], around=self._around) - self._zone
            except ValueError:
                return None
            if len(self.seconds) >= _SECONDS:
                self.seconds.clear()
            self.seconds[head] = found
        return found

    def klog(self, line: bytes) -> float:
        """Return when a klog record was written; 0 when its time is damaged."""
        second = self.second_of(line)
        if second is None:
            return 0.0
        try:
            return second + float(line[14:21])
        except ValueError:
            return second

    def at(self, raw: Raw) -> float:
        """Return when a record of any format was written."""
        line = raw.text
        if line[:1] == b"{":
            return json_time(line) or raw.stamp
        if line[:1] == b"2":
            return rfc3339(line.split(b"\t", 1)[0].split(b" ", 1)[0]) or raw.stamp
        if raw.stamp and line[:1] in b"IWEF":
            # The collector's own time gives the year, record by record.
            if abs(self._around - raw.stamp) > 2 * _DAY:
                self.seconds.clear()
            self._around = raw.stamp + _DAY
        return self.klog(line) or raw.stamp


def klog_second(text: bytes, *, around: float) -> float:
    """Read `mmdd hh:mm:ss` as the last such moment not later than a day after `around`."""
    if not _DIGITS.match(text):
        raise ValueError("no klog time")
    month, day = int(text[0:2]), int(text[2:4])
    hour, minute, second = int(text[5:7]), int(text[8:10]), int(text[11:13])
    year = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=around + _DAY)).year
    for candidate in (year, year - 1, year - 2, year - 3, year - 4):
        # A 29th of February only fits a leap year.
        if day > calendar.monthrange(candidate, month)[1]:
            continue
        moment = datetime(candidate, month, day, hour, minute, second, tzinfo=UTC).timestamp()
        if moment <= around + _DAY:
            return moment
    raise ValueError("no year fits")


def json_time(line: bytes) -> float:
    """Return the time of a JSON record: text in ours, epoch seconds in zap's."""
    found = re.search(rb'"ts":(?:"([^"]+)"|([0-9.eE+]+))', line[:400])
    if found is None:
        return 0.0
    if found.group(1):
        return rfc3339(found.group(1)) or 0.0
    try:
        return float(found.group(2))
    except ValueError:
        return 0.0


class Bearings(NamedTuple):
    """What a file's own content says about the times in it."""

    around: float
    zone: float
    is_guess: bool = False
    """Whether nothing in it tells the year."""


def bearings(sample: bytes, *, modified: float) -> Bearings:
    """Find year and zone of klog times: from sequence ids and full timestamps in the sample, else from the file."""
    offsets: list[float] = []
    latest = 0.0
    for line in sample.split(b"\n"):
        exact = _exact(line)
        if not exact:
            continue
        latest = max(latest, exact)
        # Only whoever sends a status stamps it with the clock of its own lines.
        if b"Sending event" in line and line[:1] in b"IWEF" and line[1:5].isdigit():
            try:
                offsets.append(klog_second(line[1:14], around=exact + _DAY) - exact)
            except ValueError:
                continue
    if not latest:
        return Bearings(modified, 0.0, is_guess=True)
    # A line may repeat an older event, never a later one: the smallest distance is the true one.
    nearest = min((each for each in offsets if each > -_DAY), key=abs, default=0.0)
    zone = round(nearest / _QUARTER) * _QUARTER
    return Bearings(latest + _DAY, zone if abs(zone) <= 14 * 3600 else 0.0)


def _exact(line: bytes) -> float:
    found = _SEQUENCE.search(line)
    if found:
        return order.split(int(found.group(1))).time_ms / 1000
    found = _CE_TIME.search(line)
    if found:
        return rfc3339(found.group(1)) or 0.0
    if line[:2] == b"20" and line[10:11] == b"T":
        return rfc3339(line.split(b"\t", 1)[0].split(b" ", 1)[0]) or 0.0
    return 0.0
