"""A traced question as one value: verdicts for every work, the exit code, and the JSON model. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from maestropy.journal import redact
from maestropy.trace.errors import BadQuestion
from maestropy.trace.output import Evidence, Exit, Finding, finding_model
from maestropy.trace.work import identities, relations, verdicts
from maestropy.trace.work.codes import CATALOGUE
from maestropy.trace.work.facts import Facts, Wish, establish
from maestropy.trace.work.findings import bare_finding
from maestropy.trace.work.gather import Answer
from maestropy.trace.work.model import AppliedWork, Condition, NestedWork, Row, Sight
from maestropy.trace.work.relations import Line
from maestropy.trace.work.verdicts import Verdict

_ORDER = (
    Exit.NO_ACCESS, Exit.PROBLEM, Exit.AMBIGUOUS, Exit.NOT_FOUND, Exit.INCONCLUSIVE, Exit.HEALTHY,
)  # fmt: skip
"""Which of several exit codes a report ends with: the first of these that any work has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """One work and what is to be said about it."""

    facts: Facts
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The answer to a question."""

    answer: Answer
    works: tuple[Traced, ...]
    findings: tuple[Finding, ...]
    """About the question itself: ambiguous, standalone, no such manifest."""
    exit: Exit


def build(answer: Answer, *, now: datetime, wish: Wish) -> Report:
    """Judge every work of an answer."""
    works = []
    for each in answer.works:
        facts = establish(each, now=now, wish=wish)
        works.append(Traced(facts=facts, verdict=verdicts.judge(facts)))
    findings = tuple(_about_question(answer))
    codes = {each.verdict.exit for each in works} | {_exit_of(each) for each in findings}
    if not codes:
        is_dark = not answer.database.is_clear and not any(each.is_clear for each in answer.clusters)
        codes = {Exit.NO_ACCESS if is_dark else Exit.NOT_FOUND}
    return Report(
        answer=answer,
        works=tuple(works),
        findings=findings,
        exit=next(code for code in _ORDER if code in codes),
    )


def _exit_of(finding: Finding) -> Exit:
    return CATALOGUE[finding.code].exit


def _about_question(answer: Answer) -> Sequence[Finding]:
    question = answer.question
    if answer.candidates:
        return [bare_finding("MW-011", title=f"Multiple resources found for {question.asked}")]
    if answer.works:
        return []
    dark = [each for each in (answer.database, *answer.clusters) if not each.is_clear]
    unseen = [Evidence(where=each.place, says=each.trouble) for each in dark]
    if answer.starts:
        evidence = [
            Evidence(where=f"cluster {each.cluster}", says=f"{each.key} has no AppliedManifestWork among its owners")
            for each in answer.starts
        ]
        return [bare_finding("MW-118", evidence=evidence)]
    if dark:
        return [bare_finding("MW-100", evidence=unseen)]
    if question.manifest is not None:
        return [bare_finding("MW-119", title=f"Manifest {question.manifest} not found")]
    return [bare_finding("MW-010", title=f"No resource found for --{question.entry} {question.asked}")]


def model(report: Report) -> dict[str, Any]:
    """Return the report as the JSON model has it, without the frame."""
    answer = report.answer
    return {
        "question": {"entry": answer.question.entry, "asked": answer.question.asked},
        "sides": [_side(each) for each in (answer.database, *answer.clusters)],
        "works": [work_model(each) for each in report.works],
        "candidates": [candidate(each) for each in answer.candidates],
        "steps": list(answer.steps),
        "findings": [finding_model(each) for each in report.findings],
    }


def work_model(traced: Traced) -> dict[str, Any]:
    """Return one work as the JSON model has it."""
    facts = traced.facts
    gathered = facts.gathered
    row = gathered.row
    return {
        "workName": work_name(facts),
        "resourceId": resource_id(facts),
        "consumer": facts.consumer or None,
        "verdict": traced.verdict.name,
        "code": traced.verdict.code,
        "summary": traced.verdict.summary,
        "db": _row_model(row) if row else None,
        "tombstones": [
            {"resourceId": each.resource_id, "workName": each.work_name, "confirmedAt": iso(each.created)}
            for each in gathered.tombstones
        ],
        "applied": [_applied_model(each) for each in gathered.applied],
        "manifests": [line_model(each) for each in facts.lines],
        "nested": [_nested_model(each) for each in gathered.nested],
        "findings": [finding_model(each) for each in traced.verdict.findings],
    }


def resource_id(facts: Facts) -> str:
    """Return the id, from wherever it is known."""
    gathered = facts.gathered
    if gathered.row:
        return gathered.row.id
    if gathered.tombstones:
        return gathered.tombstones[0].resource_id
    return next((each.work_name for each in gathered.applied), "")


def work_name(facts: Facts) -> str:
    """Return the user's name of the work, from wherever it is known."""
    gathered = facts.gathered
    if gathered.row:
        return gathered.row.work_name
    return gathered.tombstones[0].work_name if gathered.tombstones else ""


def candidate(row: Row) -> dict[str, Any]:
    """Return what tells one of several works from the others."""
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


def line_model(line: Line) -> dict[str, Any]:
    """Return one manifest on all sides."""
    matches = [each.is_same_object for each in line.placed if each.is_same_object is not None]
    return {
        "gvk": {"group": line.key.group, "kind": line.key.kind or None, "resource": line.key.plural},
        "namespace": line.key.namespace or None,
        "name": line.key.name,
        "inDb": line.wanted is not None,
        "applied": line.is_applied,
        "live": line.is_live,
        "uidMatch": all(matches) if matches else None,
        "strategy": line.strategy or None,
        "owners": list(line.owners),
        "finalizers": sorted({name for live in line.lives for name in live.finalizers}),
        "deletionTimestamp": next((iso(live.deleting) for live in line.lives if live.deleting), None),
        "conditions": [_condition(each) for each in line.conditions],
        "feedback": redact.fields(dict(line.feedback)),
    }


def _row_model(row: Row) -> dict[str, Any]:
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
            "conditions": [_condition(each) for each in status.conditions],
        }
        if status
        else None,
        "events": [
            {"id": each.id, "type": each.type, "createdAt": iso(each.created), "reconciledAt": iso(each.reconciled)}
            for each in row.events
        ],
    }


def sequence_time(sequence: str) -> datetime | None:
    """Return when the agent made a sequence id, if it is one."""
    try:
        return identities.time_of_sequence(sequence) if sequence else None
    except BadQuestion:
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
        "conditions": [_condition(each) for each in nested.status.conditions] if nested.status else [],
        "applied": [_applied_model(each) for each in nested.applied],
        "manifests": [line_model(each) for each in relations.nested_lines(nested)],
        "nested": [_nested_model(each) for each in nested.nested],
    }


def _condition(condition: Condition) -> Mapping[str, Any]:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": redact.text(condition.message),
        "observedGeneration": condition.generation,
    }


def _side(sight: Sight) -> dict[str, Any]:
    return {
        "place": sight.place,
        "seen": sight.is_clear,
        "consumer": sight.consumer or None,
        "trouble": sight.trouble or None,
    }
