"""Compare an answer with the truth, field by field. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.practice.model import HEALTHY, NONE, Answer, Incident, Truth


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One field of an answer."""

    name: str
    is_right: bool
    said: str
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """An answer with its marks; an incident counts as right if all of them are."""

    incident: Incident
    marks: tuple[Mark, ...] = ()
    problem: str = ""
    """Why there is no answer; empty if there is one."""

    @property
    def is_right(self) -> bool:
        """Whether the whole answer is right."""
        return bool(self.marks) and all(mark.is_right for mark in self.marks)

    @property
    def right(self) -> int:
        """How many fields are right."""
        return sum(mark.is_right for mark in self.marks)


def grade(incident: Incident, answer: Answer) -> Grade:
    """Grade one answer."""
    truth = incident.truth
    marks = [
        _mark("work", answer.work, (truth.work, truth.resource_id)),
        _mark("verdict", answer.verdict, truth.verdicts),
        *_stage(truth, answer),
        *_code(truth, answer),
        *_hop(truth, answer),
    ]
    return Grade(incident=incident, marks=tuple(marks))


def _stage(truth: Truth, answer: Answer) -> list[Mark]:
    if truth.stage is None and not truth.is_healthy:
        return []
    said, expected = (str(value) if value is not None else NONE for value in (answer.stage, truth.stage))
    return [_mark("stage", said, (expected,))]


def _code(truth: Truth, answer: Answer) -> list[Mark]:
    """A healthy request has no code; a code in the answer would blame something."""
    return [_mark("code", answer.code or NONE, truth.codes or (NONE,))]


def _hop(truth: Truth, answer: Answer) -> list[Mark]:
    return [_mark("hop", answer.hop or NONE, truth.hops or (NONE,))]


def _mark(name: str, said: str, accepted: Sequence[str]) -> Mark:
    is_right = said.strip().casefold() in {value.casefold() for value in accepted}
    return Mark(name=name, is_right=is_right, said=said, expected=" or ".join(dict.fromkeys(accepted)))


def grade_all(incidents: Iterable[Incident], answers: Iterable[Answer]) -> list[Grade]:
    """Grade the answers to some incidents; of two answers to one incident the last counts."""
    given = {answer.incident: answer for answer in answers}
    return [
        grade(incident, given[incident.id])
        if incident.id in given
        else Grade(incident=incident, problem="there is no answer to it")
        for incident in incidents
    ]


def model(grades: Sequence[Grade], *, by: str) -> Mapping[str, Any]:
    """Return the grades as JSON has them."""
    return {
        "by": by,
        "right": sum(each.is_right for each in grades),
        "incidents": len(grades),
        "grades": [
            {
                "incident": each.incident.id,
                "right": each.is_right,
                "problem": each.problem,
                "fields": [
                    {"name": mark.name, "right": mark.is_right, "said": mark.said, "expected": mark.expected}
                    for mark in each.marks
                ],
                "why": each.incident.truth.why,
            }
            for each in grades
        ],
    }


def is_settled(verdict: str) -> bool:
    """Return whether a verdict says that nothing needs attention."""
    return verdict in HEALTHY
