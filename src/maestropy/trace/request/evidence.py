"""Ask the database what the logs cannot say. Read-only; the resource ID travels as a parameter.

The answers change a finding only where they are clear: a request without a row was rejected, an event that nobody has
reconciled was never announced or waits behind many others, a newer version is proof that the request arrived, and a
stored status of its version that it was answered.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from maestropy.trace.request.codes import SQL
from maestropy.trace.request.model import Finding, Trace, Verdict

_MANY_EVENTS = 100
_AS_DOCUMENTS = "SELECT to_jsonb(found)::text FROM ({}) found"


class Database(Protocol):
    """Whoever answers read-only questions."""

    async def documents(self, sql: str, parameters: Sequence[str]) -> Sequence[dict[str, Any]]:
        """Run one statement and return the JSON documents of its first column."""
        ...


Answers = dict[str, list[dict[str, Any]]]


async def ask(database: Database, trace: Trace) -> Answers:
    """Run the checks of a trace's findings."""
    names = dict.fromkeys(name for finding in trace.findings for name in finding.entry.sql)
    answers: Answers = {}
    for name in names:
        statement = SQL[name]
        parameters = [trace.key.resource] if "$1" in statement else []
        answers[name] = list(await database.documents(_AS_DOCUMENTS.format(statement), parameters))
    return answers


def refined(trace: Trace, answers: Answers) -> Trace:
    """Return the trace with findings that the database makes certain."""
    refined = replace(trace, findings=tuple(_refined(each, trace, answers) for each in trace.findings))
    is_answered = any(each.code == "MT-502" for each in refined.findings)
    return replace(refined, verdict=Verdict.COMPLETE, failed_stage=None) if is_answered else refined


def _refined(finding: Finding, trace: Trace, answers: Answers) -> Finding:
    if finding.code not in ("MT-209", "MT-101", "MT-503") or "resource" not in answers:
        return finding
    rows, events = answers["resource"], answers.get("events", [])
    if finding.code == "MT-503":
        told = str(rows[0].get("status_version") or "") if rows else ""
        if trace.key.action == "delete" or told != str(trace.key.version):
            return finding
        return Finding(code="MT-502", confidence="likely", detail=f"the database has a status of version {told}")
    if any(event.get("reconciled_date") is None for event in events):
        waiting = sum(int(each.get("count") or 0) for each in answers.get("backlog", []))
        if waiting >= _MANY_EVENTS:
            return Finding(code="MT-208", confidence="likely", detail=f"{waiting:,} events wait in the database")
        return Finding(
            code="MT-203", confidence="likely", detail="the database holds an event that nobody has published"
        )
    if not rows and trace.key.action != "delete":
        return Finding(code="MT-201", confidence="likely", detail="the database has no such resource")
    if rows and trace.key.version and int(rows[0].get("version") or 0) >= trace.key.version:
        detail = f"the database has version {rows[0]['version']}: the request was taken, its lines are missing"
        return Finding(code="MT-002", confidence="likely", detail=detail)
    return finding


def lines(answers: Answers) -> list[str]:
    """Return the answers as text."""
    found = []
    for name, rows in answers.items():
        found.append(f"  database  {name}: {len(rows)} row{'s' * (len(rows) != 1)}")
        shown = ("  ".join(f"{key}={value}" for key, value in row.items() if value is not None) for row in rows[:10])
        found += [f"            {row}" for row in shown]
    return found
