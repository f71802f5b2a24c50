"""Judge requests while their logs are still being written: bytes in as they come, traces out as they change.

A writer that is silent has nothing to say: what its log covers grows with the time that passes, measured by our clock
from its last byte, so that clocks need not agree. What was settled long ago is forgotten. Reads nothing, asks no clock.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from maestropy.trace.request import lines, reading, survey
from maestropy.trace.request.hits import Hits
from maestropy.trace.request.inputs import Environment, Writer, pod_of
from maestropy.trace.request.lines import Raw
from maestropy.trace.request.model import Key, Options, Trace, Verdict

GRACE = 0.5
"""Seconds in which other logs may still bring records of a request that one log shows to have ended."""
_FULL = 20_000
_LONGEST_RECORD = 1 << 20
_SETTLED = frozenset({Verdict.COMPLETE, Verdict.NO_OP, Verdict.SUPERSEDED})


@dataclass(slots=True, kw_only=True)
class _Stream:
    """One writer's log as it grows."""

    file: int
    clock: lines.Clock | None = None
    tail: bytes = b""
    number: int = 0
    offset: int = 0
    held: list[bytes] = field(default_factory=list)
    """The lines of the record that may go on."""
    heard: float = 0.0
    reach: float = 0.0
    """The last moment that its lines name."""


class Streams:
    """All that was said so far by all writers, and what it means."""

    def __init__(self, *, options: Options) -> None:
        self._options = options
        self._hits = Hits()
        self._writers: list[Writer] = []
        self._streams: dict[str, _Stream] = {}
        self._touched: set[str] = set()
        self._open: set[str] = set()

    def feed(self, name: str, data: bytes, *, now: float, moment: float) -> None:
        """Take what `name` wrote: `now` is the monotonic time, `moment` the date."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = _Stream(file=len(self._writers), heard=now)
            self._writers.append(Writer(path=name, pod=pod_of(name)))
        if stream.clock is None:
            bearings = lines.bearings(data, modified=moment)
            stream.clock = lines.Clock(around=bearings.around, zone=bearings.zone)
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

    def quiet(self, *, now: float, patience: float) -> None:
        """Take the records that nobody has continued for a while, and let the writers' coverage reach `now`."""
        for stream in self._streams.values():
            if now - stream.heard >= patience and stream.held:
                self._take(stream)
            writer = self._writers[stream.file]
            if stream.reach:
                writer.last = max(writer.last, stream.reach + (now - stream.heard))

    def _take(self, stream: _Stream) -> None:
        assert stream.clock
        writer = self._writers[stream.file]
        text = b"\n".join(stream.held)
        raw = lines.unwrapped(Raw(stream.number + 1, stream.offset, text))
        stream.number += len(stream.held)
        stream.offset += sum(len(line) + 1 for line in stream.held)
        stream.held = []
        at = stream.clock.at(raw) if lines.starts_record(raw.text) else 0.0
        stream.reach = max(stream.reach, at)
        writer.first = writer.first or at
        said = reading.read(raw, stream.clock, file=stream.file)
        if said is None:
            return
        writer.note(said)
        writer.format = "json" if raw.text[:1] == b"{" else "klog" if raw.text[:1] in b"IWEF" else "text"
        self._hits.add(said.hit)
        if said.hit.resource:
            self._touched.add(said.hit.resource)

    @property
    def known(self) -> Environment:
        """What the logs show of the system so far."""
        return survey.surroundings(self._hits, self._writers, options=self._options)

    def changed(self) -> Iterator[Trace]:
        """Yield the requests whose resources were spoken of since the last call, and those not yet settled."""
        if not self._writers:
            return
        known = self.known
        wanted = frozenset(self._touched | self._open)
        self._touched = set()
        still_open: Counter[str] = Counter()
        for trace in survey.traces(self._hits, known, options=self._options, wanted=wanted):
            if not is_final(trace, end=known.end, patience=self._options.stage_timeout):
                still_open[trace.key.resource] += 1
            yield trace
        self._open = set(still_open)

    def forget(self, *, keep: float) -> None:
        """Let go of settled requests when the table is full: nobody will ask for them again."""
        if len(self._hits) < _FULL:
            return
        end = max((each.last for each in self._writers), default=0.0)
        kept = Hits()
        for hit in self._hits:
            if hit.resource in self._open or hit.at > end - keep or not hit.stage:
                kept.add(hit)
        self._hits = kept


def _is_whole(line: bytes) -> bool:
    """Say whether a record cannot go on after this line: a structured one ends with it, unless a value begins there."""
    return lines.starts_record(line) and (b'] "' in line[:200] or line[:1] == b"{") and not line.endswith(b"=<")


def is_final(trace: Trace, *, end: float, patience: float) -> bool:
    """Say whether a verdict will stay: what went well at once, what did not when nobody has tried again for long."""
    if trace.verdict is Verdict.PENDING:
        return False
    return end - trace.end >= (GRACE if trace.verdict in _SETTLED else patience)


def name_of(key: Key) -> tuple[str, ...]:
    """Return what tells one request from all others, also when more of it becomes known."""
    return key.resource, key.action, str(key.version), str(key.life), key.ce or key.op
