"""Numbers over many requests: verdicts, first missing stages, latencies per hop, findings. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pymaestro.trace.request.model import State, Trace, Verdict

PROBLEMS = frozenset({Verdict.FAILED, Verdict.INCOMPLETE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """How long a hop takes, in milliseconds."""

    count: int
    p50: float
    p90: float
    p99: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """All requests at a glance."""

    total: int
    by_verdict: dict[str, int]
    by_action: dict[str, int]
    first_missing: dict[int, int]
    hops: dict[str, Hop]
    by_code: dict[str, int]
    slowest: tuple[Trace, ...] = field(default=())


def statistics(traces: Sequence[Trace], *, top: int = 5) -> Statistics:
    """Count and measure `traces`."""
    missing = Counter(each.failed_stage for each in traces if each.failed_stage and each.verdict in PROBLEMS)
    return Statistics(
        total=len(traces),
        by_verdict=dict(Counter(each.verdict.value for each in traces).most_common()),
        by_action=dict(Counter(each.key.action for each in traces).most_common()),
        first_missing=dict(sorted((stage or 0, count) for stage, count in missing.items())),
        hops=_hops(traces),
        by_code=dict(Counter(found.code for each in traces for found in each.findings).most_common()),
        slowest=tuple(sorted(traces, key=lambda each: each.duration, reverse=True)[:top]),
    )


def _hops(traces: Iterable[Trace]) -> dict[str, Hop]:
    times: dict[str, list[float]] = {}
    for trace in traces:
        seen = {stage.number: stage.first for stage in trace.stages if stage.first and stage.state is State.OK}
        for number in range(1, 9):
            if number in seen and number + 1 in seen:
                times.setdefault(f"{number}-{number + 1}", []).append(seen[number + 1] - seen[number])
        if 1 in seen and 9 in seen:
            times.setdefault("1-9", []).append(seen[9] - seen[1])
    return {key: _hop(values) for key, values in sorted(times.items(), key=lambda item: (item[0] == "1-9", item[0]))}


def _hop(seconds: list[float]) -> Hop:
    ordered = sorted(max(0.0, each) * 1000 for each in seconds)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)

    return Hop(count=len(ordered), p50=at(0.5), p90=at(0.9), p99=at(0.99), most=round(ordered[-1], 3))
