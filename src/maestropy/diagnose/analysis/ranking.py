"""Rank findings: what breaks most first. Findings of the same kind about many works become one. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from maestropy.trace.exit_codes import Exit
from maestropy.trace.findings.codes import CODES
from maestropy.trace.output import Finding

_SEVERITIES: Final = {"error": 0, "warn": 1, "info": 2}
_ENGINES: Final = (
    "database",
    "server",
    "broker",
    "data safety",
    "agent",
    "certificates",
    "hcp",
    "works",
    "requests",
    "clocks",
    "archive",
)
"""Causes before their consequences: a database that is down explains agents, and these explain works."""
_EXAMPLES: Final = 3
_SHOWN_EVIDENCE: Final = 8
MOST_CAUSES: Final = 10
_Kind = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A finding in the order of importance."""

    engine: str
    code: str
    finding: Finding
    subjects: tuple[str, ...] = ()
    """What it is about, such as works; many that share code, title and cause are one finding."""
    cause: str = ""
    """What is behind it, as far as that is known; findings with different causes stay apart."""
    exit: Exit = Exit.PROBLEM

    @staticmethod
    def of(
        finding: Finding,
        *,
        engine: str,
        subject: str = "",
        cause: str = "",
        exit: Exit | None = None,  # noqa: A002 - as in the catalogue
    ) -> "Ranked":
        """Return a finding about at most one subject."""
        entry = CODES.get(finding.code)
        code_exit = exit if exit is not None else (entry.exit if entry else Exit.PROBLEM)
        return Ranked(
            engine=engine,
            code=finding.code,
            finding=finding,
            subjects=(subject,) if subject else (),
            cause=cause,
            exit=Exit.HEALTHY
            if exit is None and finding.severity == "info" and code_exit is Exit.PROBLEM
            else code_exit,
        )

    @property
    def headline(self) -> str:
        """The title with what it is about."""
        if not self.subjects:
            return self.finding.title
        more = len(self.subjects) - _EXAMPLES
        shown = ", ".join(self.subjects[:_EXAMPLES])
        return f"{shown}{f' and {more} more' if more > 0 else ''}: {self.finding.title}"


def rank(findings: Iterable[Ranked]) -> list[Ranked]:
    """Return the findings, joined and in order."""
    joined: dict[tuple[_Kind, str], Ranked] = {}
    for item in findings:
        _put(joined, (_kind(item), item.cause), item)
    causes = Counter(kind for kind, _ in joined)
    # Nobody reads hundreds of causes one by one, such as agents that are all away because the broker is.
    found: dict[tuple[_Kind, str], Ranked] = {}
    for (kind, cause), item in joined.items():
        _put(found, (kind, cause if causes[kind] <= MOST_CAUSES else ""), item)
    return sorted(found.values(), key=_order)


def _kind(item: Ranked) -> _Kind:
    return (item.engine, item.code, item.finding.severity, item.finding.title if item.subjects else repr(item))


def _put(joined: dict[tuple[_Kind, str], Ranked], key: tuple[_Kind, str], item: Ranked) -> None:
    joined[key] = _join(joined[key], item) if key in joined else item


def _join(first: Ranked, other: Ranked) -> Ranked:
    evidence = (*first.finding.evidence, *other.finding.evidence)[:_SHOWN_EVIDENCE]
    return replace(
        first,
        finding=replace(first.finding, evidence=evidence),
        subjects=tuple(dict.fromkeys((*first.subjects, *other.subjects))),
        exit=first.exit if first.exit is Exit.PROBLEM else other.exit,
    )


def _order(item: Ranked) -> tuple[int, int, int, str]:
    engine = _ENGINES.index(item.engine) if item.engine in _ENGINES else len(_ENGINES)
    return (_SEVERITIES[item.finding.severity], engine, -len(item.subjects), item.code)
