"""Explain how far the deletion of a work has come, step by step, with the evidence of each step. Pure.

The server marks the row and publishes a delete event, the agent deletes the objects and reports `Deleted`, and only
this report removes the row. Each step leaves evidence of its own, so a deletion that does not end can be attributed to
the component whose turn it is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from maestropy.trace.work.judge.facts import Facts
from maestropy.trace.work.model import TracedResource

StepState = Literal["done", "waiting", "not yet", "unknown"]

STEPS: Mapping[str, str] = {
    "requested": "A source asked to delete the work; the server set deleted_at. The row stays.",
    "published": "The server published the delete event to the consumer's agent.",
    "deleting": "The agent deletes the AppliedManifestWork and, with it, the objects that no other work owns.",
    "objects gone": "Every object has ended; one with finalizers waits for the controllers that set them.",
    "confirmed": "The agent reported Deleted; the server stored a StatusDelete event and removed the row.",
}
"""The steps in their order, with what happens in each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionStep:
    """One step of a deletion."""

    name: str
    state: StepState
    says: str
    """The evidence, or whose turn it is."""

    @property
    def explanation(self) -> str:
        return STEPS[self.name]


def steps(facts: Facts) -> tuple[DeletionStep, ...]:
    """Return the steps of a work that is being deleted, or was; empty for a work that is not."""
    row = facts.data.row
    if row is not None and row.deleted:
        return tuple(_in_progress(facts, row))
    if row is None and facts.data.tombstones and not facts.data.applied and not facts.data.released:
        return tuple(_confirmed(facts))
    return ()


def _in_progress(facts: Facts, row: TracedResource) -> Iterator[DeletionStep]:
    yield DeletionStep(name="requested", state="done", says=f"resources.deleted_at is {row.deleted}")
    yield _published(facts, row)
    yield _deleting(facts, row)
    yield _objects_gone(facts)
    yield DeletionStep(
        name="confirmed", state="not yet", says="the row is still there: the server has no Deleted report of the agent"
    )


def _published(facts: Facts, row: TracedResource) -> DeletionStep:
    event = next((event for event in reversed(row.events) if event.type.lower() == "delete"), None)
    if event and event.reconciled:
        return DeletionStep(name="published", state="done", says=f"the Delete event was published {event.reconciled}")
    if facts.data.applied and all(applied_work.deleting for applied_work in facts.data.applied):
        return DeletionStep(name="published", state="done", says="the agent has begun to delete")
    if event:
        says = f"the Delete event of {event.created} is not yet published: it is the server's turn"
        return DeletionStep(name="published", state="waiting", says=says)
    return DeletionStep(name="published", state="unknown", says="the events table has no Delete event (any more)")


def _deleting(facts: Facts, row: TracedResource) -> DeletionStep:
    applied = facts.data.applied
    if applied:
        marked = [applied_work for applied_work in applied if applied_work.deleting]
        if len(marked) == len(applied):
            return DeletionStep(name="deleting", state="done", says=f"AppliedManifestWork deleted {marked[0].deleting}")
        says = f"AppliedManifestWork {applied[0].name} is not being deleted: it is the agent's turn"
        return DeletionStep(name="deleting", state="waiting", says=says)
    reported = row.status.condition("Deleting") if row.status else None
    if reported and reported.status == "True":
        return DeletionStep(name="deleting", state="done", says="the agent reported Deleting=True")
    if not facts.readable_clusters:
        return DeletionStep(name="deleting", state="unknown", says="no cluster of its consumer could be read")
    return DeletionStep(name="deleting", state="done", says="the cluster has no AppliedManifestWork of it")


def _objects_gone(facts: Facts) -> DeletionStep:
    if facts.terminating:
        live = facts.terminating[0]
        more = f", and {len(facts.terminating) - 1} more" if len(facts.terminating) > 1 else ""
        holders = ", ".join(live.finalizers) or "no finalizer"
        return DeletionStep(name="objects gone", state="waiting", says=f"{live.key} waits for {holders}{more}")
    if blockers := reported_blockers(facts.data.row):
        return DeletionStep(
            name="objects gone", state="waiting", says=f"the agent reported that it waits for {blockers}"
        )
    if facts.remaining:
        return DeletionStep(name="objects gone", state="not yet", says=f"{len(facts.remaining)} objects are there")
    if not facts.readable_clusters or not facts.data.has_read_objects:
        return DeletionStep(name="objects gone", state="unknown", says="the objects were not read")
    return DeletionStep(name="objects gone", state="done", says="no object of it is on the cluster")


def reported_blockers(row: TracedResource | None) -> str:
    """Return the objects and finalizers that our agent names while it deletes a work; a Go agent names none."""
    condition = row.status.condition("Deleting") if row and row.status else None
    return condition.message.partition("waiting for ")[2] if condition and condition.status == "True" else ""


def _confirmed(facts: Facts) -> Iterator[DeletionStep]:
    tombstone = facts.data.tombstones[0]
    for name in list(STEPS)[:-1]:
        yield DeletionStep(name=name, state="done", says="it precedes the confirmation")
    yield DeletionStep(name="confirmed", state="done", says=f"StatusDelete of {tombstone.created}; no row remains")
