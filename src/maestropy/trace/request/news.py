"""What is new about requests that are followed: verdicts that have become final, or changed after all. Pure."""

from collections import Counter, OrderedDict
from collections.abc import Iterable

from maestropy.trace.output import printable
from maestropy.trace.request.model import Trace, Verdict
from maestropy.trace.request.overview import signs
from maestropy.trace.request.statistics import PROBLEMS
from maestropy.trace.request.stream import is_final, name_of
from maestropy.trace.request.waterfall import outcome
from maestropy.trace.request.words import clock, short, span

_REMEMBERED = 100_000
_MARKS = {Verdict.COMPLETE: "✓", Verdict.FAILED: "✕", Verdict.INCOMPLETE: "!", Verdict.SUPERSEDED: "»",
          Verdict.NO_OP: "–", Verdict.UNKNOWN: "?", Verdict.PENDING: "…"}  # fmt: skip


class News:
    """Tells each final verdict once, and again when it turned out otherwise."""

    def __init__(self, *, patience: float) -> None:
        self._patience = patience
        self._told: OrderedDict[tuple[str, ...], Verdict] = OrderedDict()
        self.counts: Counter[Verdict] = Counter()
        self._open: list[Trace] = []

    def take(self, traces: Iterable[Trace], *, end: float) -> list[Trace]:
        """Return the requests to tell, in order of time."""
        found = []
        self._open = []
        for trace in traces:
            if not is_final(trace, end=end, patience=self._patience):
                self._open.append(trace)
                continue
            name = name_of(trace.key)
            before = self._told.get(name)
            # What was complete stays so: that a later request overtook it is no news about this one.
            if before is trace.verdict or before is Verdict.COMPLETE:
                continue
            if before is not None:
                self.counts[before] -= 1
            self.counts[trace.verdict] += 1
            self._told[name] = trace.verdict
            found.append(trace)
        while len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        return sorted(found, key=lambda trace: trace.end)

    def last(self) -> list[Trace]:
        """Return those that have failed so far; nobody waits any longer whether another attempt makes it good."""
        failed = [trace for trace in self._open if trace.verdict in PROBLEMS]
        self._open = [trace for trace in self._open if trace.verdict not in PROBLEMS]
        self.counts.update(trace.verdict for trace in failed)
        return failed

    @property
    def under_way(self) -> int:
        """How many have no final verdict yet."""
        return len(self._open)

    @property
    def has_problems(self) -> bool:
        """Say whether any request that was told has failed or stopped."""
        return any(self.counts[verdict] > 0 for verdict in PROBLEMS)

    def summary(self) -> str:
        """Return the counts in one line."""
        total = sum(self.counts.values())
        parts = [f"{count:,} {verdict.value}" for verdict, count in self.counts.most_common() if count]
        parts += [f"{self.under_way:,} under way"] if self.under_way else []
        return f"{total:,} request{'s' * (total != 1)}" + (f": {', '.join(parts)}" if parts else "")


def line(trace: Trace) -> str:
    """Return one request as one line."""
    key = trace.key
    why = "" if trace.verdict is Verdict.COMPLETE else f"  {outcome(trace)}"
    name = printable(key.work_name or short(key.resource))
    return (
        f"{clock(trace.end)}  {_MARKS[trace.verdict]} {trace.verdict.value:<10}  {name:<28}  "
        f"{printable(key.consumer or '-'):<12}  {f'{key.action} v{key.version}':<10}  {signs(trace)}  "
        f"{span(trace.duration):>7}{why}"
    )
