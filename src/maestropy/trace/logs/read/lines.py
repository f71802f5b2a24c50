"""Split log text into records: where a record starts, its values and its time; join records that span lines.

The format is detected for each record, not for each file: one pod may write klog text, zap console lines and JSON.
Prefixes added by log collectors (a timestamp, the pod, docker's JSON) are removed. Pure: bytes in, values out.
"""

import calendar
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

import orjson

from maestropy.trace.logs.read import klog_fields
from maestropy.wire import ordering

JOINED_LINES = 200
_DAY = 86400.0
_YEAR = 365 * _DAY
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS = 4096
_QUARTER = 900.0
_NANOSECONDS = 9
_LATEST = 253402300799.0
"""The end of the year 9999, the last moment that can be shown."""
_DIGITS = re.compile(rb"[0-9]{4}")
STAMPED = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)) (?:std(?:out|err) [FP] )?")
"""What kubectl and container runtimes write before a record."""
_PREFIXED = re.compile(rb"\[?pod/([^/\]\s]+)(?:/([^\]\s]+))?\]? ")
_STERN = re.compile(rb"([a-z0-9][a-z0-9.-]*) [a-z0-9][a-z0-9-]* (?=[IWEF]\d{4} \d\d:|20\d\d-\d\d-\d\dT|\{)")
_DOCKER = re.compile(rb'\{\s*"(?:log|stream|time|attrs)":')
_KEY = re.compile(rb"[A-Za-z_-]+")
_SEQUENCE = re.compile(rb'sequenceid\\*"*\s*:\s*\\*"*(\d{17,19})(?!\d)')
_CE_TIME = re.compile(rb'(?:\\"time\\":\\"|  time: )(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)')


class RawRecord(NamedTuple):
    """One record as found in its file."""

    number: int
    offset: int
    text: bytes
    stamp: float = 0.0
    """When the collector received it, if it adds this time."""


def starts_record(line: bytes) -> bool:
    """Say whether `line` starts a record; any other line continues the record before it."""
    first = line[:1]
    if first in b"IWEF" and first:
        return line[5:6] == b" " and line[1:5].isdigit()
    if first == b"2":
        return line[10:11] == b"T" and line[4:5] == b"-"
    return first == b"{" or line[:5] in (b"[pod/", b"[opid")


def is_unfinished(line: bytes) -> bool:
    """Say whether a line that starts a record was cut: a quote, a brace or a key is open, or the message is missing."""
    if line[:1] == b"{":
        try:
            orjson.loads(line)
        except orjson.JSONDecodeError:
            return True
        return False
    bare = klog_fields.without_strings(line)
    if b'"' in bare or bare.count(b"{") > bare.count(b"}") or line[-1:] == b"=":
        return True
    if line[:1] != b"2" and b"] " not in line:
        return True
    return b'] "' in line and _KEY.fullmatch(bare.rsplit(b" ", 1)[-1]) is not None


def whole(start: RawRecord, more: list[bytes]) -> RawRecord:
    """Return a record with the lines that continue it; of very many the first and the last, which ends a block."""
    while more and not more[-1]:
        more = more[:-1]
    if not more:
        return start
    kept = more if len(more) <= JOINED_LINES else [*more[: JOINED_LINES - 1], more[-1]]
    return start._replace(text=b"\n".join([start.text, *kept]))


def joined(lines: Iterable[RawRecord]) -> Iterator[RawRecord]:
    """Yield whole records of one writer."""
    open_record: RawRecord | None = None
    more: list[bytes] = []
    for raw in lines:
        if starts_record(raw.text):
            if open_record is not None:
                yield whole(open_record, more)
            open_record, more = raw, []
        elif open_record is None:
            yield raw  # the file starts within a record, or contains something else
        elif len(more) < JOINED_LINES:
            more.append(raw.text)
        else:
            more[-1] = raw.text
    if open_record is not None:
        yield whole(open_record, more)


def unwrapped(raw: RawRecord) -> RawRecord:
    """Return the record without what a collector has put around it."""
    text = raw.text
    if text[:5] == b"[pod/":
        match = _PREFIXED.match(text)
        if match:
            return unwrapped(raw._replace(text=text[match.end() :]))
    if text[:1] == b"2":
        match = STAMPED.match(text)
        if match and starts_record(text[match.end() :]):
            return raw._replace(text=text[match.end() :], stamp=rfc3339(match.group(1)) or 0.0)
    if text[:1] == b"{" and _DOCKER.match(text):
        try:
            document = orjson.loads(text)
            stamp = rfc3339(str(document.get("time", "")).encode()) or 0.0
            return raw._replace(text=str(document["log"]).rstrip("\n").encode(), stamp=stamp)
        except (orjson.JSONDecodeError, KeyError):
            return raw
    return raw


def pod_prefix(line: bytes) -> tuple[str, bytes] | None:
    """Return the pod that `kubectl logs --prefix` or stern names before a line, and the line; None without one."""
    match = _PREFIXED.match(line) if line[:5] == b"[pod/" else _STERN.match(line)
    return (match.group(1).decode("utf-8", "replace"), line[match.end() :]) if match else None


def rfc3339(text: bytes) -> float | None:
    """Return the seconds since 1970 of a timestamp with zone; nothing when it is not one."""
    try:
        base = _second(text[:19])
    except ValueError:
        return None
    rest = text[19:]
    digits = re.match(rb"\.(\d+)", rest)
    if digits:
        fraction = digits.group(1)[:_NANOSECONDS]
        base += int(fraction) / 10 ** len(fraction)
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


class RecordClock:
    """Reads the times of one file. klog writes neither year nor zone, so both are parameters."""

    def __init__(self, *, around: float, zone: float = 0.0) -> None:
        self._around = around
        self._zone = zone
        self.seconds: dict[bytes, float] = {}
        """The seconds of recently read records, by their first characters."""

    def second_of(self, line: bytes) -> float | None:
        """Return the second in which a klog record was written; nothing for what is none, or is damaged."""
        head = line[:14]
        second = self.seconds.get(head)
        if second is None:
            if not starts_record(line) or head[:1] not in b"IWEF":
                return None
            try:
                second = klog_second(head[1:], around=self._around) - self._zone
            except ValueError:
                return None
            if len(self.seconds) >= _SECONDS:
                self.seconds.clear()
            self.seconds[head] = second
        return second

    def klog(self, line: bytes) -> float:
        """Return when a klog record was written; 0 when its time is damaged."""
        second = self.second_of(line)
        if second is None:
            return 0.0
        try:
            return second + float(line[14:21])
        except ValueError:
            return second

    def at(self, raw: RawRecord) -> float:
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
    year = (_EPOCH + timedelta(seconds=around + _DAY)).year
    for candidate in (year, year - 1, year - 2, year - 3, year - 4):
        # A 29th of February only fits a leap year.
        if day > calendar.monthrange(candidate, month)[1]:
            continue
        moment = datetime(candidate, month, day, hour, minute, second, tzinfo=UTC).timestamp()
        if moment <= around + _DAY:
            return moment
    raise ValueError("no year fits")


def json_time(line: bytes) -> float:
    """Return the time of a JSON record: RFC 3339 in our logs, epoch seconds in zap's."""
    match = re.search(rb'"ts":(?:"([^"]+)"|([0-9.eE+]+))', line[:400])
    if match is None:
        return 0.0
    if match.group(1):
        return rfc3339(match.group(1)) or 0.0
    try:
        moment = float(match.group(2))
    except ValueError:
        return 0.0
    return moment if moment < _LATEST else 0.0


class ClockHints(NamedTuple):
    """Year and zone of the times in a file, derived from its content."""

    around: float
    zone: float
    is_guess: bool = False
    """Whether nothing in the file shows the year."""


class _Sighting(NamedTuple):
    """A moment that a klog record shows with its year, and the time of the record in the year that fits."""

    exact: float
    written: float
    is_publisher: bool
    """Whether the record is of the publisher of a status, which takes both times from one clock."""


def clock_hints(sample: bytes, *, modified: float) -> ClockHints:
    """Find year and zone of klog times: from sequence ids and full timestamps in the sample, else from the file.

    The full timestamps of the log itself are certain. Sequence ids and times in events are written by others: only
    those that fit the time of their own record are evidence of the year, and most of them decide.
    """
    latest, head = 0.0, b""
    sightings: list[_Sighting] = []
    for line in sample.split(b"\n"):
        if starts_record(line):
            head = line
        if own := _own_time(line):
            latest = max(latest, own)
        elif head[:1] in b"IWEF" and (exact := _event_time(line)):
            try:
                written = klog_second(head[1:14], around=exact + _DAY)
            except ValueError:
                continue
            if abs(written - exact) <= _DAY:
                sightings.append(_Sighting(exact, written, head is line and b"Sending event" in line))
    if latest:
        sightings = [seen for seen in sightings if abs(seen.exact - latest) < _YEAR / 2]
    fitting = _of_one_year(sightings, modified=modified)
    if not latest and not fitting:
        return ClockHints(modified, 0.0, is_guess=True)
    # A record may repeat an older event, never a later one: the smallest distance is the true one.
    offsets = [seen.written - seen.exact for seen in fitting if seen.is_publisher]
    zone = round(min(offsets, key=abs, default=0.0) / _QUARTER) * _QUARTER
    latest = latest or max(seen.exact for seen in fitting)
    return ClockHints(latest + _DAY, zone if abs(zone) <= 14 * 3600 else 0.0)


def _of_one_year(sightings: Sequence[_Sighting], *, modified: float) -> list[_Sighting]:
    """Return the most sightings within a year; those later than the file only if there are no others."""
    if not sightings:
        return []
    times = sorted(seen.exact for seen in sightings)

    def weight(moment: float) -> tuple[bool, int, float]:
        count = bisect_right(times, moment + _YEAR / 2) - bisect_left(times, moment - _YEAR / 2)
        return moment <= modified + _DAY, count, -abs(moment - modified)

    chosen = max(times, key=weight)
    return [seen for seen in sightings if abs(seen.exact - chosen) <= _YEAR / 2]


def _own_time(line: bytes) -> float:
    """Return the full timestamp that a record, or its collector, has besides what it quotes."""
    if line[:1] == b"{":
        return json_time(line)
    if line[:2] == b"20" and line[10:11] == b"T":
        return rfc3339(line.split(b"\t", 1)[0].split(b" ", 1)[0]) or 0.0
    return 0.0


def _event_time(line: bytes) -> float:
    """Return the moment of the event in a line."""
    match = _SEQUENCE.search(line)
    if match:
        return ordering.split(int(match.group(1))).time_ms / 1000
    match = _CE_TIME.search(line)
    return (rfc3339(match.group(1)) or 0.0) if match else 0.0
