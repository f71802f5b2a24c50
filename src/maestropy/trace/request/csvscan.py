"""Read an export of rows, whose pods may be interleaved, row by row: memory holds a few rows of each pod.

An export that has lost the order of its rows has to be held as a whole to be put in order; which one that is shows only
while it is read. Fills a table; knows columns and pods, but no phrases.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from maestropy.trace.request import inputs, lines, reading
from maestropy.trace.request.hits import Hits
from maestropy.trace.request.inputs import Writer
from maestropy.trace.request.lines import Raw

_SAMPLE = 500


class Table(Protocol):
    """Where hits and writers go."""

    hits: Hits
    writers: list[Writer]


class OutOfOrder(Exception):
    """The rows of a pod are not in order of their times."""


class _Pod:
    """The rows of one pod on their way into the table."""

    def __init__(self, into: Table, *, path: str, pod: str, modified: float) -> None:
        self._into = into
        self._modified = modified
        self._waiting: list[Raw] = []
        self._held: Raw | None = None
        self._more: list[bytes] = []
        self._clock: lines.Clock | None = None
        self._last = 0.0
        self.sample = b""
        self.file = len(into.writers)
        self.writer = Writer(path=path, pod=pod, format="csv")
        into.writers.append(self.writer)

    def take(self, raw: Raw, *, is_timed: bool) -> None:
        """Take one line."""
        if is_timed and raw.stamp < self._last:
            raise OutOfOrder
        self._last = raw.stamp
        self.writer.unstamped += is_timed and not raw.stamp
        self.writer.lines += 1
        self.writer.bytes += len(raw.text)
        if self._clock is not None:
            self._next(raw)
            return
        self._waiting.append(raw)
        if len(self._waiting) >= _SAMPLE:
            self._start()

    def _start(self) -> None:
        # The first rows tell year and zone of the times in them.
        self.sample = b"\n".join(raw.text for raw in self._waiting)
        bearings = lines.bearings(self.sample, modified=self._modified)
        self._clock = lines.Clock(around=bearings.around, zone=bearings.zone)
        self.writer.is_year_guessed = bearings.is_guess and not self._waiting[0].stamp
        for raw in self._waiting:
            self._next(raw)
        self._waiting.clear()

    def _next(self, raw: Raw) -> None:
        if lines.starts_record(raw.text):
            self._close()
            self._held, self._more = raw, []
        elif self._held is not None and len(self._more) < lines.JOINED_LINES:
            self._more.append(raw.text)

    def _close(self) -> None:
        if self._held is None or self._clock is None:
            return
        raw = lines.unwrapped(lines.whole(self._held, self._more))
        said = reading.read(raw, self._clock, file=self.file)
        if said is not None:
            self.writer.note(said)
            self._into.hits.add(said.hit)
        else:
            at = self._clock.at(raw)
            self.writer.reach(at, at)

    def finish(self) -> None:
        """Read what is left."""
        if self._clock is None:
            self._start()
        self._close()
        self._held = None


def read_rows(
    into: Table, rows: Iterable[tuple[str, Raw]], *, path: str, modified: float, is_timed: bool
) -> Iterator[tuple[Writer, bytes]]:
    """Read rows of (pod, line) into the table; yield the writers and the beginnings of what they wrote."""
    pods: dict[str, _Pod] = {}
    for order, (pod, raw) in enumerate(rows):
        found = pods.get(pod)
        if found is None:
            found = pods[pod] = _Pod(into, path=path, pod=pod or inputs.pod_of(path), modified=modified)
        # Rows have no offsets that could be read again; what counts is the order in which they are read.
        found.take(raw._replace(offset=order), is_timed=is_timed)
    for each in pods.values():
        each.finish()
        yield each.writer, each.sample


def in_order(rows: Iterable[tuple[str, Raw]]) -> list[tuple[str, Raw]]:
    """Return rows in order of their times; those of one moment keep theirs."""
    return sorted(rows, key=lambda row: row[1].stamp)
