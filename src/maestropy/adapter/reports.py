"""Which report belongs to which end of an event: done, held, not ours, removed, failed. Pure."""

from collections.abc import Sequence
from typing import Any

from maestropy.adapter import conditions
from maestropy.adapter.failure import Failure
from maestropy.adapter.report import (
    APPLIED,
    AVAILABLE,
    FINALIZED,
    HEALTH,
    Report,
    condition,
    failed,
    healthy,
    not_deleting,
)
from maestropy.adapter.resource import Resource
from maestropy.adapter.stamping import Foreign
from maestropy.adapter.wish import Hold, Reading
from maestropy.sdk.work import Work
from maestropy.wire.status import FALSE, TRUE, Condition


def of_reading(adapter: str, resource: Resource, *, works: Sequence[Work], reading: Reading) -> Report:
    """Return what is told when an adapter did its work."""
    return Report(
        adapter=adapter,
        generation=resource.generation,
        applied=conditions.applied(works),
        available=conditions.available(reading),
        health=healthy() if reading.health is None else _health(reading),
        finalized=not_deleting(),
        data={**_where(works), **reading.data},
    )


def of_hold(adapter: str, resource: Resource, hold: Hold) -> Report:
    """Return what is told when something else must come first; the adapter itself is well."""
    return Report(
        adapter=adapter,
        generation=resource.generation,
        applied=condition(APPLIED, FALSE, hold.reason, hold.message),
        available=condition(AVAILABLE, FALSE, hold.reason, hold.message),
        health=healthy(),
        finalized=not_deleting(),
    )


def of_foreign(adapter: str, resource: Resource, *, work: str, foreign: Foreign) -> Report:
    """Return what is told when the name of a work is taken by somebody else."""
    message = (
        f"work {work} belongs to {foreign.owner}; give the work another name, or run this adapter with a source id of "
        "its own (MAESTRO_SOURCE_ID)"
    )
    return failed(adapter, resource.generation, reason="OwnedByAnother", message=message)


def of_removal(adapter: str, resource: Resource, *, left: Sequence[Work]) -> Report:
    """Return what is told when a resource is to go."""
    names = ", ".join(f"{each.consumer}/{each.name}" for each in left)
    if left:
        message = f"waiting until the agents have removed: {names}"
        finalized = condition(FINALIZED, FALSE, "Deleting", message)
        applied = condition(APPLIED, TRUE, "Deleting", message)
    else:
        finalized = condition(FINALIZED, TRUE, "Deleted", "nothing of this adapter is left on any cluster")
        applied = condition(APPLIED, FALSE, "Deleted", "nothing of this adapter is left on any cluster")
    return Report(
        adapter=adapter,
        generation=resource.generation,
        applied=applied,
        available=condition(AVAILABLE, FALSE, "Deleting" if left else "Deleted", applied.message),
        health=healthy(),
        finalized=finalized,
    )


def of_failure(adapter: str, resource: Resource, *, failure: Failure) -> Report:
    """Return what is told when an event could not be dealt with."""
    return failed(adapter, resource.generation, reason=failure.reason, message=failure.message)


def _health(reading: Reading) -> Condition:
    assert reading.health
    return condition(HEALTH, reading.health.status, reading.health.reason, reading.health.message)


def _where(works: Sequence[Work]) -> dict[str, Any]:
    if not works:
        return {}
    places = [{"name": each.name, "consumer": each.consumer} for each in works]
    return {"manifestwork": places[0]} if len(places) == 1 else {"manifestworks": places}
