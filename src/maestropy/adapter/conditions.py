"""Which conditions follow from what was done and seen? Applied from the works, Available from the adapter's reading.

Unknown is not False: while the cluster has not answered for this version of a work, nobody knows, and saying False
would call a running cluster broken at every change. Pure.
"""

from collections.abc import Mapping, Sequence

from maestropy.adapter.report import APPLIED, AVAILABLE, condition
from maestropy.adapter.wish import Reading
from maestropy.sdk import telling
from maestropy.sdk.work import Work
from maestropy.wire import jsontypes, status
from maestropy.wire.errors import WireError
from maestropy.wire.status import FALSE, TRUE, UNKNOWN, Condition

NOT_SYNCED = "NotSynced"


def is_current(work: Work) -> bool:
    """Whether the agent has spoken about the version that is wanted now."""
    return work.is_reported and not work.is_stale


def applied(works: Sequence[Work]) -> Condition:
    """Return Applied for all works together: the first that is not applied speaks for all."""
    for work in works:
        if not is_current(work):
            return condition(APPLIED, UNKNOWN, NOT_SYNCED, f"work {work.name}: {telling.sentence(work)}")
        found = work.condition(status.APPLIED)
        if found is None:
            return condition(APPLIED, UNKNOWN, NOT_SYNCED, f"work {work.name}: {telling.missing(work, APPLIED)}")
        if found.status != TRUE:
            return condition(APPLIED, found.status, found.reason, f"work {work.name}: {telling.missing(work, APPLIED)}")
    if not works:
        return condition(APPLIED, TRUE, "NothingToApply", "this adapter wants nothing on the cluster")
    last = works[-1].condition(status.APPLIED)
    assert last
    return condition(APPLIED, TRUE, last.reason, last.message)


def available(reading: Reading) -> Condition:
    """Return Available as an adapter's reading has it; its own reason and message win over those it found."""
    found = _found(reading)
    return condition(AVAILABLE, found.status, reading.reason or found.reason, reading.message or found.message)


def from_object(object_status: Mapping[str, object]) -> Condition:
    """Return the condition Available of an object's status, with Progressing and Degraded heard where it is silent."""
    try:
        told = {
            str(each.get("type")): Condition(
                type=str(each.get("type")),
                status=str(each.get("status") or UNKNOWN),
                reason=str(each.get("reason") or ""),
                message=str(each.get("message") or ""),
            )
            for each in jsontypes.objects_at(object_status, "conditions")
        }
    except WireError as error:
        return Condition(type=AVAILABLE, status=UNKNOWN, reason="FeedbackUnreadable", message=str(error))
    found = told.get(AVAILABLE)
    if found is None:
        progressing = told.get("Progressing")
        if progressing is not None and progressing.status == TRUE:
            return Condition(type=AVAILABLE, status=FALSE, reason="Provisioning", message=progressing.message)
        return Condition(
            type=AVAILABLE, status=UNKNOWN, reason="NoAvailableCondition", message="the object does not say yet"
        )
    if found.status not in (TRUE, FALSE, UNKNOWN):
        return Condition(
            type=AVAILABLE, status=UNKNOWN, reason="FeedbackUnreadable", message=f"Available is {found.status!r}"
        )
    degraded = told.get("Degraded")
    if degraded is not None and degraded.status == TRUE:
        words = "; ".join(filter(None, (found.message, f"Degraded: {degraded.message or degraded.reason}")))
        return Condition(type=AVAILABLE, status=found.status, reason=found.reason, message=words)
    return found


def _found(reading: Reading) -> Condition:
    match reading.available:
        case True:
            return Condition(type=AVAILABLE, status=TRUE, reason="Available")
        case False:
            return Condition(type=AVAILABLE, status=FALSE, reason="NotAvailable")
        case None:
            return Condition(type=AVAILABLE, status=UNKNOWN, reason="Unknown")
        case Condition() as found:
            return found
        case Mapping() as object_status:
            return from_object(object_status)
