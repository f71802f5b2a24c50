"""Build the adapter status of each outcome: reconciled, not ready, owned by another, deleted, failed. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from maestropy.adapter.decide import conditions
from maestropy.adapter.decide.adapter_status import (
    APPLIED,
    AVAILABLE,
    FINALIZED,
    HEALTH,
    AdapterStatus,
    condition,
    failed,
    healthy,
    not_deleting,
    not_finalized,
)
from maestropy.adapter.decide.failure import Failure
from maestropy.adapter.decide.ownership import OwnedByAnother
from maestropy.adapter.desired_state import NotReady, StatusReport
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource
from maestropy.sdk.work import Work
from maestropy.wire.works.status import FALSE, TRUE, Condition


def of_status_report(adapter: str, resource: Resource, *, works: Sequence[Work], report: StatusReport) -> AdapterStatus:
    """Return the status after the works were reconciled."""
    return AdapterStatus(
        adapter=adapter,
        generation=resource.generation,
        applied=conditions.applied(works),
        available=conditions.available(report),
        health=healthy() if report.health is None else _health(report),
        finalized=not_finalized(report.reason, report.message, is_deleting=resource.is_deleting),
        data={**_where(works), **report.data},
    )


def of_not_ready(adapter: str, resource: Resource, not_ready: NotReady) -> AdapterStatus:
    """Return the status while a precondition is missing; the adapter itself is healthy."""
    return AdapterStatus(
        adapter=adapter,
        generation=resource.generation,
        applied=condition(APPLIED, FALSE, not_ready.reason, not_ready.message),
        available=condition(AVAILABLE, FALSE, not_ready.reason, not_ready.message),
        health=healthy(),
        finalized=not_deleting(),
    )


def of_owned_by_another(adapter: str, resource: Resource, *, work: str, foreign: OwnedByAnother) -> AdapterStatus:
    """Return the status when another owner uses the name of a work."""
    message = (
        f"work {work} belongs to {foreign.owner}; give the work another name, or run this adapter with a source ID of "
        "its own (MAESTRO_SOURCE_ID)"
    )
    return failed(
        adapter,
        resource.generation,
        reason="OwnedByAnother",
        message=message,
        is_deleting=resource.is_deleting,
        applied=FALSE,
    )


def of_rejected_work(adapter: str, resource: Resource, *, failure: Failure) -> AdapterStatus:
    """Return the status when a server did not accept a work: this generation is not applied."""
    status = of_failure(adapter, resource, failure=failure)
    return replace(status, applied=condition(APPLIED, FALSE, failure.reason, failure.message))


def of_failed_read(adapter: str, resource: Resource, *, works: Sequence[Work], failure: Failure) -> AdapterStatus:
    """Return the status when the adapter's `read` failed: what the works say about Applied is still true."""
    status = of_failure(adapter, resource, failure=failure)
    return replace(status, applied=conditions.applied(works), data=_where(works))


def of_deletion(adapter: str, resource: Resource, *, remaining: Sequence[Work]) -> AdapterStatus:
    """Return the status of a resource that is being deleted."""
    names = ", ".join(f"{work.consumer}/{work.name}" for work in remaining)
    if remaining:
        message = f"waiting until the agents have deleted: {names}"
        finalized = condition(FINALIZED, FALSE, "Deleting", message)
        applied = condition(APPLIED, TRUE, "Deleting", message)
    else:
        finalized = condition(FINALIZED, TRUE, "Deleted", "no work of this adapter is left on any cluster")
        applied = condition(APPLIED, FALSE, "Deleted", "no work of this adapter is left on any cluster")
    return AdapterStatus(
        adapter=adapter,
        generation=resource.generation,
        applied=applied,
        available=condition(AVAILABLE, FALSE, "Deleting" if remaining else "Deleted", applied.message),
        health=healthy(),
        finalized=finalized,
    )


def of_failure(adapter: str, resource: Resource, *, failure: Failure) -> AdapterStatus:
    """Return the status when an event could not be handled; whether works are applied is unknown."""
    return failed(
        adapter,
        resource.generation,
        reason=failure.reason,
        message=failure.message,
        is_deleting=resource.is_deleting,
    )


def of_unread_resource(adapter: str, event: Event, *, failure: Failure) -> AdapterStatus:
    """Return the status when an event could not be handled, and its resource was not read."""
    return failed(
        adapter, event.generation, reason=failure.reason, message=failure.message, is_deleting=event.is_deleting
    )


def interrupted() -> Condition:
    """Return Health of an adapter that was stopped while it waited."""
    return condition(HEALTH, TRUE, "Interrupted", "the adapter was stopped while it waited; run it again")


def _health(report: StatusReport) -> Condition:
    assert report.health
    return condition(HEALTH, report.health.status, report.health.reason, report.health.message)


def _where(works: Sequence[Work]) -> dict[str, Any]:
    if not works:
        return {}
    references = [{"name": work.name, "consumer": work.consumer} for work in works]
    return {"manifestwork": references[0]} if len(references) == 1 else {"manifestworks": references}
