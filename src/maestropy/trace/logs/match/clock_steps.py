"""Find clocks that were set while a log was written, and correct the times after each step. Pure.

A message cannot arrive before it was sent. One that an agent received bounds how far its clock can be ahead of the
servers', one that it sent bounds how far it can be behind. Where bounds of one log contradict each other, its clock, or
the servers', was set in between. A single pair that contradicts all others is a message that was taken for another one.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from maestropy.trace.logs.log_records import RecordKind, RecordTable
from maestropy.trace.logs.match.message_pairs import MessagePairs
from maestropy.trace.logs.read.log_writers import LogWriter

_STEP: Final = 5.0
"""Seconds by which bounds must contradict each other; clocks drift by less, and pairs are off by less."""
_BACK: Final = 1.0
"""Seconds by which the times in a log go back where its clock was set back: lines of one process are in order."""
_FEWEST: Final = 2
"""Pairs that a clock must hold for."""
_MOST: Final = 4
"""Periods that one log may have; more are of clocks that differ between servers, and of none that was set."""
Bounds = dict[int, tuple[float, float]]
"""By the record of an agent, between which values its clock can be ahead of the servers'."""


@dataclass(slots=True)
class _Period:
    """The pairs of a log for which one offset of its clock is possible."""

    first: int
    """The record of its first pair, by its place among the records of the file."""
    low: float = -math.inf
    high: float = math.inf
    count: int = 0

    def fits(self, low: float, high: float) -> bool:
        return max(self.low, low) - min(self.high, high) <= _STEP

    def add(self, low: float, high: float) -> None:
        self.low, self.high, self.count = max(self.low, low), min(self.high, high), self.count + 1

    @property
    def is_bounded(self) -> bool:
        return self.high - self.low <= _STEP

    @property
    def ahead(self) -> float:
        """By how many seconds the clock is ahead of the servers'."""
        if math.isinf(self.low) or math.isinf(self.high):
            return self.low if math.isinf(self.high) else self.high
        return (self.low + self.high) / 2


def correct(records: RecordTable, writers: Sequence[LogWriter]) -> MessagePairs | None:
    """Correct the times of agents' logs in which a clock was set, and note the steps in their writers.

    Return the pairs of messages if no time was changed, so that nobody has to find them again.
    """
    pairs = MessagePairs(records, writers, times=records.times)
    # Most clocks are never set: a log whose pairs agree needs no look at the order of its records.
    suspects = {file for file in pairs.files if not _do_agree(pairs, file)}
    if not suspects:
        return pairs
    by_file: dict[int, list[int]] = defaultdict(list)
    for index, file in enumerate(records.files):
        if file in suspects:
            by_file[file].append(index)
    for file, indices in by_file.items():
        indices.sort(key=lambda index: (records.offsets[index], records.lines[index]))
        _correct_file(records, writers[file], indices, _bounds(pairs, file))
    return None


def _do_agree(pairs: MessagePairs, file: int) -> bool:
    high = min((took for _, took in pairs.down(file)), default=math.inf)
    low = max((-took for _, took in pairs.up(file)), default=-math.inf)
    return low - high <= _STEP


def _bounds(pairs: MessagePairs, file: int) -> Bounds:
    received = {index: (-math.inf, took) for index, took in pairs.down(file)}
    return received | {index: (-took, math.inf) for index, took in pairs.up(file)}


def _correct_file(records: RecordTable, writer: LogWriter, indices: Sequence[int], bounds: Bounds) -> None:
    periods = _periods(indices, bounds)
    times = [records.times[index] for index in indices]
    if len(periods) > _MOST:
        return
    starts = [0, *(_start(times, before, after, indices, bounds) for before, after in pairwise(periods))]
    if not _are_sure(periods, starts, times):
        return
    usual = max(periods, key=lambda period: period.count).ahead
    last = writer.last
    for number, (period, start) in enumerate(zip(periods, starts, strict=True)):
        end = starts[number + 1] if number + 1 < len(starts) else len(indices)
        ahead = period.ahead - usual
        if number:
            writer.steps.append((times[start] - ahead, period.ahead - periods[number - 1].ahead))
        for index in indices[start:end]:
            records.times[index] -= ahead
        if number + 1 == len(periods) and max(times[start:end]) >= max(times):
            last -= ahead  # the last line, which need not be a record, is of this period
    _describe_again(records, writer, indices, last=last)


def _periods(indices: Sequence[int], bounds: Bounds) -> list[_Period]:
    periods: list[_Period] = []
    for place, index in enumerate(indices):
        if index in bounds:
            if not periods or not periods[-1].fits(*bounds[index]):
                periods.append(_Period(first=place))
            periods[-1].add(*bounds[index])
    return periods


def _start(
    times: Sequence[float],
    before: _Period,
    after: _Period,
    indices: Sequence[int],
    bounds: Bounds,
) -> int:
    """Return the place of the first record after a step: where the times make it, at the latest at the first pair."""
    earlier = max(place for place in range(before.first, after.first) if indices[place] in bounds)
    step = after.ahead - before.ahead
    jumps = {place: times[place] - times[place - 1] for place in range(earlier + 1, after.first + 1)}
    place = (min if step < 0 else max)(jumps, key=jumps.__getitem__)
    is_shown = jumps[place] < -_BACK if step < 0 else jumps[place] > step - _BACK
    return place if is_shown else after.first


def _are_sure(periods: Sequence[_Period], starts: Sequence[int], times: Sequence[float]) -> bool:
    """Say whether each period has pairs in both directions that agree, or the times show the step to it."""
    return all(period.count >= _FEWEST for period in periods) and all(
        period.is_bounded or times[start] - times[start - 1] < -_BACK
        for period, start in zip(periods[1:], starts[1:], strict=True)
    )


def _describe_again(records: RecordTable, writer: LogWriter, indices: Sequence[int], *, last: float) -> None:
    """Set the times of a writer by those of its records."""
    times = [records.times[index] for index in indices]
    writer.first, writer.last = min(times), max(last, *times)
    writer.started = list(_moments(records, indices, RecordKind.STARTED))
    writer.stopped = list(_moments(records, indices, RecordKind.STOPPED))
    writer.progress = []  # not in the table, so that nothing can be said


def _moments(records: RecordTable, indices: Sequence[int], kind: RecordKind) -> Iterator[float]:
    return (records.times[index] for index in indices if records.kinds[index] == kind)
