"""Judge one work: which verdict, on what evidence, with which next steps. Pure; it reads no clock.

The checks stand in the order of what matters most; the first error is the verdict, all findings are told. What could
not be seen never counts as missing.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from maestropy.trace.output import Evidence, Exit, Finding
from maestropy.trace.work import cluster_checks, identities
from maestropy.trace.work.codes import CATALOGUE
from maestropy.trace.work.facts import STUCK_AFTER, UNDELIVERED_AFTER, Facts
from maestropy.trace.work.findings import finding
from maestropy.trace.work.model import Row

_SEVERITIES: Mapping[str, int] = {"error": 0, "warn": 1, "info": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is to be said about one work."""

    code: str
    name: str
    summary: str
    exit: Exit
    findings: tuple[Finding, ...]


def judge(facts: Facts) -> Verdict:
    """Return the verdict on one work."""
    found = [*_about(facts)]
    ranked = sorted(found, key=lambda each: _SEVERITIES[each.severity])
    chosen = ranked[0] if ranked and ranked[0].severity != "info" else None
    if chosen is None:
        chosen = next((each for each in found if each.code in _FINAL), None)
    if chosen is None:
        chosen = finding("MW-001", facts, evidence=_healthy(facts))
        found = [chosen, *found]
    code = CATALOGUE[chosen.code]
    return Verdict(
        code=code.code,
        name=code.name,
        summary=chosen.title,
        exit=_exit(facts, found, code.exit),
        findings=tuple(sorted(found, key=lambda each: (each is not chosen, _SEVERITIES[each.severity]))),
    )


_FINAL = {"MW-102"}
"""Findings of severity `info` that are nevertheless the whole verdict."""


def _exit(facts: Facts, found: Iterable[Finding], usual: Exit) -> Exit:
    if {each.code for each in found} <= {"MW-100"} and not facts.gathered.database.is_clear and facts.cluster_is_dark:
        return Exit.NO_ACCESS
    return usual


def _about(facts: Facts) -> Iterator[Finding]:
    row = facts.gathered.row
    if row is None:
        yield from _without_row(facts)
    elif row.deleted:
        yield from _deleting(facts, row)
    else:
        yield from _active(facts, row)
    yield from _unseen(facts)
    yield from _identity(facts)


def _without_row(facts: Facts) -> Iterator[Finding]:
    gathered = facts.gathered
    if not gathered.database.is_clear:
        return
    if gathered.applied:
        evidence = [Evidence(where=gathered.database.place, says="no row")]
        evidence += [
            Evidence(
                where=f"cluster {each.cluster}", says=f"AppliedManifestWork {each.name}, hub {each.hub_hash[:12]}…"
            )
            for each in gathered.applied
        ]
        yield finding("MW-009", facts, evidence=evidence)
    elif gathered.tombstones:
        left = gathered.tombstones[0]
        says = f"StatusDelete of {left.work_name or 'a work without a name'} at {left.created}"
        yield finding("MW-102", facts, evidence=[Evidence(where="status_events", says=says)])
    else:
        yield finding("MW-010", facts, evidence=[Evidence(where=gathered.database.place, says="no row")])


def _deleting(facts: Facts, row: Row) -> Iterator[Finding]:
    is_old = facts.age(row.deleted) >= STUCK_AFTER
    marked = Evidence(where="resources.deleted_at", says=str(row.deleted))
    blockers = [
        Evidence(
            where=f"cluster {live.cluster}: {live.key}",
            says=f"deleted {live.deleting}, waits for {', '.join(live.finalizers) or 'no finalizer'}",
        )
        for live in facts.terminating
    ]
    records = [
        Evidence(where=f"cluster {each.cluster}", says=f"AppliedManifestWork {each.name} {_leaving(each.deleting)}")
        for each in facts.gathered.applied
    ]
    subject = facts.terminating[0] if facts.terminating else None
    if facts.gathered.applied or facts.terminating:
        code = "MW-107" if is_old and any(live.finalizers for live in facts.terminating) else "MW-007"
        yield finding(code, facts, evidence=[marked, *records, *blockers], about=subject)
    elif not facts.its_clusters:
        yield finding("MW-007", facts, evidence=[marked])
    elif is_old:
        yield finding("MW-008", facts, evidence=[marked, Evidence(where=_places(facts), says="nothing left of it")])
    else:
        yield finding("MW-101", facts, evidence=[marked, Evidence(where=_places(facts), says="nothing left of it")])


def _active(facts: Facts, row: Row) -> Iterator[Finding]:
    yield from _report(facts, row)
    yield from cluster_checks.check(facts, row)


def _report(facts: Facts, row: Row) -> Iterator[Finding]:
    status = row.status
    if status is None:
        evidence = [Evidence(where="resources.status", says="empty: the agent never answered")]
        evidence += [
            Evidence(where="events", says=f"{each.type} of {each.created} is not yet published")
            for each in row.events
            if each.reconciled is None
        ]
        if facts.gathered.applied:
            yield finding("MW-105", facts, evidence=evidence)
        else:
            is_young = facts.age(row.created) < UNDELIVERED_AFTER
            yield finding("MW-002" if is_young else "MW-003", facts, evidence=evidence)
        return
    if status.version < row.version:
        says = f"version {status.version} is reported, version {row.version} is wanted"
        yield finding("MW-004", facts, evidence=[Evidence(where="resources.status", says=says)])
    applied, available = status.condition("Applied"), status.condition("Available")
    if applied and applied.status == "False":
        yield finding("MW-005", facts, evidence=_refusals(facts, "Applied"))
    elif available and available.status == "False":
        yield finding("MW-111", facts, evidence=_refusals(facts, "Available"))


def _refusals(facts: Facts, kind: str) -> list[Evidence]:
    row = facts.gathered.row
    of_work = row.status.condition(kind) if row and row.status else None
    of_manifests = [
        Evidence(where=str(line.key), says=f"{each}: {each.message}")
        for line in facts.lines
        for each in line.conditions
        if each.type == kind and each.status == "False"
    ]
    return of_manifests or ([Evidence(where="the work", says=f"{of_work}: {of_work.message}")] if of_work else [])


def _unseen(facts: Facts) -> Iterator[Finding]:
    dark = [each for each in (facts.gathered.database, *facts.concerned) if not each.is_clear]
    evidence = [Evidence(where=each.place, says=each.trouble) for each in dark]
    if not facts.gathered.clusters:
        evidence.append(Evidence(where="clusters", says="none was asked; give --mgmt-context"))
    evidence += [
        Evidence(where=f"cluster {live.cluster}: {live.key}", says=live.trouble)
        for line in facts.lines
        for live in line.lives
        if live.state == "unknown"
    ]
    if evidence:
        yield finding("MW-100", facts, evidence=evidence)


def _identity(facts: Facts) -> Iterator[Finding]:
    row = facts.gathered.row
    for check in identities.check_row(row) if row else ():
        if not check.is_equal:
            yield finding("MW-116", facts, evidence=[Evidence(where=check.what, says=check.says)])
    if row and any(each.work_name == row.work_name != row.id for each in facts.gathered.applied):
        says = f"spec.manifestWorkName is {row.work_name}"
        yield finding("MW-115", facts, evidence=[Evidence(where="AppliedManifestWork", says=says)])
    for each in facts.gathered.applied:
        for check in identities.check_applied(each, broker_host=facts.broker_host):
            if not check.is_equal and check.what == "hub hash":
                says = f"{each.hub_hash} {check.says}"
                yield finding("MW-117", facts, evidence=[Evidence(where=each.name, says=says)])


def _healthy(facts: Facts) -> list[Evidence]:
    row = facts.gathered.row
    status = row.status if row else None
    says = f"version {status.version}: {', '.join(map(str, status.conditions))}" if status else ""
    evidence = [Evidence(where="resources.status", says=says)] if status else []
    return [*evidence, *(Evidence(where=f"cluster {each.cluster}", says=each.name) for each in facts.gathered.applied)]


def _leaving(moment: object) -> str:
    return f"is being deleted since {moment}" if moment else "is there and not being deleted"


def _places(facts: Facts) -> str:
    return ", ".join(each.place for each in facts.its_clusters)
