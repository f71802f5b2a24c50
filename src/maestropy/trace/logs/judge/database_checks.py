"""Refine findings with read-only database checks. The resource ID is passed as a parameter.

A result changes a finding only where it is clear: no row means that the request was rejected, an unreconciled event
means a lost notification or a backlog, a newer version proves that the request was stored, and a stored status of its
version proves that the agent reported it, and says whether it applied it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from maestropy.trace.findings.apply_errors import code_of_apply_error
from maestropy.trace.findings.codes import SQL
from maestropy.trace.logs.model import RequestFinding, RequestVerdict, Trace
from maestropy.trace.stages import Stage

_MANY_EVENTS = 100
_CHANGES = ("create", "update")
_AS_DOCUMENTS = "SELECT to_jsonb(found)::text FROM ({}) found"


class CheckRunner(Protocol):
    """Runs read-only statements."""

    async def documents(self, sql: str, parameters: Sequence[str]) -> Sequence[dict[str, Any]]:
        """Run one statement and return the JSON documents of its first column."""


CheckResults = dict[str, list[dict[str, Any]]]


async def run_checks(database: CheckRunner, trace: Trace) -> CheckResults:
    """Run the checks of a trace's findings."""
    names = dict.fromkeys(name for finding in trace.findings for name in finding.entry.sql)
    if trace.key.action in _CHANGES:
        names |= dict.fromkeys(("resource", "conditions", "manifests"))
    results: CheckResults = {}
    for name in names:
        statement = SQL[name]
        parameters = [trace.key.resource] if "$1" in statement else []
        results[name] = list(await database.documents(_AS_DOCUMENTS.format(statement), parameters))
    return results


def refined(trace: Trace, results: CheckResults) -> Trace:
    """Return the trace with findings that the database makes certain."""
    refined = replace(trace, findings=tuple(_refined(finding, trace, results) for finding in trace.findings))
    is_answered = any(finding.code == "MT-502" for finding in refined.findings)
    answered = replace(refined, verdict=RequestVerdict.COMPLETE, failed_stage=None) if is_answered else refined
    return _by_stored_status(answered, results)


def _by_stored_status(trace: Trace, results: CheckResults) -> Trace:
    """Return the trace with what the stored status says, if it is about the version of the request."""
    rows = results.get("resource", [])
    status_version = str(rows[0].get("status_version") or "") if rows else ""
    if trace.key.action not in _CHANGES or not trace.key.version or status_version != str(trace.key.version):
        return trace
    applied = _stored_applied(results)
    if applied is None or applied.get("status") not in ("True", "False") or _is_older(applied, trace):
        return trace
    if applied["status"] == "True":
        is_unknown = trace.verdict is RequestVerdict.UNKNOWN
        findings = tuple(finding for finding in trace.findings if finding.code != "MT-416")
        return replace(trace, verdict=RequestVerdict.COMPLETE, findings=findings) if is_unknown else trace
    if trace.failed_stage is not None and trace.failed_stage <= Stage.AGENT_HANDLES:
        return trace
    reasons = [str(row.get("message") or "") for row in results.get("manifests", [])]
    detail = "; ".join(reasons[:3]) or str(applied.get("message") or applied.get("reason") or "Applied is False")
    finding = RequestFinding(code_of_apply_error(detail), "certain", detail=detail)
    return replace(
        trace,
        verdict=RequestVerdict.FAILED,
        failed_stage=int(Stage.AGENT_HANDLES),
        findings=(finding, *(other for other in trace.findings if other.code != "MT-416")),
    )


def _stored_applied(results: CheckResults) -> dict[str, Any] | None:
    return next((row for row in results.get("conditions", []) if row.get("type") == "Applied"), None)


def _is_older(applied: dict[str, Any], trace: Trace) -> bool:
    """Say whether the condition is about a version before the request's, which a Go agent reports first."""
    observed = str(applied.get("observed_generation") or "")
    return observed.isdecimal() and 0 < int(observed) < trace.key.version


def _refined(finding: RequestFinding, trace: Trace, results: CheckResults) -> RequestFinding:
    if finding.code not in ("MT-209", "MT-101", "MT-503") or "resource" not in results:
        return finding
    rows, events = results["resource"], results.get("events", [])
    if finding.code == "MT-503":
        status_version = str(rows[0].get("status_version") or "") if rows else ""
        applied = _stored_applied(results)
        # It may be the status of an attempt before, or have the conditions of the version before.
        is_other = applied is not None and (applied.get("status") != "True" or _is_older(applied, trace))
        if trace.key.action == "delete" or status_version != str(trace.key.version) or is_other:
            return finding
        return RequestFinding("MT-502", "likely", detail=f"the database has a status of version {status_version}")
    if any(event.get("reconciled_date") is None for event in events):
        waiting = sum(int(row.get("count") or 0) for row in results.get("backlog", []))
        if waiting >= _MANY_EVENTS:
            return RequestFinding("MT-208", "likely", detail=f"{waiting:,} events wait in the database")
        return RequestFinding("MT-203", "likely", detail="the database has an event that no server has published")
    if not rows and trace.key.action != "delete":
        return RequestFinding("MT-201", "likely", detail="the database has no such resource")
    if rows and trace.key.version and int(rows[0].get("version") or 0) >= trace.key.version:
        detail = f"the database has version {rows[0]['version']}: the request was taken, its lines are missing"
        return RequestFinding("MT-002", "likely", detail=detail)
    return finding


def lines(results: CheckResults) -> list[str]:
    """Return the results as text."""
    rows_text = []
    for name, rows in results.items():
        rows_text.append(f"  database  {name}: {len(rows)} row{'s' * (len(rows) != 1)}")
        shown = ("  ".join(f"{key}={value}" for key, value in row.items() if value is not None) for row in rows[:10])
        rows_text += [f"            {row}" for row in shown]
    return rows_text
