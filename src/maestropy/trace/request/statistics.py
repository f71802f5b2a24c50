"""Numbers over many requests: verdicts, first missing stages, latencies per hop, findings. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from maestropy.trace.request.model import Trace, Verdict

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
        hops={key: _hop(values) for key, values in hop_times(traces).items()},
        by_code=dict(Counter(found.code for each in traces for found in each.findings).most_common()),
        slowest=tuple(sorted(traces, key=lambda each: each.duration, reverse=True)[:top]),
    )


def hop_times(traces: Sequence[Trace]) -> dict[str, list[float]]:
    """Return how many seconds each hop took, by its two stages."""
    times: dict[str, list[float]] = {}
    for number in range(1, 9):
        passed = [each.moments[number] - each.moments[number - 1] for each in traces
                  if each.moments[number - 1] and each.moments[number]]  # fmt: skip
        if passed:
            times[f"{number}-{number + 1}"] = passed
    whole = [each.moments[8] - each.moments[0] for each in traces if each.moments[0] and each.moments[8]]
    if whole:
        times["1-9"] = whole
    return times


def _hop(seconds: list[float]) -> Hop:
    ordered = sorted(max(0.0, each) * 1000 for each in seconds)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)

    return Hop(count=len(ordered), p50=at(0.5), p90=at(0.9), p99=at(0.99), most=round(ordered[-1], 3))
