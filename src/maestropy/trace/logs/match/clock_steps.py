"""Find clocks that were set while a log was written, and correct the times after each step. Pure.

A message cannot arrive before it was sent. One that an agent received bounds how far its clock can be ahead of the
servers', one that it sent bounds how far it can be behind. Where bounds of one log contradict each other, its clock, or
the servers', was set in between. A single pair that contradicts all others is a message that was taken for another one.
A status that an agent logged after the request that it reports on, with an earlier time, shows the same without them.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from maestropy.trace.logs.log_records import RecordKind, RecordTable
from maestropy.trace.logs.match import log_environment
from maestropy.trace.logs.match.message_pairs import MessagePairs
from maestropy.trace.logs.read.log_writers import LogWriter

_STEP: Final = 5.0
"""Seconds by which bounds must contradict each other; clocks drift by less, and pairs are off by less."""
_SMALL_STEP: Final = 1.0
"""The same where the times of the log, or more pairs, show it too."""
_BACK: Final = 1.0
"""Seconds by which the times in a log go back where its clock was set back: lines of one process are in order."""
_FEWEST: Final = 2
"""Pairs that a clock must hold for."""
_FEWEST_OF_SMALL: Final = 4
"""The same where bounds contradict each other by less than five seconds."""
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

    def fits(self, low: float, high: float, step: float) -> bool:
        return max(self.low, low) - min(self.high, high) <= step

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


def correct(records: RecordTable, writers: Sequence[LogWriter], *, known: Sequence[float] = ()) -> MessagePairs | None:
    """Correct the times of agents' logs in which a clock was set, and note the steps in their writers.

    `known` says by how much clocks are known to be ahead. Return the pairs of messages if no time was changed, so that
    nobody has to find them again.
    """
    pairs = MessagePairs(records, writers, times=log_environment.corrected(records, known))
    # Most clocks are never set: a log whose pairs agree needs no look at the order of its records.
    suspects = {file for file in pairs.files if not _do_agree(pairs, file) or pairs.has_early_status(file)}
    if not suspects:
        return pairs
    by_file: dict[int, list[int]] = defaultdict(list)
    for index, file in enumerate(records.files):
        if file in suspects:
            by_file[file].append(index)
    for file, indices in by_file.items():
        indices.sort(key=lambda index: (records.offsets[index], records.lines[index]))
        log = _AgentLog(indices, [records.times[index] for index in indices], _bounds(pairs, file))
        for step in (_SMALL_STEP, _STEP):
            periods = log.periods(step)
            starts = log.starts(periods, step)
            if log.are_sure(periods, starts, step):
                _correct_file(records, writers[file], log, list(zip(periods, starts, strict=True)))
                break
        else:
            writers[file].is_clock_unsure = log.goes_back
    return None


def _do_agree(pairs: MessagePairs, file: int) -> bool:
    high = min((took for _, took in pairs.down(file)), default=math.inf)
    low = max((-took for _, took in pairs.up(file)), default=-math.inf)
    return low - high <= _SMALL_STEP


def _bounds(pairs: MessagePairs, file: int) -> Bounds:
    received = {index: (-math.inf, took) for index, took in pairs.down(file)}
    return received | {index: (-took, math.inf) for index, took in pairs.up(file)}


class _AgentLog:
    """The records of an agent's log in the order in which they were written."""

    def __init__(self, indices: Sequence[int], times: Sequence[float], bounds: Bounds) -> None:
        self.indices = indices
        self.times = times
        self._bounds = [bounds.get(index) for index in indices]

    def periods(self, step: float) -> list[_Period]:
        """Return the periods that bounds show which contradict each other; else those that the times show."""
        periods: list[_Period] = []
        for place, bound in enumerate(self._bounds):
            if bound is not None:
                if not periods or not periods[-1].fits(*bound, step):
                    periods.append(_Period(first=place))
                periods[-1].add(*bound)
        return periods if len(periods) != 1 else self._periods_by_times()

    def _periods_by_times(self) -> list[_Period]:
        back = min(range(1, len(self.times)), key=self._jump, default=0)
        if not back or self._jump(back) > -_BACK:
            return []
        periods = [_Period(first=0), _Period(first=back)]
        for place, bound in enumerate(self._bounds):
            if bound is not None:
                periods[place >= back].add(*bound)
        if not all(period.count for period in periods):
            return []
        return periods

    @property
    def goes_back(self) -> bool:
        """Whether its times go back anywhere."""
        return any(self._jump(place) < -_BACK for place in range(1, len(self.times)))

    def _jump(self, place: int) -> float:
        return self.times[place] - self.times[place - 1]

    def starts(self, periods: Sequence[_Period], step: float) -> list[int]:
        """Return the place of the first record of each period."""
        return [0, *(self._start(before, after, step) for before, after in pairwise(periods))]

    def _start(self, before: _Period, after: _Period, step: float) -> int:
        """Return the place of the first record after a step: where the times make it, at the latest at the first pair.

        Many pairs allow the clock of either period: only one that does not allow that after the step is before it.
        """
        bounds = [(place, self._bounds[place]) for place in range(before.first, after.first)]
        contradicting = [place for place, bound in bounds if bound is not None and not after.fits(*bound, step)]
        earlier = contradicting[-1] if contradicting else before.first
        jumps = {place: self._jump(place) for place in range(earlier + 1, after.first + 1)}
        size = after.ahead - before.ahead
        place = (min if size < 0 else max)(jumps, key=jumps.__getitem__)
        is_shown = jumps[place] < -_BACK if size < 0 else jumps[place] > size - _BACK
        return place if is_shown else after.first

    def are_sure(self, periods: Sequence[_Period], starts: Sequence[int], step: float) -> bool:
        """Say whether each step is shown by the times, or by pairs in both directions before and after it."""
        fewest = _FEWEST if step >= _STEP else _FEWEST_OF_SMALL
        return 1 < len(periods) <= _MOST and all(
            self._is_shown(start, after.ahead - before.ahead)
            or (after.is_bounded and min(before.count, after.count) >= fewest)
            for (before, after), start in zip(pairwise(periods), starts[1:], strict=True)
        )

    def _is_shown(self, place: int, size: float) -> bool:
        """Say whether the times of the log make a step there; a pause is hardly ever as long as a step forward."""
        jump = self._jump(place)
        return jump < -_BACK if size < 0 else abs(jump - size) <= _BACK


def _correct_file(
    records: RecordTable, writer: LogWriter, log: _AgentLog, periods: Sequence[tuple[_Period, int]]
) -> None:
    """Correct the times of all periods but the one in which the clock agrees best with the servers'."""
    indices, times = log.indices, log.times
    usual = min((period.ahead for period, _ in periods), key=abs)
    last = writer.last
    for number, (period, start) in enumerate(periods):
        end = periods[number + 1][1] if number + 1 < len(periods) else len(indices)
        ahead = period.ahead - usual
        if number:
            writer.steps.append((times[start] - ahead, period.ahead - periods[number - 1][0].ahead))
        for index in indices[start:end]:
            records.times[index] -= ahead
        if number + 1 == len(periods) and max(times[start:end]) >= max(times):
            last -= ahead  # the last line, which need not be a record, is of this period
    _describe_again(records, writer, indices, last=last)


def _describe_again(records: RecordTable, writer: LogWriter, indices: Sequence[int], *, last: float) -> None:
    """Set the times of a writer by those of its records."""
    times = [records.times[index] for index in indices]
    writer.first, writer.last = min(times), max(last, *times)
    writer.started = list(_moments(records, indices, RecordKind.STARTED))
    writer.stopped = list(_moments(records, indices, RecordKind.STOPPED))
    writer.progress = []  # not in the table, so that nothing can be said


def _moments(records: RecordTable, indices: Sequence[int], kind: RecordKind) -> Iterator[float]:
    return (records.times[index] for index in indices if records.kinds[index] == kind)
