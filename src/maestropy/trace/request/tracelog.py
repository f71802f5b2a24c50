"""The flow of requests as the log lines themselves: stage by stage, under the name of the pod that wrote them. Pure."""

from collections.abc import Callable, Iterable, Sequence

from maestropy.trace.output import printable
from maestropy.trace.request.codes import STAGES
from maestropy.trace.request.hits import AGENT_STAGES, Hit
from maestropy.trace.request.inputs import Environment
from maestropy.trace.request.model import State, Trace
from maestropy.trace.request.waterfall import headline

_ABSENT = frozenset({State.MISSING, State.FAILED})


def trace_log(traces: Sequence[Trace], known: Environment, *, quote: Callable[[Hit], str]) -> str:
    """Return the lines of each request, with the runbooks' sentence where a stage is missing or failed."""
    lines: list[str] = []
    for trace in traces:
        lines += [headline(trace), ""]
        for stage in trace.stages:
            for pod, hits in _by_pod(stage.hits, known):
                who = "maestro agent" if stage.number in AGENT_STAGES else "maestro server instance"
                lines.append(f"In {who} {printable(pod)}")
                lines += [quote(hit) for hit in hits]
            if stage.state in _ABSENT:
                lines.append(f"ERROR: {STAGES[stage.number][2]}")
        lines.append("")
    return "\n".join(lines) + "\n"


def _by_pod(hits: Iterable[Hit], known: Environment) -> list[tuple[str, list[Hit]]]:
    found: dict[str, list[Hit]] = {}
    for hit in sorted(hits, key=lambda hit: (hit.at, hit.file, hit.line)):
        found.setdefault(known.writers[hit.file].pod, []).append(hit)
    return list(found.items())
