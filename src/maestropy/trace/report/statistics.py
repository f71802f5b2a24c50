"""Compute statistics over many requests: verdicts, first missing stages, latencies per hop, findings. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from maestropy.trace.logs.model import PROBLEMS, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class HopLatency:
    """The duration of a hop, in milliseconds."""

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
    hops: dict[str, HopLatency]
    by_code: dict[str, int]
    slowest: tuple[Trace, ...] = field(default=())


def statistics(traces: Sequence[Trace], *, top: int = 5) -> Statistics:
    """Count and measure `traces`."""
    missing = Counter(trace.failed_stage for trace in traces if trace.failed_stage and trace.verdict in PROBLEMS)
    return Statistics(
        total=len(traces),
        by_verdict=dict(Counter(trace.verdict.value for trace in traces).most_common()),
        by_action=dict(Counter(trace.key.action for trace in traces).most_common()),
        first_missing=dict(sorted((stage or 0, count) for stage, count in missing.items())),
        hops={key: _hop(values) for key, values in hop_times(traces).items()},
        by_code=dict(Counter(finding.code for trace in traces for finding in trace.findings).most_common()),
        slowest=tuple(sorted(traces, key=lambda trace: trace.duration, reverse=True)[:top]),
    )


def hop_times(traces: Sequence[Trace]) -> dict[str, list[float]]:
    """Return how many seconds each hop took, by its two stages."""
    times: dict[str, list[float]] = {}
    for number in range(1, 9):
        passed = [trace.moments[number] - trace.moments[number - 1] for trace in traces
                  if trace.moments[number - 1] and trace.moments[number]]  # fmt: skip
        if passed:
            times[f"{number}-{number + 1}"] = passed
    whole = [trace.moments[8] - trace.moments[0] for trace in traces if trace.moments[0] and trace.moments[8]]
    if whole:
        times["1-9"] = whole
    return times


def _hop(seconds: list[float]) -> HopLatency:
    ordered = sorted(max(0.0, second) * 1000 for second in seconds)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)

    return HopLatency(count=len(ordered), p50=at(0.5), p90=at(0.9), p99=at(0.99), most=round(ordered[-1], 3))
