"""Report what the given logs cover: pods, times, verbosity, and what is missing. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.trace.logs import tracer
from maestropy.trace.logs.judge import lifecycles
from maestropy.trace.logs.match import log_environment
from maestropy.trace.logs.read.log_writers import Environment, LogWriter, by_pod
from maestropy.trace.output import printable, table
from maestropy.trace.report.json_model import inputs_model, stamp
from maestropy.trace.report.waterfall import inputs_line
from maestropy.trace.stages import STAGES

_HEAD = ("pod", "role", "format", "gen", "-v", "lines", "known", "first", "last", "starts", "file")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageWindow:
    """The time that all pods cover; empty when they have none in common."""

    first: float
    last: float

    @property
    def is_empty(self) -> bool:
        """Whether the logs of some pods end before those of others start."""
        return not self.first or self.last <= self.first


def common(writers: Sequence[LogWriter]) -> CoverageWindow:
    """Return the time that every pod's files cover together."""
    by_pod: dict[str, tuple[float, float]] = {}
    for writer in writers:
        if writer.first:
            first, last = by_pod.get(writer.pod, (writer.first, writer.last))
            by_pod[writer.pod] = min(first, writer.first), max(last, writer.last)
    if not by_pod:
        return CoverageWindow(first=0.0, last=0.0)
    return CoverageWindow(first=max(span[0] for span in by_pod.values()), last=min(span[1] for span in by_pod.values()))


def gaps(environment: Environment) -> list[str]:
    """Return what these logs cannot show, a sentence each."""
    missing = []
    if not environment.servers:
        missing.append("no server's log: stages 1, 2 and 6 to 9 are not observable; collect all replicas (MT-001)")
    if not environment.agent_logs:
        missing.append("no agent's log: stages 3 to 5 are not observable; collect the agent of the consumer (MT-001)")
    hidden = [number for number in STAGES if not environment.shows(number)]
    if hidden and environment.servers and environment.agent_logs:
        numbers = ", ".join(str(number) for number in hidden)
        missing.append(f"no line shows stage {numbers}: see `maestro trace explain MT-003`")
    elif hidden:
        missing.append(f"no line shows stage {', '.join(str(number) for number in hidden)}")
    window = common(environment.writers)
    if window.is_empty and len(environment.writers) > 1:
        missing.append("no moment is covered by all pods: collect them again for the same time (MT-002)")
    for pod, holes in log_environment.gaps(environment.writers).items():
        missing += [f"{pod} has nothing from {_short(start)} to {_short(end)}" for start, end in holes]
    missing += _ended(environment)
    missing += [f"{note.code} {note.entry.title}: {note.detail}" for note in tracer.log_findings(environment)]
    return missing


def _ended(environment: Environment) -> list[str]:
    """Return which processes stopped before the logs of others end."""
    ends = [
        lifecycles.has_ended(logs, moment=environment.end, end=environment.end) for logs in by_pod(environment.writers)
    ]
    return [f"{end.text}: what it would have done later is missing" for end in ends if end is not None]


def text(environment: Environment) -> str:
    """Return the coverage as text."""
    rows = [
        (writer.pod, writer.role, writer.format, writer.generation, f">={writer.verbosity}", f"{writer.lines:,}",
         f"{writer.record_count:,}", _short(writer.first), _short(writer.last), str(len(writer.started)), writer.path)
        for writer in environment.writers
    ]  # fmt: skip
    window = common(environment.writers)
    lines = [inputs_line(environment)]
    if not window.is_empty:
        pods = len({writer.pod for writer in environment.writers if writer.first})
        subject = f"all {pods} pods" if pods > 1 else "the pod"
        lines.append(f"Covered  by {subject}: {_short(window.first)} to {_short(window.last)}")
    lines += table(rows, head=_HEAD)
    lines += [f"  {printable(gap)}" for gap in gaps(environment)]
    return "\n".join(lines) + "\n"


def model(environment: Environment) -> dict[str, Any]:
    """Return the coverage as plain values."""
    window = common(environment.writers)
    return {
        **inputs_model(environment),
        "covered": None if window.is_empty else {"first": stamp(window.first), "last": stamp(window.last)},
        "stages": {str(number): environment.shows(number) for number in STAGES},
        "gaps": gaps(environment),
    }


def _short(at: float) -> str:
    return (stamp(at) or "-")[:19]
