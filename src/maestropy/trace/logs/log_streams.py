"""Judge requests while their logs are still being written: data in as it arrives, traces out as they change.

The coverage of a silent log grows with the time since its last byte, measured by the local monotonic clock, so clocks
of pods need not agree. Settled requests are dropped after a while. Reads no files and no clock.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from maestropy.trace.logs import tracer
from maestropy.trace.logs.log_records import RecordTable
from maestropy.trace.logs.model import SETTLED, Options, RequestKey, RequestVerdict, Trace
from maestropy.trace.logs.read import lines
from maestropy.trace.logs.read.lines import RawRecord
from maestropy.trace.logs.read.log_writers import Environment, LogWriter, pod_of

GRACE = 0.5
"""Seconds in which other logs may still add records of a request that one log shows as ended."""
_WAITS = "MT-411"
_FULL = 20_000
_LONGEST_RECORD = 1 << 20


@dataclass(slots=True, kw_only=True)
class _Stream:
    """One writer's log as it grows."""

    file: int
    clock: lines.RecordClock | None = None
    tail: bytes = b""
    number: int = 0
    offset: int = 0
    held: list[bytes] = field(default_factory=list)
    """The lines of the record that may continue."""
    heard: float = 0.0
    last_moment: float = 0.0
    """The last moment that its lines name."""


class LogStreams:
    """The records of all log streams so far, and the requests in them."""

    def __init__(self, *, options: Options) -> None:
        self._options = options
        self._records = RecordTable()
        self._writers: list[LogWriter] = []
        self._streams: dict[str, _Stream] = {}
        self._touched: set[str] = set()
        self._open: set[str] = set()

    def feed(self, name: str, data: bytes, *, now: float, moment: float) -> None:
        """Add data that `name` wrote: `now` is the monotonic time, `moment` the wall clock time."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = _Stream(file=len(self._writers), heard=now)
            self._writers.append(LogWriter(path=name, pod=pod_of(name)))
        if stream.clock is None:
            clock_hints = lines.clock_hints(data, modified=moment)
            stream.clock = lines.RecordClock(around=clock_hints.around, zone=clock_hints.zone)
        stream.heard = now
        whole = stream.tail + data
        *complete, stream.tail = whole.split(b"\n")
        if len(stream.tail) > _LONGEST_RECORD:
            stream.tail = b""
        for line in complete:
            if lines.starts_record(line) and stream.held:
                self._take(stream)
            stream.held.append(line.rstrip(b"\r"))
            if len(stream.held) == 1 and _is_whole(stream.held[0]):
                self._take(stream)
        self._writers[stream.file].lines += len(complete)
        self._writers[stream.file].bytes += len(data)

    def settle(self, *, now: float, timeout: float) -> None:
        """Close records that were not continued within `timeout`, and extend the writers' coverage to `now`."""
        for stream in self._streams.values():
            if now - stream.heard >= timeout and stream.held:
                self._take(stream)
            writer = self._writers[stream.file]
            if stream.last_moment:
                writer.last = max(writer.last, stream.last_moment + (now - stream.heard))

    def _take(self, stream: _Stream) -> None:
        assert stream.clock
        writer = self._writers[stream.file]
        text = b"\n".join(stream.held)
        raw = lines.unwrapped(RawRecord(stream.number + 1, stream.offset, text))
        stream.number += len(stream.held)
        stream.offset += sum(len(line) + 1 for line in stream.held)
        stream.held = []
        at = stream.clock.at(raw) if lines.starts_record(raw.text) else 0.0
        stream.last_moment = max(stream.last_moment, at)
        writer.first = writer.first or at
        parsed = writer.take(raw, stream.clock, self._records, file=stream.file)
        if parsed is None:
            return
        writer.format = "json" if raw.text[:1] == b"{" else "klog" if raw.text[:1] in b"IWEF" else "text"
        if parsed.record.resource:
            self._touched.add(parsed.record.resource)

    @property
    def environment(self) -> Environment:
        """What the logs show of the system so far."""
        return tracer.read_environment(self._records, self._writers, options=self._options)

    def changed(self) -> Iterator[Trace]:
        """Yield the requests of resources with new records since the last call, and those not yet final."""
        if not self._writers:
            return
        environment = self.environment
        resources = frozenset(self._touched | self._open)
        self._touched = set()
        still_open: Counter[str] = Counter()
        for trace in tracer.traces(self._records, environment, options=self._options, wanted=resources):
            is_over = trace.verdict is not RequestVerdict.PENDING
            if not is_over or not is_final(trace, end=environment.end, timeout=self._options.stage_timeout):
                still_open[trace.key.resource] += 1
            yield trace
        self._open = set(still_open)

    def drop_settled(self, *, keep: float) -> None:
        """Drop settled requests when the table is full."""
        if len(self._records) < _FULL:
            return
        end = max((writer.last for writer in self._writers), default=0.0)
        kept = RecordTable()
        for record in self._records:
            if record.resource in self._open or record.at > end - keep or not record.stage:
                kept.add(record)
        self._records = kept


def _is_whole(line: bytes) -> bool:
    """Say whether a record is complete with this line: a structured one is, unless a multi-line value starts there."""
    return lines.starts_record(line) and (b'] "' in line[:200] or line[:1] == b"{") and not line.endswith(b"=<")


def is_final(trace: Trace, *, end: float, timeout: float) -> bool:
    """Say whether a verdict will not change soon: a success, a failure or a deletion that waited for `timeout`."""
    if trace.verdict is RequestVerdict.PENDING and not any(finding.code == _WAITS for finding in trace.findings):
        return False
    return end - trace.end >= (GRACE if trace.verdict in SETTLED else timeout)


def request_identity(key: RequestKey) -> tuple[str, ...]:
    """Return what identifies a request, also when more of it becomes known."""
    return key.resource, key.action, str(key.version), str(key.incarnation), key.cloudevent_id or key.op_id
