"""Compute the conditions of an adapter: Applied from its works, Available from its status report.

Unknown is not False: until the agent has reported on this version of a work its state is unknown. False would mark a
running cluster as unavailable at every change. Pure.
"""

from collections.abc import Mapping, Sequence

from maestropy.adapter.decide.adapter_status import APPLIED, AVAILABLE, condition
from maestropy.adapter.desired_state import StatusReport
from maestropy.sdk._operations import summary
from maestropy.sdk.work import Work
from maestropy.wire import json_types
from maestropy.wire.errors import WireError
from maestropy.wire.works import status
from maestropy.wire.works.status import FALSE, TRUE, UNKNOWN, Condition

NOT_SYNCED = "NotSynced"
STATUS_OUTDATED = "StatusOutdated"
"""The status of an object is of an older generation of that object."""


def is_current(work: Work) -> bool:
    """Whether the agent has reported on the current version of a work."""
    return work.is_reported and not work.is_stale


def applied(works: Sequence[Work]) -> Condition:
    """Return Applied for all works together: the first work that is not applied decides."""
    for work in works:
        if not is_current(work):
            return condition(APPLIED, UNKNOWN, NOT_SYNCED, f"work {work.name}: {summary.sentence(work)}")
        condition_applied = work.condition(status.APPLIED)
        if condition_applied is None:
            return condition(APPLIED, UNKNOWN, NOT_SYNCED, f"work {work.name}: {summary.missing(work, APPLIED)}")
        if condition_applied.status != TRUE:
            return condition(
                APPLIED,
                condition_applied.status,
                condition_applied.reason,
                f"work {work.name}: {summary.missing(work, APPLIED)}",
            )
    if not works:
        return condition(APPLIED, TRUE, "NothingToApply", "the desired state has no works")
    last = works[-1].condition(status.APPLIED)
    assert last
    return condition(APPLIED, TRUE, last.reason, last.message)


def available(report: StatusReport) -> Condition:
    """Return Available of a status report; its own reason and message replace those of the condition."""
    observed = _condition(report)
    return condition(AVAILABLE, observed.status, report.reason or observed.reason, report.message or observed.message)


def from_object(object_status: Mapping[str, object]) -> Condition:
    """Return the condition Available of an object's status; without one, Progressing decides. Degraded is added."""
    try:
        by_type = {
            str(raw.get("type")): Condition(
                type=str(raw.get("type")),
                status=str(raw.get("status") or UNKNOWN),
                reason=str(raw.get("reason") or ""),
                message=str(raw.get("message") or ""),
            )
            for raw in json_types.objects_at(object_status, "conditions")
        }
    except WireError as error:
        return Condition(type=AVAILABLE, status=UNKNOWN, reason="FeedbackUnreadable", message=str(error))
    available = by_type.get(AVAILABLE)
    if available is None:
        progressing = by_type.get("Progressing")
        if progressing is not None and progressing.status == TRUE:
            return Condition(type=AVAILABLE, status=FALSE, reason="Provisioning", message=progressing.message)
        return Condition(
            type=AVAILABLE,
            status=UNKNOWN,
            reason="NoAvailableCondition",
            message="the object has no condition Available yet",
        )
    if available.status not in (TRUE, FALSE, UNKNOWN):
        return Condition(
            type=AVAILABLE, status=UNKNOWN, reason="FeedbackUnreadable", message=f"Available is {available.status!r}"
        )
    degraded = by_type.get("Degraded")
    if degraded is not None and degraded.status == TRUE:
        message = "; ".join(filter(None, (available.message, f"Degraded: {degraded.message or degraded.reason}")))
        return Condition(type=AVAILABLE, status=available.status, reason=available.reason, message=message)
    return available


def _condition(report: StatusReport) -> Condition:
    match report.available:
        case True:
            return Condition(type=AVAILABLE, status=TRUE, reason="Available")
        case False:
            return Condition(type=AVAILABLE, status=FALSE, reason="NotAvailable")
        case None:
            return Condition(type=AVAILABLE, status=UNKNOWN, reason="Unknown")
        case Condition() as condition:
            return condition
        case Mapping() as object_status:
            return from_object(object_status)
