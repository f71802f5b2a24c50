"""What logs cover, before anybody draws conclusions from them: pods, times, verbosity, and what is missing. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.trace.output import printable, table
from maestropy.trace.request import environment as surroundings
from maestropy.trace.request import survey
from maestropy.trace.request.codes import STAGES
from maestropy.trace.request.document import inputs_model, stamp
from maestropy.trace.request.inputs import Environment, Writer
from maestropy.trace.request.waterfall import inputs_line

_HEAD = ("pod", "role", "format", "gen", "-v", "lines", "known", "first", "last", "starts", "file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time that all pods cover; empty when they have none in common."""

    first: float
    last: float

    @property
    def is_empty(self) -> bool:
        """Whether some pods' logs end before others begin."""
        return not self.first or self.last <= self.first


def common(writers: Sequence[Writer]) -> Window:
    """Return the time that every pod's files cover together."""
    by_pod: dict[str, tuple[float, float]] = {}
    for each in writers:
        if each.first:
            first, last = by_pod.get(each.pod, (each.first, each.last))
            by_pod[each.pod] = min(first, each.first), max(last, each.last)
    if not by_pod:
        return Window(first=0.0, last=0.0)
    return Window(first=max(each[0] for each in by_pod.values()), last=min(each[1] for each in by_pod.values()))


def gaps(known: Environment) -> list[str]:
    """Return what these logs cannot show, a sentence each."""
    found = []
    if not known.servers:
        found.append("no server's log: stages 1, 2 and 6 to 9 cannot be seen; collect all replicas (MT-001)")
    if not known.agent_logs:
        found.append("no agent's log: stages 3 to 5 cannot be seen; collect the agent of the consumer (MT-001)")
    hidden = [number for number in STAGES if not known.shows(number)]
    if hidden and known.servers and known.agent_logs:
        numbers = ", ".join(str(number) for number in hidden)
        found.append(f"no line shows stage {numbers}: see `maestro trace explain MT-003`")
    elif hidden:
        found.append(f"no line shows stage {', '.join(str(number) for number in hidden)}")
    window = common(known.writers)
    if window.is_empty and len(known.writers) > 1:
        found.append("no moment is covered by all pods: collect them again for the same time (MT-002)")
    for pod, holes in surroundings.gaps(known.writers).items():
        found += [f"{pod} has nothing from {_short(start)} to {_short(end)}" for start, end in holes]
    found += [f"{each.code} {each.entry.title}: {each.detail}" for each in survey.notes(known)]
    return found


def text(known: Environment) -> str:
    """Return the coverage as text."""
    rows = [
        (each.pod, each.role, each.format, each.generation, f">={each.verbosity}", f"{each.lines:,}", f"{each.hits:,}",
         _short(each.first), _short(each.last), str(len(each.started)), each.path)
        for each in known.writers
    ]  # fmt: skip
    window = common(known.writers)
    lines = [inputs_line(known)]
    if not window.is_empty:
        pods = len({each.pod for each in known.writers if each.first})
        what = f"all {pods} pods" if pods > 1 else "the pod"
        lines.append(f"Covered  by {what}: {_short(window.first)} to {_short(window.last)}")
    lines += table(rows, head=_HEAD)
    lines += [f"  {printable(each)}" for each in gaps(known)]
    return "\n".join(lines) + "\n"


def model(known: Environment) -> dict[str, Any]:
    """Return the coverage as plain values."""
    window = common(known.writers)
    return {
        **inputs_model(known),
        "covered": None if window.is_empty else {"first": stamp(window.first), "last": stamp(window.last)},
        "stages": {str(number): known.shows(number) for number in STAGES},
        "gaps": gaps(known),
    }


def _short(at: float) -> str:
    return (stamp(at) or "-")[:19]
