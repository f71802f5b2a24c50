"""Split log text into records: where a record starts, its values and its time; join records that span lines.

The format is detected for each record, not for each file: one pod may write klog text, zap console lines and JSON.
Prefixes added by log collectors (a timestamp, the pod, docker's JSON) are removed. Pure: bytes in, values out.
"""

import calendar
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

import orjson

from maestropy.wire import ordering

JOINED_LINES = 200
_DAY = 86400.0
_SECONDS = 4096
_QUARTER = 900.0
_DIGITS = re.compile(rb"[0-9]{4}")
STAMPED = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)) (?:std(?:out|err) [FP] )?")
"""What kubectl and container runtimes write before a record."""
_PREFIXED = re.compile(rb"\[?pod/([^/\]\s]+)(?:/([^\]\s]+))?\]? ")
_STERN = re.compile(rb"([a-z0-9][a-z0-9.-]*) [a-z0-9][a-z0-9-]* (?=[IWEF]\d{4} \d\d:|20\d\d-\d\d-\d\dT|\{)")
_DOCKER = re.compile(rb'\{\s*"(?:log|stream|time|attrs)":')
_GO_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_ESCAPES = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)", re.DOTALL)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_KEY = re.compile(rb"[A-Za-z_-]+")
_SEQUENCE = re.compile(rb'sequenceid\\*"*\s*:\s*\\*"*(\d{17,19})')
_CE_TIME = re.compile(rb'(?:\\"time\\":\\"|  time: |"ts":")(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)')


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
    bare = _GO_STRING.sub(b"", line)
    if b'"' in bare or bare.count(b"{") > bare.count(b"}") or line[-1:] == b"=":
        return True
    if line[:1] != b"2" and b"] " not in line:
        return True
    return b'] "' in line and _KEY.fullmatch(bare.rsplit(b" ", 1)[-1]) is not None


def whole(start: RawRecord, more: list[bytes]) -> RawRecord:
    """Return a record with the lines that continue it."""
    return start if not more else start._replace(text=b"\n".join([start.text, *more[:JOINED_LINES]]))


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
    """Return the time of a JSON record: RFC 3339 in our logs, epoch seconds in zap's."""
    match = re.search(rb'"ts":(?:"([^"]+)"|([0-9.eE+]+))', line[:400])
    if match is None:
        return 0.0
    if match.group(1):
        return rfc3339(match.group(1)) or 0.0
    try:
        return float(match.group(2))
    except ValueError:
        return 0.0


def field(line: bytes, key: bytes) -> str:
    """Return the value of ` key="…"` or ` key=…` of a klog record, unquoted; empty when it is not there."""
    at = line.rfind(b" " + key + b"=")
    if at < 0:
        return ""
    at += len(key) + 2
    if line[at : at + 1] == b'"':
        return unquoted(line, at)
    if line[at : at + 2] == b"<\n":
        end = line.find(b"\n >", at)
        body = line[at + 2 : end if end >= 0 else len(line)].decode("utf-8", "replace")
        return "\n".join(part.removeprefix("\t") for part in body.split("\n"))
    end = line.find(b" ", at)
    return line[at : end if end >= 0 else len(line)].decode("utf-8", "replace")


def unquoted(line: bytes, at: int) -> str:
    """Return the Go string that starts with the quote at `at`; a truncated one ends at the end of the line."""
    match = _GO_STRING.match(line, at)
    if match is not None:
        try:
            # Nearly all Go strings are JSON strings too, and these are read at once.
            text: str = orjson.loads(match.group())
        except orjson.JSONDecodeError:
            pass
        else:
            return text
    end = match.end() - 1 if match is not None else len(line)
    text = _ESCAPES.sub(_unescaped, line[at + 1 : end].decode("utf-8", "replace"))
    # Half of a surrogate pair is no character, and cannot be written as UTF-8.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] in "xuU" and len(code) > 1:
        value = int(code[1:], 16)
        return chr(value) if value < 0x110000 else "\ufffd"
    return _NAMED.get(code, code)


def plain(line: bytes, start: bytes) -> str:
    """Return a value that has no escapes, such as an id."""
    at = line.find(start)
    if at < 0:
        return ""
    at += len(start)
    return line[at : line.find(b'"', at)].decode("utf-8", "replace")


class ClockHints(NamedTuple):
    """Year and zone of the times in a file, derived from its content."""

    around: float
    zone: float
    is_guess: bool = False
    """Whether nothing in the file shows the year."""


def clock_hints(sample: bytes, *, modified: float) -> ClockHints:
    """Find year and zone of klog times: from sequence ids and full timestamps in the sample, else from the file."""
    offsets: list[float] = []
    latest = 0.0
    for line in sample.split(b"\n"):
        exact = _exact(line)
        if not exact:
            continue
        latest = max(latest, exact)
        # Only the publisher of a status stamps it with the clock that also stamps its log lines.
        if b"Sending event" in line and line[:1] in b"IWEF" and line[1:5].isdigit():
            try:
                offsets.append(klog_second(line[1:14], around=exact + _DAY) - exact)
            except ValueError:
                continue
    if not latest:
        return ClockHints(modified, 0.0, is_guess=True)
    # A line may repeat an older event, never a later one: the smallest distance is the true one.
    nearest = min((offset for offset in offsets if offset > -_DAY), key=abs, default=0.0)
    zone = round(nearest / _QUARTER) * _QUARTER
    return ClockHints(latest + _DAY, zone if abs(zone) <= 14 * 3600 else 0.0)


def _exact(line: bytes) -> float:
    match = _SEQUENCE.search(line)
    if match:
        return ordering.split(int(match.group(1))).time_ms / 1000
    match = _CE_TIME.search(line)
    if match:
        return rfc3339(match.group(1)) or 0.0
    if line[:2] == b"20" and line[10:11] == b"T":
        return rfc3339(line.split(b"\t", 1)[0].split(b" ", 1)[0]) or 0.0
    return 0.0
