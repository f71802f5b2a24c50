"""Build the report of a work trace: a verdict for every work, the exit code, and the JSON model. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from maestropy.journal import redact
from maestropy.trace.errors import InvalidArguments
from maestropy.trace.findings.codes import CODES
from maestropy.trace.output import Evidence, Exit, Finding, finding_model
from maestropy.trace.work import identities
from maestropy.trace.work.judge import coverage, deletion, manifest_rows, verdicts
from maestropy.trace.work.judge.facts import Expectations, Facts, compute
from maestropy.trace.work.judge.findings import bare_finding
from maestropy.trace.work.judge.manifest_rows import ManifestRow
from maestropy.trace.work.judge.verdicts import WorkVerdict
from maestropy.trace.work.model import (
    AccessStatus,
    AppliedWork,
    NestedWork,
    ReportedCondition,
    SearchCoverage,
    TracedResource,
    WorkQueryResult,
)

_ORDER = (
    Exit.NO_ACCESS, Exit.PROBLEM, Exit.AMBIGUOUS, Exit.NOT_FOUND, Exit.INCONCLUSIVE, Exit.HEALTHY,
)  # fmt: skip
"""Which of several exit codes a report ends with: the first of these that any work has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """One work with its verdict."""

    facts: Facts
    verdict: WorkVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkReport:
    """The report of a query."""

    result: WorkQueryResult
    works: tuple[Traced, ...]
    findings: tuple[Finding, ...]
    """Findings about the query itself: ambiguous, standalone, no such manifest."""
    exit: Exit


def build(result: WorkQueryResult, *, now: datetime, expectations: Expectations) -> WorkReport:
    """Judge every work of a query result."""
    works = []
    for work in result.works:
        facts = compute(work, now=now, expectations=expectations)
        works.append(Traced(facts=facts, verdict=verdicts.judge(facts)))
    findings = tuple(_query_findings(result))
    codes = {work.verdict.exit for work in works} | {_exit_of(work) for work in findings}
    if not codes:
        is_unreadable = not result.database.is_readable and not any(cluster.is_readable for cluster in result.clusters)
        codes = {Exit.NO_ACCESS if is_unreadable else Exit.NOT_FOUND}
    return WorkReport(
        result=result, works=tuple(works), findings=findings, exit=next(code for code in _ORDER if code in codes)
    )


def _exit_of(finding: Finding) -> Exit:
    return CODES[finding.code].exit


def _query_findings(result: WorkQueryResult) -> Sequence[Finding]:
    query = result.query
    shown = len(result.candidates) or sum(work.row is not None for work in result.works)
    more: list[Finding] = []
    if result.coverage and shown:
        more += coverage.more_works(
            result.coverage, shown=shown, database=result.database.description, requested=query.requested
        )
    is_consumer = query.entry == "work-name" and all(row.consumer == query.requested for row in result.candidates)
    if result.candidates and is_consumer and query.requested not in {row.work_name for row in result.candidates}:
        title = f"{query.requested} is a consumer, not a work; these are its newest works"
        return [bare_finding("MW-011", title=title)]
    if result.candidates:
        return [bare_finding("MW-011", title=f"Multiple resources found for {query.requested}"), *more]
    if result.works:
        return more
    unreadable = [cluster for cluster in (result.database, *result.clusters) if not cluster.is_readable]
    unseen = [Evidence(access.description, access.problem) for access in unreadable]
    if result.starts:
        evidence = [
            Evidence(f"cluster {start.cluster}", f"{start.key} has no AppliedManifestWork among its owners")
            for start in result.starts
        ]
        return [bare_finding("MW-118", evidence=evidence, about=result.starts[0], clusters=result.clusters)]
    if unreadable:
        return [bare_finding("MW-100", evidence=unseen)]
    if result.coverage and not result.coverage.is_complete:
        title = f"Nothing found for --{query.entry} {query.requested} in the part that was searched"
        return [coverage.partly_searched(result.coverage, database=result.database.description, title=title)]
    if query.manifest is not None:
        return [bare_finding("MW-119", title=f"Manifest {query.manifest} not found")]
    return [bare_finding("MW-010", title=f"No resource found for --{query.entry} {query.requested}")]


def model(report: WorkReport) -> dict[str, Any]:
    """Return the report as the JSON model has it, without the frame."""
    result = report.result
    return {
        "question": {"entry": result.query.entry, "asked": result.query.requested},
        "sides": [_access_model(cluster) for cluster in (result.database, *result.clusters)],
        "works": [work_model(work) for work in report.works],
        "candidates": [candidate(row) for row in result.candidates],
        "steps": list(result.steps),
        "search": _coverage_model(result.coverage) if result.coverage else None,
        "findings": [finding_model(finding) for finding in report.findings],
    }


def _coverage_model(search: SearchCoverage) -> dict[str, Any]:
    return {
        "matches": search.matches,
        "isCounted": search.is_counted,
        "isComplete": search.is_complete,
        "searched": search.searched,
        "total": search.total,
        "since": iso(search.since),
        "byComputedIds": search.by_computed_ids,
    }


def work_model(traced: Traced) -> dict[str, Any]:
    """Return one work as the JSON model has it."""
    facts = traced.facts
    data = facts.data
    row = data.row
    return {
        "workName": work_name(facts),
        "resourceId": resource_id(facts),
        "consumer": facts.consumer or None,
        "verdict": traced.verdict.name,
        "code": traced.verdict.code,
        "summary": traced.verdict.summary,
        "db": _row_model(row) if row else None,
        "tombstones": [
            {
                "resourceId": tombstone.resource_id,
                "workName": tombstone.work_name,
                "confirmedAt": iso(tombstone.created),
            }
            for tombstone in data.tombstones
        ],
        "applied": [_applied_model(applied_work) for applied_work in data.applied],
        "manifests": [manifest_model(manifest_row) for manifest_row in facts.manifest_rows],
        "nested": [_nested_model(nested) for nested in data.nested],
        "deletion": [
            {"step": step.name, "state": step.state, "says": step.says, "explanation": step.explanation}
            for step in deletion.steps(facts)
        ],
        "findings": [finding_model(finding) for finding in traced.verdict.findings],
    }


def resource_id(facts: Facts) -> str:
    """Return the id, from wherever it is known."""
    data = facts.data
    if data.row:
        return data.row.id
    if data.tombstones:
        return data.tombstones[0].resource_id
    return next((applied_work.work_name for applied_work in data.applied), "")


def work_name(facts: Facts) -> str:
    """Return the user's name of the work, from wherever it is known."""
    data = facts.data
    if data.row:
        return data.row.work_name
    return data.tombstones[0].work_name if data.tombstones else ""


def candidate(row: TracedResource) -> dict[str, Any]:
    """Return the fields that distinguish one of several works."""
    return {
        "resourceId": row.id,
        "workName": row.work_name,
        "source": row.source or None,
        "consumer": row.consumer,
        "createdAt": iso(row.created),
        "deletedAt": iso(row.deleted),
    }


def iso(moment: datetime | None) -> str | None:
    """Return a time as JSON has it."""
    return moment.isoformat().replace("+00:00", "Z") if moment else None


def manifest_model(line: ManifestRow) -> dict[str, Any]:
    """Return the JSON model of one manifest."""
    matches = [entry.is_same_object for entry in line.entries if entry.is_same_object is not None]
    return {
        "gvk": {"group": line.key.group, "kind": line.key.kind or None, "resource": line.key.plural},
        "namespace": line.key.namespace or None,
        "name": line.key.name,
        "inDb": line.desired is not None,
        "applied": line.is_applied,
        "live": line.is_live,
        "uidMatch": all(matches) if matches else None,
        "strategy": line.strategy or None,
        "owners": list(line.owners),
        "finalizers": sorted({name for live in line.live_objects for name in live.finalizers}),
        "deletionTimestamp": next((iso(live.deleting) for live in line.live_objects if live.deleting), None),
        "conditions": [_condition(condition) for condition in line.conditions],
        "feedback": redact.fields(dict(line.feedback)),
    }


def _row_model(row: TracedResource) -> dict[str, Any]:
    status = row.status
    checks = identities.check_row(row)
    return {
        "id": row.id,
        "source": row.source or None,
        "consumer": row.consumer,
        "version": row.version,
        "createdAt": iso(row.created),
        "updatedAt": iso(row.updated),
        "deletedAt": iso(row.deleted),
        "operationId": row.operation_id or None,
        "labels": dict(row.labels),
        "idIsComputed": checks[0].is_equal if checks else None,
        "status": {
            "version": status.version,
            "sequence": status.sequence,
            "sentAt": iso(sequence_time(status.sequence)),
            "conditions": [_condition(condition) for condition in status.conditions],
        }
        if status
        else None,
        "events": [
            {"id": event.id, "type": event.type, "createdAt": iso(event.created), "reconciledAt": iso(event.reconciled)}
            for event in row.events
        ],
    }


def sequence_time(sequence: str) -> datetime | None:
    """Return when the agent made a sequence id, if it is one."""
    try:
        return identities.time_of_sequence(sequence) if sequence else None
    except InvalidArguments:
        return None


def _applied_model(applied: AppliedWork) -> dict[str, Any]:
    return {
        "cluster": applied.cluster,
        "name": applied.name,
        "uid": applied.uid or None,
        "hubHash": applied.hub_hash,
        "agentId": applied.agent_id,
        "manifestWorkName": applied.work_name,
        "createdAt": iso(applied.created),
        "deletionTimestamp": iso(applied.deleting),
        "evictionStartTime": iso(applied.evicting),
        "finalizers": list(applied.finalizers),
        "resources": len(applied.resources),
    }


def _nested_model(nested: NestedWork) -> dict[str, Any]:
    return {
        "depth": nested.depth,
        "cluster": nested.cluster,
        "namespace": nested.namespace,
        "name": nested.name,
        "conditions": [_condition(condition) for condition in nested.status.conditions] if nested.status else [],
        "applied": [_applied_model(applied_work) for applied_work in nested.applied],
        "manifests": [manifest_model(row) for row in manifest_rows.nested_rows(nested)],
        "nested": [_nested_model(inner) for inner in nested.nested],
    }


def _condition(condition: ReportedCondition) -> Mapping[str, Any]:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": redact.text(condition.message),
        "observedGeneration": condition.generation,
    }


def _access_model(access: AccessStatus) -> dict[str, Any]:
    return {
        "place": access.description,
        "seen": access.is_readable,
        "consumer": access.consumer or None,
        "trouble": access.problem or None,
    }
