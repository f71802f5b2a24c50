"""Count how often each work passed each stage and mark stages with too few records; draw latency histograms.

The rules: every received request is published and reported on, every published request is received, every instance
broadcasts every status, and every subscribed client is sent it. A stage that is not needed or not observable is never
marked. Pure: traces with their records in, lines out.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from maestropy.trace.logs.evidence import DONE
from maestropy.trace.logs.log_records import LogRecord, RecordKind
from maestropy.trace.logs.model import RequestKey, StageResult, StageState, Trace
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.output import table
from maestropy.trace.report.formatting import short, span
from maestropy.trace.stages import STAGES

_BROKEN = frozenset({StageState.FAILED, StageState.MISSING})
_COUNTED = frozenset({StageState.OK, *_BROKEN})
_LEGEND = (
    "! failed, or fewer than required: 2 as often as 1, 3 as 2, 5 per version, 8 per instance and 7, 9 per client and 8"
)
_STEPS = (1, 2, 5)
_LIMITS = tuple(step * 10**power / 1000 for power in range(8) for step in _STEPS)
_BAR = 40


@dataclass(slots=True)
class _Row:
    key: RequestKey
    requests: int = 0
    counts: Counter[int] = field(default_factory=Counter)
    short_at: set[int] = field(default_factory=set)


class Matrix:
    """A row per work, filled request by request."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._rows: dict[str, _Row] = {}

    def add(self, trace: Trace) -> None:
        """Count a request; its records must be there."""
        row = self._rows.setdefault(trace.key.resource, _Row(key=trace.key))
        row.requests += 1
        stages = trace.stages  # once: they may be found again each time
        counts = {stage.number: _done_count(stage.number, stage.records) for stage in stages}
        needs = _required_counts(trace, stages, counts, self._environment)
        for stage in stages:
            number = stage.number
            row.counts[number] += counts[number]
            if stage.state in _BROKEN or (stage.state in _COUNTED and counts[number] < needs.get(number, 0)):
                row.short_at.add(number)

    def lines(self, *, top: int) -> list[str]:
        """Return the rows as text, those that lack something first; 0 for all."""
        rows = sorted(self._rows.values(), key=lambda row: (not row.short_at, row.key.work_name, row.key.resource))
        shown = rows[: top or len(rows)]
        cells = [
            (
                row.key.work_name or "-",
                row.key.consumer or "-",
                short(row.key.resource),
                f"{row.requests:>8,}",
                *(f"{row.counts[number]:>4,}{'!' if number in row.short_at else ' '}" for number in STAGES),
            )
            for row in shown
        ]
        head = ("work", "consumer", "resource", "requests", *(f"{number:>4}" for number in STAGES))
        rest = len(rows) - len(shown)
        more = [f"  … and {rest:,} more works; --top 0 shows all"] if rest else []
        return [*table(cells, head=head), *more, f"  {_LEGEND}"]


def _done_count(number: int, records: Sequence[LogRecord]) -> int:
    """Return how often a stage was done: records of several kinds may show the same event."""
    kinds: Counter[RecordKind] = Counter()
    for record in records:
        kinds[record.kind] += 1 + record.repeats
    if number == 7:
        sent = kinds[RecordKind.UPDATE_SENT] + kinds[RecordKind.DELETE_SENT] or kinds[RecordKind.UPDATING]
        return sent + kinds[RecordKind.UNCHANGED]
    if number == 4:
        # Both the start and the end of a deletion are logged.
        return kinds[RecordKind.APPLIED] + max(kinds[RecordKind.REMOVED], kinds[RecordKind.DELETING])
    return max(kinds[kind] for kind in DONE[number])


def _required_counts(
    trace: Trace, stages: Sequence[StageResult], counts: Mapping[int, int], environment: Environment
) -> dict[int, int]:
    """Return how often each stage must have been done, by the counts of the stages before it."""
    sent = [record for record in stages[6].records if record.kind in (RecordKind.UPDATE_SENT, RecordKind.DELETE_SENT)]
    return {
        2: counts[1],
        3: counts[2],
        5: 1,
        8: sum(_instances(environment, at=record.at) for record in sent),
        9: sum(_clients(trace, environment, at=at) for at in _broadcast_times(stages, environment)),
    }


def _instances(environment: Environment, *, at: float) -> int:
    """Return how many servers must have broadcast a status; our servers broadcast only for their own clients."""
    return len(
        {server.pod for server in environment.servers if server.first <= at <= server.last and not server.is_ours}
    )


def _broadcast_times(stages: Sequence[StageResult], environment: Environment) -> list[float]:
    """Return when statuses were broadcast, without those that no instance had a client for.

    Broadcasts of our servers are left out: they merge several statuses of a work, with one record for all clients.
    """
    broadcasts: dict[str, list[LogRecord]] = defaultdict(list)
    for record in stages[7].records:
        if record.kind is RecordKind.BROADCAST and not environment.writers[record.file].is_ours:
            broadcasts[record.event].append(record)
    silent = {(record.event, record.file) for record in stages[8].records if record.kind is RecordKind.NO_CLIENTS}
    return [
        records[0].at
        for event, records in broadcasts.items()
        if any((event, record.file) not in silent for record in records)
    ]


def _clients(trace: Trace, environment: Environment, *, at: float) -> int:
    """Return how many clients of its source were subscribed; one if the logs do not show it."""
    own = [period for period in environment.clients if period.name == trace.key.source]
    return sum(period.since <= at <= period.until for period in own) if own else 1


def histogram(times: Mapping[str, Sequence[float]]) -> list[str]:
    """Return, for each hop, how many took how long."""
    lines: list[str] = []
    for hop, taken in times.items():
        buckets = Counter(min(bisect_left(_LIMITS, round(seconds, 6)), len(_LIMITS) - 1) for seconds in taken)
        most = max(buckets.values())
        lines.append(f"  hop {hop}, {len(taken):,} times")
        for bucket in range(min(buckets), max(buckets) + 1):
            count = buckets[bucket]
            bar = "#" * (-(-count * _BAR // most))
            lines.append(f"  {'<= ' + span(_LIMITS[bucket]):>11}  {count:>7,}  {bar}".rstrip())
        lines.append("")
    return lines[:-1]
