"""Which requests were asked for, and how a trace over them ends. Pure."""

from collections.abc import Sequence

from maestropy.cli import trace_inputs
from maestropy.trace.errors import BadQuestion
from maestropy.trace.output import Exit
from maestropy.trace.request.codes import CODES
from maestropy.trace.request.model import Trace, Verdict
from maestropy.trace.request.statistics import PROBLEMS


def is_selected(trace: Trace, select: trace_inputs.Selection) -> bool:
    """Say whether a request is meant."""
    if select.code and select.code.upper() not in CODES:
        raise BadQuestion(f"there is no code {select.code}; see `maestro trace explain --list`")
    return (
        (not select.status or trace.verdict.value in select.status)
        and (not select.slow or trace.duration >= trace_inputs.seconds(select.slow, option="--slow"))
        and (not select.consumer or trace.key.consumer == select.consumer)
        and (not select.source or trace.key.source == select.source)
        and (not select.action or trace.key.action == select.action)
        and (not select.code or any(each.code == select.code.upper() for each in trace.findings))
        and (not select.since or trace.start >= trace_inputs.moment(select.since, option="--since"))
        and (not select.until or trace.start <= trace_inputs.moment(select.until, option="--until"))
    )


def under_way(traces: Sequence[Trace], at: float) -> list[Trace]:
    """Return, of each resource, the request that was under way at a time; else the last that had begun by then."""
    chosen: dict[str, Trace] = {}
    begun = [each for each in traces if each.start <= at]
    for each in sorted(begun, key=lambda each: (each.end >= at, each.start)):
        chosen[each.key.resource] = each
    return [each for each in traces if chosen.get(each.key.resource) is each]


def exit_code(traces: Sequence[Trace]) -> int:
    """Return how a trace ends."""
    if any(each.verdict in PROBLEMS for each in traces):
        return Exit.PROBLEM
    waiting = [each for each in traces if each.verdict is Verdict.PENDING]
    if any(found.entry.severity == "error" and found.code == "MT-301" for each in waiting for found in each.findings):
        return Exit.PROBLEM
    return Exit.INCONCLUSIVE if waiting or any(each.verdict is Verdict.UNKNOWN for each in traces) else Exit.HEALTHY
