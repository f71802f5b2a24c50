"""Report verdicts of followed requests when they become final, and again when they change. Pure."""

from collections import Counter, OrderedDict
from collections.abc import Iterable

from maestropy.trace.logs.log_streams import is_final, request_identity
from maestropy.trace.logs.model import PROBLEMS, RequestVerdict, Trace
from maestropy.trace.output import printable
from maestropy.trace.report.formatting import clock, short, span
from maestropy.trace.report.overview import signs
from maestropy.trace.report.waterfall import outcome

_REMEMBERED = 100_000
_MARKS = {
    RequestVerdict.COMPLETE: "✓",
    RequestVerdict.FAILED: "✕",
    RequestVerdict.INCOMPLETE: "!",
    RequestVerdict.SUPERSEDED: "»",
    RequestVerdict.NO_OP: "–",
    RequestVerdict.UNKNOWN: "?",
    RequestVerdict.PENDING: "…",
}


class VerdictChanges:
    """Returns each final verdict once, and again when it changes."""

    def __init__(self, *, timeout: float) -> None:
        self._patience = timeout
        self._reported: OrderedDict[tuple[str, ...], RequestVerdict] = OrderedDict()
        self.counts: Counter[RequestVerdict] = Counter()
        self._open: list[Trace] = []

    def take(self, traces: Iterable[Trace], *, end: float) -> list[Trace]:
        """Return the requests whose verdict is new, in order of time."""
        changed = []
        self._open = []
        for trace in traces:
            if not is_final(trace, end=end, timeout=self._patience):
                self._open.append(trace)
                continue
            name = request_identity(trace.key)
            before = self._reported.get(name)
            # A complete request stays complete: that a later request superseded it does not matter.
            if before is trace.verdict or before is RequestVerdict.COMPLETE:
                continue
            if before is not None:
                self.counts[before] -= 1
            self.counts[trace.verdict] += 1
            self._reported[name] = trace.verdict
            changed.append(trace)
        while len(self._reported) > _REMEMBERED:
            self._reported.popitem(last=False)
        return sorted(changed, key=lambda trace: trace.end)

    def remaining_failures(self) -> list[Trace]:
        """Return the requests that have failed so far and might still be retried."""
        failed = [trace for trace in self._open if trace.verdict in PROBLEMS]
        self._open = [trace for trace in self._open if trace.verdict not in PROBLEMS]
        self.counts.update(trace.verdict for trace in failed)
        return failed

    @property
    def under_way(self) -> int:
        return len(self._open)

    @property
    def has_problems(self) -> bool:
        return any(self.counts[verdict] > 0 for verdict in PROBLEMS)

    def summary(self) -> str:
        total = sum(self.counts.values())
        parts = [f"{count:,} {verdict.value}" for verdict, count in self.counts.most_common() if count]
        parts += [f"{self.under_way:,} under way"] if self.under_way else []
        return f"{total:,} request{'s' * (total != 1)}" + (f": {', '.join(parts)}" if parts else "")


def line(trace: Trace) -> str:
    """Return one request as one line."""
    key = trace.key
    why = "" if trace.verdict is RequestVerdict.COMPLETE else f"  {outcome(trace)}"
    name = printable(key.work_name or short(key.resource))
    return (
        f"{clock(trace.end)}  {_MARKS[trace.verdict]} {trace.verdict.value:<10}  {name:<28}  "
        f"{printable(key.consumer or '-'):<12}  {f'{key.action} v{key.version}':<10}  {signs(trace)}  "
        f"{span(trace.duration):>7}{why}"
    )
