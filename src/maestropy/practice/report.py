"""Write the list of incidents, a statement, and grades, for people. Pure."""

import textwrap
from collections.abc import Sequence

from maestropy.practice.model import Incident
from maestropy.practice.scoring import Grade
from maestropy.trace.output import printable, table

_STACKS = {"go": "Go Maestro", "python": "maestropy"}


def listed(incidents: Sequence[Incident]) -> str:
    """Return the table of incidents."""
    rows = [(each.id, _STACKS[each.stack], _setting(each), each.collected) for each in incidents]
    lines = table(rows, head=("INCIDENT", "STACK", "BROKER", "COLLECTED"), indent="")
    return "\n".join([*lines, "", "Play one: maestro practice play ID"]) + "\n"


def _setting(incident: Incident) -> str:
    servers = "1 server" if incident.servers == 1 else f"{incident.servers} servers"
    return f"{incident.broker}, {servers}, -v={incident.verbosity}"


def stated(incident: Incident, *, archive: str) -> str:
    """Return the statement, and how to look into the archive."""
    asked = incident.asked or "WORK"
    return "\n".join(
        [
            f"Incident {incident.id}",
            f"{_STACKS[incident.stack]}, {_setting(incident)}; collected: {incident.collected}",
            "",
            *textwrap.wrap(incident.statement, width=100),
            "",
            "Look into it with:",
            f"  maestro diagnose analyze {archive}",
            f"  maestro trace request {asked} {archive}",
            f"  maestro diagnose open {archive}",
            "",
        ]
    )


def hint(incident: Incident, number: int) -> str:
    """Return a hint, counted from 1."""
    if number > len(incident.hints):
        return "There are no more hints."
    return f"Hint {number} of {len(incident.hints)}: {incident.hints[number - 1]}"


def solution(incident: Incident) -> str:
    """Return what is true, and why."""
    truth = incident.truth
    facts = {
        "work": f"{truth.work} ({truth.resource_id})",
        "verdict": " or ".join(truth.verdicts),
        "stage": str(truth.stage) if truth.stage else "none",
        "code": " or ".join(truth.codes) or "none",
        "hop": " or ".join(truth.hops) or "none",
    }
    lines = [f"{name:8} {value}" for name, value in facts.items()]
    return "\n".join([*lines, *textwrap.wrap(truth.why, width=100)]) + "\n"


def marks(grade: Grade) -> str:
    """Return the marks of one answer."""
    rows = [("right" if mark.is_right else "WRONG", mark.name, mark.said, mark.expected) for mark in grade.marks]
    head = f"{grade.incident.id}: {'right' if grade.is_right else 'wrong'}"
    if grade.problem:
        return f"{head}: {grade.problem}\n"
    return "\n".join([head, *table(rows, head=("", "FIELD", "ANSWER", "TRUTH"))]) + "\n"


def graded(grades: Sequence[Grade], *, by: str) -> str:
    """Return the score, with the wrong fields of each incident."""
    lines = []
    for each in grades:
        mark = "right" if each.is_right else "WRONG"
        lines.append(f"{mark}  {each.incident.id}")
        lines += [f"       {each.problem}"] if each.problem else []
        lines += [
            f"       {wrong.name}: {printable(wrong.said) or 'no answer'}; it is {wrong.expected}"
            for wrong in each.marks
            if not wrong.is_right
        ]
    right = sum(each.is_right for each in grades)
    return "\n".join([*lines, "", f"{printable(by)}: {right} of {len(grades)} incidents right"]) + "\n"


def public(incident: Incident) -> dict[str, object]:
    """Return what JSON shows of an incident: all but its truth, its hints and its title, which would give it away."""
    return {
        "id": incident.id,
        "stack": incident.stack,
        "broker": incident.broker,
        "servers": incident.servers,
        "verbosity": incident.verbosity,
        "collected": incident.collected,
        "statement": incident.statement,
    }
