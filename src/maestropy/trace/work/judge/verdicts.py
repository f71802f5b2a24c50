"""Judge one work: the verdict, its evidence, and next steps. Pure; reads no clock.

The first error in the order of severity is the verdict; all findings are reported. What could not be read never counts
as missing.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from maestropy.trace.findings.codes import CODES
from maestropy.trace.findings.work_codes import FIX_MANIFEST
from maestropy.trace.output import Evidence, Exit, Finding
from maestropy.trace.work import identities
from maestropy.trace.work.judge import apply_advice, cluster_checks, coverage, deletion
from maestropy.trace.work.judge.facts import STUCK_AFTER, UNDELIVERED_AFTER, Facts
from maestropy.trace.work.judge.findings import finding
from maestropy.trace.work.model import ConsumerPause, TracedResource

_SEVERITIES: Mapping[str, int] = {"error": 0, "warn": 1, "info": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkVerdict:
    """The verdict on one work."""

    code: str
    name: str
    summary: str
    exit: Exit
    findings: tuple[Finding, ...]


def judge(facts: Facts) -> WorkVerdict:
    """Return the verdict on one work."""
    findings = [*_about(facts)]
    ranked = sorted(findings, key=lambda item: _SEVERITIES[item.severity])
    chosen = ranked[0] if ranked and ranked[0].severity != "info" else None
    if chosen is None:
        chosen = next((item for item in findings if item.code in _FINAL), None)
    if chosen is None:
        chosen = finding("MW-001", facts, evidence=_healthy(facts))
        findings = [chosen, *findings]
    code = CODES[chosen.code]
    return WorkVerdict(
        code=code.code,
        name=code.name,
        summary=chosen.title,
        exit=_exit(facts, findings, code.exit),
        findings=tuple(sorted(findings, key=lambda item: (item is not chosen, _SEVERITIES[item.severity]))),
    )


_OF_PAUSE = {"MW-002", "MW-003", "MW-004", "MW-007", "MW-008", "MW-012", "MW-101", "MW-112"}
"""What a pause of delivery explains: the agent has not received the version or the deletion that the database has."""

_FINAL = {"MW-102", "MW-124"}
"""Findings of severity `info` that are nevertheless the whole verdict."""


def _exit(facts: Facts, findings: Iterable[Finding], usual: Exit) -> Exit:
    if (
        {item.code for item in findings} <= {"MW-100"}
        and not facts.data.database.is_readable
        and facts.no_cluster_readable
    ):
        return Exit.NO_ACCESS
    return usual


def _about(facts: Facts) -> Iterator[Finding]:
    row = facts.data.row
    if facts.data.is_held:
        yield finding("MW-122", facts, evidence=_hold_evidence(facts))
    is_paused = facts.data.pause is not None and facts.data.is_waiting
    if facts.data.pause is not None and is_paused:
        yield finding("MW-123", facts, evidence=[_pause_evidence(facts.data.pause)])
    if row is None:
        yield from _without_row(facts)
    elif row.deleted:
        yield from (item for item in _deleting(facts, row) if not is_paused or item.code not in _OF_PAUSE)
    else:
        yield from (item for item in _active(facts, row) if not is_paused or item.code not in _OF_PAUSE)
    yield from _unreadable(facts)
    yield from _identity(facts)


def _hold_evidence(facts: Facts) -> list[Evidence]:
    data = facts.data
    hold, reported = data.hold, data.reported_hold
    evidence = []
    if hold is not None:
        says = f"{hold.reason} since {hold.since}, {hold.work_count} works: {hold.message}"
        evidence.append(Evidence(f"hold of consumer {hold.consumer}", says))
    if reported is not None:
        says = f"{reported}, {reported.reason}: {reported.message}"
        evidence.append(Evidence("resources.status", says))
    if data.row is None:
        evidence.append(Evidence(data.database.description, "no row: an adoption deletes its objects"))
    evidence += _release_evidence(facts)
    evidence += [
        Evidence(f"cluster {record.cluster}", f"AppliedManifestWork {record.name}, {_origin(record.origin)}")
        for record in data.applied
    ]
    return evidence


def _release_evidence(facts: Facts) -> list[Evidence]:
    left = facts.data.released
    return [Evidence(where="status_events", says=f"released at {left.created}: {left.released}")] if left else []


def _pause_evidence(pause: ConsumerPause) -> Evidence:
    why = f": {pause.reason}" if pause.reason else ""
    says = f"delivery to this consumer is paused by {pause.by} since {pause.since}{why}"
    return Evidence(f"pause of consumer {pause.consumer}", f"{says}; maestro consumer resume {pause.consumer}")


def _origin(database: str) -> str:
    return f"applied from database {database}" if database else "which records no database"


def _without_row(facts: Facts) -> Iterator[Finding]:
    data = facts.data
    if not data.database.is_readable or data.is_held:
        return
    if not data.is_searched and not data.tombstones:
        assert data.coverage is not None
        says = coverage.searched_text(data.coverage)
        yield finding("MW-120", facts, evidence=[Evidence(data.database.description, says)])
    elif data.applied or data.released:
        evidence = [Evidence(data.database.description, "no row"), *_release_evidence(facts)]
        evidence += [
            Evidence(
                f"cluster {applied_work.cluster}",
                f"AppliedManifestWork {applied_work.name}, hub {applied_work.hub_hash[:12]}…",
            )
            for applied_work in data.applied
        ]
        yield finding("MW-124" if data.released else "MW-009", facts, evidence=evidence)
    elif data.tombstones:
        left = data.tombstones[0]
        says = f"StatusDelete of {left.work_name or 'a work without a name'} at {left.created}"
        yield finding("MW-102", facts, evidence=[Evidence("status_events", says)])
    else:
        yield finding("MW-010", facts, evidence=[Evidence(data.database.description, "no row")])


def _deleting(facts: Facts, row: TracedResource) -> Iterator[Finding]:
    is_old = facts.age(row.deleted) >= STUCK_AFTER
    marked = Evidence("resources.deleted_at", str(row.deleted))
    blockers = [
        Evidence(
            f"cluster {live.cluster}: {live.key}",
            f"deleted {live.deleting}, waits for {', '.join(live.finalizers) or 'no finalizer'}",
        )
        for live in facts.terminating
    ]
    records = [
        Evidence(
            f"cluster {applied_work.cluster}",
            f"AppliedManifestWork {applied_work.name} {_deletion_text(applied_work.deleting)}",
        )
        for applied_work in facts.data.applied
    ]
    subject = facts.terminating[0] if facts.terminating else None
    if not blockers and (reported := deletion.reported_blockers(row)):
        blockers = [Evidence(where="resources.status", says=f"Deleting=True: waits for {reported}")]
    if facts.data.applied or facts.terminating:
        code = "MW-107" if is_old and any(live.finalizers for live in facts.terminating) else "MW-007"
        yield finding(code, facts, evidence=[marked, *records, *blockers], about=subject)
    elif not facts.readable_clusters:
        yield finding("MW-007", facts, evidence=[marked, *blockers])
    elif is_old:
        yield finding("MW-008", facts, evidence=[marked, Evidence(_cluster_names(facts), "nothing remains")])
    else:
        yield finding("MW-101", facts, evidence=[marked, Evidence(_cluster_names(facts), "nothing remains")])


def _active(facts: Facts, row: TracedResource) -> Iterator[Finding]:
    yield from _report(facts, row)
    yield from cluster_checks.check(facts, row)


def _report(facts: Facts, row: TracedResource) -> Iterator[Finding]:
    status = row.status
    if status is None:
        evidence = [Evidence("resources.status", "empty: the agent never reported")]
        evidence += [
            Evidence("events", f"{event.type} of {event.created} is not yet published")
            for event in row.events
            if event.reconciled is None
        ]
        if facts.data.applied:
            yield finding("MW-105", facts, evidence=evidence)
        else:
            evidence += cluster_checks.clusters_of_others(facts)
            is_young = facts.age(row.created) < UNDELIVERED_AFTER
            yield finding("MW-002" if is_young else "MW-003", facts, evidence=evidence)
        return
    if status.version < row.version:
        says = f"version {status.version} is reported, version {row.version} is desired"
        yield finding("MW-004", facts, evidence=[Evidence("resources.status", says)])
    applied, available = status.condition("Applied"), status.condition("Available")
    if status.version >= row.version and applied and 0 < (applied.generation or 0) < row.version:
        # A Go agent reports a new version before it has applied it, with the conditions of the version before.
        says = f"{applied} is of version {applied.generation} (observedGeneration), version {row.version} is desired"
        yield finding("MW-004", facts, evidence=[Evidence("resources.status", says)])
    if facts.data.reported_hold is not None:
        return  # Applied is False because of the hold, not of the cluster
    if applied and applied.status == "False":
        advice = apply_advice.advice(facts)
        found = finding("MW-005", facts, evidence=_failed_conditions(facts, "Applied"), first_advice=advice)
        is_right = apply_advice.is_manifest_right(facts)
        yield replace(found, advice=tuple(one for one in found.advice if not is_right or one != FIX_MANIFEST))
    elif available and available.status == "False":
        yield finding("MW-111", facts, evidence=_failed_conditions(facts, "Available"))


def _failed_conditions(facts: Facts, kind: str) -> list[Evidence]:
    row = facts.data.row
    of_work = row.status.condition(kind) if row and row.status else None
    of_manifests = [
        Evidence(str(manifest_row.key), f"{condition}: {condition.message}")
        for manifest_row in facts.manifest_rows
        for condition in manifest_row.conditions
        if condition.type == kind and condition.status == "False"
    ]
    return of_manifests or ([Evidence("the work", f"{of_work}: {of_work.message}")] if of_work else [])


def _unreadable(facts: Facts) -> Iterator[Finding]:
    unreadable = [access for access in (facts.data.database, *facts.candidate_clusters) if not access.is_readable]
    evidence = [Evidence(access.description, access.problem) for access in unreadable]
    if not facts.data.clusters:
        evidence.append(Evidence("clusters", "none was read; give --mgmt-context"))
    evidence += [
        Evidence(f"cluster {live.cluster}: {live.key}", live.problem)
        for manifest_row in facts.manifest_rows
        for live in manifest_row.live_objects
        if live.state == "unknown"
    ]
    if evidence:
        yield finding("MW-100", facts, evidence=evidence)


def _identity(facts: Facts) -> Iterator[Finding]:
    row = facts.data.row
    for check in identities.check_row(row) if row else ():
        if not check.is_equal:
            yield finding("MW-116", facts, evidence=[Evidence(check.what, check.says)])
    if row and any(applied_work.work_name == row.work_name != row.id for applied_work in facts.data.applied):
        says = f"spec.manifestWorkName is {row.work_name}"
        yield finding("MW-115", facts, evidence=[Evidence("AppliedManifestWork", says)])
    for applied_work in facts.data.applied:
        for check in identities.check_applied(applied_work, broker_host=facts.expectations.broker_host):
            if not check.is_equal and check.what == "hub hash":
                says = f"{applied_work.hub_hash} {check.says}"
                yield finding("MW-117", facts, evidence=[Evidence(applied_work.name, says)])


def _healthy(facts: Facts) -> list[Evidence]:
    row = facts.data.row
    status = row.status if row else None
    says = f"version {status.version}: {', '.join(map(str, status.conditions))}" if status else ""
    evidence = [Evidence("resources.status", says)] if status else []
    return [
        *evidence,
        *(Evidence(f"cluster {applied_work.cluster}", applied_work.name) for applied_work in facts.data.applied),
    ]


def _deletion_text(moment: object) -> str:
    return f"is being deleted since {moment}" if moment else "is there and not being deleted"


def _cluster_names(facts: Facts) -> str:
    return ", ".join(cluster.description for cluster in facts.readable_clusters)
