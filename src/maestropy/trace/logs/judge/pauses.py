"""Refine verdicts with what the logs do not say: a pause of the delivery to a consumer, the stored status. Pure.

A server stores requests for a paused consumer and publishes them after the resumption, so that no record shows them
to be published.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from maestropy.trace.logs.judge import sent_again
from maestropy.trace.logs.model import SETTLED, RequestFinding, RequestVerdict, Trace, timeline
from maestropy.trace.work.model import ConsumerPause, TracedResource

_UNPUBLISHED: Final = frozenset(("MT-203", "MT-208", "MT-209"))
_PAUSED: Final = "MT-213"
_STORED_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known besides the logs."""

    pauses: Mapping[str, ConsumerPause] = field(default_factory=dict)
    """By consumer."""
    rows: Mapping[str, TracedResource] = field(default_factory=dict)
    """Works by resource ID, as far as they are known."""


def known(pauses: Iterable[ConsumerPause], rows: Iterable[TracedResource] = ()) -> Known:
    """Return pauses and works in the form that `refined` takes."""
    return Known(pauses={pause.consumer: pause for pause in pauses}, rows={row.id: row for row in rows})


def refined(trace: Trace, known: Known) -> Trace:
    """Return the trace with the pause in the place of guesses, and names and versions that rows have."""
    row = known.rows.get(trace.key.resource)
    if row is not None:
        key = trace.key
        name, consumer = key.work_name or row.work_name, key.consumer or row.consumer
        version = key.version or _version(trace, row)
        trace = replace(trace, key=key._replace(work_name=name, consumer=consumer, version=version))
        trace = _applied(trace, row)
    return _paused(trace, known.pauses.get(trace.key.consumer), row)


def _applied(trace: Trace, row: TracedResource) -> Trace:
    """Return a delivery whose request is not in the logs as complete, if the stored status says so."""
    status = row.status
    applied = status.condition("Applied") if status is not None else None
    if status is None or applied is None or applied.status != "True" or status.version < trace.key.version:
        return trace
    return sent_again.applied(trace, version=status.version) if sent_again.is_without_request(trace) else trace


def _version(trace: Trace, row: TracedResource) -> int:
    """Return the version of a request whose records have none; 0 if the row is not certain to be of this request.

    A creation makes version 1. Any other is stored at once, so that the row it wrote was updated just after it.
    """
    if trace.key.action == "create":
        return 1
    stored = row.updated.timestamp() if row.updated is not None else 0.0
    return row.version if 0 <= stored - trace.start < _STORED_SECONDS else 0


def _paused(trace: Trace, pause: ConsumerPause | None, row: TracedResource | None) -> Trace:
    main = trace.main_finding
    if pause is None or trace.verdict in SETTLED or main is None or main.code not in _UNPUBLISHED:
        return trace
    if row is not None and row.deleted is None and row.version < trace.key.version:
        return trace  # it was not stored: the pause does not explain it
    why = f": {pause.reason}" if pause.reason else ""
    detail = f"delivery to {pause.consumer} is paused by {pause.by} since {pause.since}{why}"
    found = RequestFinding(_PAUSED, "likely", detail=detail, evidence=main.evidence)
    others = (other for other in trace.findings if other.code not in _UNPUBLISHED)
    return replace(trace, verdict=RequestVerdict.PENDING, findings=(found, *others))


def with_evidence(trace: Trace) -> Trace:
    """Return the trace with the last record that was seen as the evidence of findings about what was not seen."""
    if all(finding.evidence for finding in trace.findings):
        return trace
    last = tuple(timeline(trace.stages)[-1:])
    return replace(
        trace, findings=tuple(item if item.evidence else replace(item, evidence=last) for item in trace.findings)
    )
