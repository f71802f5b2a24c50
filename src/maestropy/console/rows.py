"""Reduce a resource bundle to the row of a list, with the verdict of `trace work` on what REST tells. Pure.

A row holds names, times and a verdict, never a manifest, so that a hundred thousand of them fit into memory.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from sys import intern
from typing import Any, Final

from maestropy.diagnose.analysis import causes
from maestropy.trace.findings.codes import CODES
from maestropy.trace.output import Finding
from maestropy.trace.work import parse
from maestropy.trace.work.judge import apply_advice, deletion, verdicts
from maestropy.trace.work.judge.facts import STUCK_AFTER, UNDELIVERED_AFTER, compute
from maestropy.trace.work.model import AccessStatus, ConsumerPause, TracedResource, WorkData, WorkHold
from maestropy.trace.work.report.work_report import sequence_time
from maestropy.untrusted.printable import escape

HEALTHY: Final = "MW-001"
PENDING: Final = "MW-002"
NOT_READ: Final = "MW-100"
"""A list reads no cluster: that it did not is no finding about a work, and does not make it broken."""
_REJECTED: Final = "MW-005"
_DELETED_AT: Final = "resources.deleted_at"
_CAUSE_LETTERS: Final = 10
_LONGEST: Final = 240
_LONGEST_ADVICE: Final = 600
_MOST_ADVICE: Final = 3
_MOST_NAMED: Final = 12
_DATABASE: Final = AccessStatus(description="REST API", is_readable=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRow:
    """One work of the list."""

    id: str
    name: str
    consumer: str
    version: int
    observed: int
    """The version that the agent has reported; 0 if it never reported."""
    labels: tuple[str, ...]
    """Each as `key=value`."""
    conditions: tuple[str, ...]
    """Each as `Applied=True`."""
    objects: tuple[str, ...]
    """The first objects, each as `kind/namespace/name`."""
    manifest_count: int
    created: float
    updated: float
    deleted: float
    """0 if it is not being deleted."""
    reported: float
    """When the agent sent its last status, by the agent's clock; 0 if it never did."""
    code: str
    severity: str
    problem: str
    """The first piece of evidence, shortened and without secrets; empty for a healthy work."""
    advice: tuple[str, ...]
    """What to do about this cause in particular, such as a kind that the cluster does not have."""
    cause: str
    """What it has in common with other works that the cluster rejects for the same reason; empty for other verdicts."""
    is_blocked: bool
    """Whether the agent reported which objects its deletion waits for."""
    due: float
    """When time alone changes the verdict; 0 if it does not."""

    @property
    def is_current(self) -> bool:
        """Whether the agent has reported the newest version."""
        return self.observed >= self.version

    @property
    def is_settled(self) -> bool:
        """Whether nothing is to be sent: the newest version is reported, and no deletion is requested."""
        return self.is_current and not self.deleted

    @property
    def text(self) -> str:
        """What a search for plain text looks at, in lower case."""
        parts = (self.name, self.id, self.consumer, self.code, *self.labels, *self.objects, self.problem)
        return "\n".join(parts).lower()


def row(
    bundle: Mapping[str, Any], *, now: datetime, hold: WorkHold | None = None, pause: ConsumerPause | None = None
) -> WorkRow:
    """Return the row of a resource bundle of the REST API; hold and pause are those of its consumer."""
    return of_resource(parse.bundle(bundle), now=now, hold=hold, pause=pause, name=str(bundle.get("name") or ""))


def of_resource(
    resource: TracedResource,
    *,
    now: datetime,
    hold: WorkHold | None = None,
    pause: ConsumerPause | None = None,
    name: str = "",
) -> WorkRow:
    """Return the row of a work, without secret values; `name` is for a work that has none in its metadata."""
    status = resource.status
    finding, advice = _finding(resource, now=now, hold=hold, pause=pause)
    sent = sequence_time(status.sequence) if status else None
    return WorkRow(
        id=resource.id,
        name=resource.work_name or name,
        consumer=intern(resource.consumer),
        version=resource.version,
        observed=status.version if status else 0,
        labels=tuple(intern(shortened(f"{key}={value}")) for key, value in resource.labels.items()),
        conditions=tuple(intern(shortened(str(condition))) for condition in status.conditions) if status else (),
        objects=tuple(shortened(str(parse.manifest_key(item))) for item in resource.manifests[:_MOST_NAMED]),
        manifest_count=len(resource.manifests),
        created=_seconds(resource.created),
        updated=_seconds(resource.updated),
        deleted=_seconds(resource.deleted),
        reported=_seconds(sent),
        code=finding.code if finding else HEALTHY,
        severity=finding.severity if finding else "info",
        problem=_problem(finding) if finding else "",
        advice=advice,
        cause=_cause(finding) if finding else "",
        is_blocked=bool(resource.deleted and deletion.reported_blockers(resource)),
        due=_due(resource, now=now),
    )


def with_verdict(row: WorkRow, found: Finding) -> WorkRow:
    """Return the row with the verdict of a trace that has read more than the row, such as the cluster."""
    if found.code == row.code:
        return row  # what it says is about this finding, and has no secret values
    problem = "" if found.code == HEALTHY else _problem(found)
    return replace(row, code=found.code, severity=found.severity, problem=problem, advice=(), cause=_cause(found))


def _finding(
    resource: TracedResource, *, now: datetime, hold: WorkHold | None, pause: ConsumerPause | None
) -> tuple[Finding | None, tuple[str, ...]]:
    """Return the worst finding of `trace work`, None for a healthy work, and the advice on its cause in particular."""
    covered = hold if hold is not None and hold.covers(resource.id) else None
    data = WorkData(row=resource, database=_DATABASE, has_read_objects=False, hold=covered, pause=pause)
    facts = compute(data, now=now)
    verdict = verdicts.judge(facts)
    # The verdict's own finding is first, the others follow by severity.
    found = next((item for item in verdict.findings if item.code != NOT_READ and item.severity != "info"), None)
    if found is None or found.code != _REJECTED:
        return found, ()
    return found, tuple(intern(escape(text[:_LONGEST_ADVICE])) for text in apply_advice.advice(facts)[:_MOST_ADVICE])


def _cause(finding: Finding) -> str:
    """Return a short name for the cause of a rejection, by the rule of `maestro diagnose`: one for all processes."""
    if finding.code not in causes.OF_MANIFESTS:
        return ""
    text = causes.of_work(finding, consumer="")
    return intern(hashlib.sha256(text.encode(errors="replace")).hexdigest()[:_CAUSE_LETTERS])


def _due(resource: TracedResource, *, now: datetime) -> float:
    if resource.deleted is not None:
        moment: datetime | None = resource.deleted + STUCK_AFTER
    elif resource.status is None and resource.created is not None:
        moment = resource.created + UNDELIVERED_AFTER
    else:
        moment = None
    # A second later, so that the verdict has changed for certain.
    return _seconds(moment + timedelta(seconds=1)) if moment is not None and moment > now else 0.0


def _problem(finding: Finding) -> str:
    if finding.evidence:
        # The time of a deletion is in a column of its own; what it waits for is what somebody looks for.
        told = [item for item in finding.evidence if item.where != _DELETED_AT]
        if not told:
            return f"deletion requested {finding.evidence[0].says}, not confirmed by the agent"
        return shortened(f"{told[0].where}: {told[0].says}")
    return CODES[finding.code].title


def shortened(text: str) -> str:
    """Return a text of others in one line of bounded length, without characters that reorder or hide text."""
    return escape(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0


def moment_of(seconds: float) -> str | None:
    """Return a time as RFC 3339 in UTC; None for 0, and for what no calendar has."""
    if not seconds:
        return None
    try:
        moment = datetime.fromtimestamp(seconds, tz=UTC)
    except (ValueError, OverflowError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
