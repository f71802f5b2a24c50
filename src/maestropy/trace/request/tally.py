"""How often each work passed each stage, and where that is less than it must be; how long hops take, as bars.

What must be: every request that was received is published and answered, what was published is received, every instance
tells of every status, and every client that listens is sent it. A stage that need not come, or that the logs cannot
show, is never too few. Pure: traces with their records go in, lines come out.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from maestropy.trace.output import table
from maestropy.trace.request.codes import STAGES
from maestropy.trace.request.hits import Hit, What
from maestropy.trace.request.inputs import Environment
from maestropy.trace.request.model import Key, State, Trace
from maestropy.trace.request.words import short, span

_KINDS: dict[int, tuple[What, ...]] = {
    1: (What.WISH,),
    2: (What.PUBLISHING, What.SENDING_SPEC, What.TO_AGENTS),
    3: (What.RECEIVED_SPEC, What.STORED),
    4: (What.APPLIED, What.REMOVED, What.DELETING),
    5: (What.SENDING_STATUS,),
    6: (What.RECEIVED_STATUS, What.STATUS_TAKEN),
    7: (What.UPDATE_SENT, What.DELETE_SENT, What.UPDATING, What.UNCHANGED),
    8: (What.BROADCAST,),
    9: (What.TO_CLIENTS,),
}
_BROKEN = frozenset({State.FAILED, State.MISSING})
_COUNTED = frozenset({State.OK, *_BROKEN})
_LEGEND = (
    "! failed, or less than must be: 2 as often as 1, 3 as 2, 5 per version, 8 per instance and 7, 9 per client and 8"
)
_STEPS = (1, 2, 5)
_LIMITS = tuple(step * 10**power / 1000 for power in range(8) for step in _STEPS)
_BAR = 40


@dataclass(slots=True)
class _Row:
    key: Key
    requests: int = 0
    counts: Counter[int] = field(default_factory=Counter)
    short_at: set[int] = field(default_factory=set)


class Matrix:
    """A row per work, filled request by request."""

    def __init__(self, known: Environment) -> None:
        self._known = known
        self._rows: dict[str, _Row] = {}

    def add(self, trace: Trace) -> None:
        """Count a request; its records must be there."""
        row = self._rows.setdefault(trace.key.resource, _Row(key=trace.key))
        row.requests += 1
        counts = {stage.number: _times(stage.number, stage.hits) for stage in trace.stages}
        needs = _needs(trace, counts, self._known)
        for stage in trace.stages:
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


def _times(number: int, hits: Sequence[Hit]) -> int:
    """Return how often a stage was done: several kinds of records may tell of the same."""
    kinds = Counter(hit.what for hit in hits)
    if number == 7:
        told = kinds[What.UPDATE_SENT] + kinds[What.DELETE_SENT] or kinds[What.UPDATING]
        return told + kinds[What.UNCHANGED]
    if number == 4:
        # Of a deletion both its beginning and its end are told.
        return kinds[What.APPLIED] + max(kinds[What.REMOVED], kinds[What.DELETING])
    return max(kinds[kind] for kind in _KINDS[number])


def _needs(trace: Trace, counts: Mapping[int, int], known: Environment) -> dict[int, int]:
    """Return how often stages must have been done, by what came before them."""
    sent = [hit for hit in trace.stages[6].hits if hit.what in (What.UPDATE_SENT, What.DELETE_SENT)]
    return {
        2: counts[1],
        3: counts[2],
        5: 1,
        8: sum(_instances(known, at=hit.at) for hit in sent),
        9: sum(_clients(trace, known, at=at) for at in _told(trace, known)),
    }


def _instances(known: Environment, *, at: float) -> int:
    """Return how many servers must have told of a status of that time: of ours, only those with clients do."""
    return len({each.pod for each in known.servers if each.first <= at <= each.last and not each.is_ours})


def _told(trace: Trace, known: Environment) -> list[float]:
    """Return when statuses were told of, but for those that no instance had a client for.

    Those of our servers are left out: they send several statuses of a work as one, with one line for all clients.
    """
    told: dict[str, list[Hit]] = defaultdict(list)
    for hit in trace.stages[7].hits:
        if hit.what is What.BROADCAST and not known.writers[hit.file].is_ours:
            told[hit.event].append(hit)
    silent = {(hit.event, hit.file) for hit in trace.stages[8].hits if hit.what is What.NO_CLIENTS}
    return [hits[0].at for event, hits in told.items() if any((event, hit.file) not in silent for hit in hits)]


def _clients(trace: Trace, known: Environment, *, at: float) -> int:
    """Return how many clients of its source listened; where the logs do not tell, there was one."""
    mine = [each for each in known.clients if each.name == trace.key.source]
    return sum(each.since <= at <= each.until for each in mine) if mine else 1


def histogram(times: Mapping[str, Sequence[float]]) -> list[str]:
    """Return, for each hop, how many took how long."""
    lines: list[str] = []
    for hop, taken in times.items():
        buckets = Counter(min(bisect_left(_LIMITS, round(each, 6)), len(_LIMITS) - 1) for each in taken)
        most = max(buckets.values())
        lines.append(f"  hop {hop}, {len(taken):,} times")
        for bucket in range(min(buckets), max(buckets) + 1):
            count = buckets[bucket]
            bar = "#" * (-(-count * _BAR // most))
            lines.append(f"  {'<= ' + span(_LIMITS[bucket]):>11}  {count:>7,}  {bar}".rstrip())
        lines.append("")
    return lines[:-1]
