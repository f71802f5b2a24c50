"""Decide the steps of a deletion and the fate of each applied object.

A deleted work first reports `Deleting`, then its AppliedManifestWork is deleted. Every object it lists is deleted, or
loses our owner reference, or is untracked. The AppliedManifestWork keeps its finalizer until no object is left. Only
then the work reports `Deleted`, after which the server removes the resource. `controllers.finalizer` and
`controllers.object_deleter` carry the decisions out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from maestropy.agent.decide import agent_records, ownership
from maestropy.wire import errors, json_types
from maestropy.wire.json_types import Object
from maestropy.wire.works import status

_BLOCKERS_SHOWN = 10
_FINALIZERS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Untrack:
    """The work does not own the object, or no longer; stop listing it."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveOwner:
    """Another work owns the object too, or it is a record of the agent, which no work may own.

    Remove our owner reference by this merge patch, then untrack it.
    """

    patch: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteObject:
    """Delete the object with this UID; on 404 or 409 it is gone or replaced, so untrack it."""

    uid: str
    propagation: str = "Background"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitFinalizers:
    """The object is terminating; finalizers keep it."""

    finalizers: tuple[str, ...]


Verdict = Untrack | RemoveOwner | DeleteObject | AwaitFinalizers


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionBlocker:
    """An object that still exists, and what keeps it."""

    resource: ownership.AppliedResource
    finalizers: tuple[str, ...] = ()
    problem: str = ""
    """The error of the delete request."""

    def __str__(self) -> str:
        """Return the object and its finalizers as in `kubectl get`."""
        namespace = f"{self.resource.namespace}/" if self.resource.namespace else ""
        group = f".{self.resource.group}" if self.resource.group else ""
        finalizers = ", ".join(self.finalizers[:_FINALIZERS_SHOWN])
        why = f" (finalizers: {finalizers})" if finalizers else f" ({self.problem})" if self.problem else ""
        return f"{self.resource.resource}{group} {namespace}{self.resource.name}{why}"


def decide_object(
    applied_resource: ownership.AppliedResource, live: Object | None, *, owner: ownership.OwnerReference
) -> Verdict:
    """Decide what happens to one applied object that the work no longer contains."""
    if live is None:
        return Untrack(reason="it is gone")
    try:
        references = json_types.objects_at(live, "metadata", "ownerReferences")
    except errors.WireError:
        return Untrack(reason="its owner references cannot be read")
    if not any(reference.get("uid") == owner.uid for reference in references):
        return Untrack(reason="it is not owned by this work")
    if agent_records.is_record(applied_resource) or any(_is_another_work(reference, owner) for reference in references):
        return RemoveOwner(patch=ownership.owner_references_patch(live, _removed(owner)) or {})
    uid = json_types.text_at(live, "metadata", "uid")
    if applied_resource.uid and uid != applied_resource.uid:
        return Untrack(reason="another client recreated it")
    if json_types.text_at(live, "metadata", "deletionTimestamp"):
        return AwaitFinalizers(finalizers=tuple(json_types.texts_at(live, "metadata", "finalizers")))
    return DeleteObject(uid=uid)


def pruned_reason(work_name: str) -> str:
    """Return the log reason for an object whose manifest was removed from the work."""
    return f"it is no longer maintained by manifestwork {work_name}"


def terminating_reason(work_name: str) -> str:
    """Return the log reason for an object whose work is deleted."""
    return f"manifestwork {work_name} is terminating"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAppliedWork:
    """Report `Deleting`, then delete the AppliedManifestWork."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAppliedResources:
    """Decide about each of these objects, and list what remains."""

    resources: tuple[ownership.AppliedResource, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFinalizer:
    """Remove the finalizer of the AppliedManifestWork by this merge patch."""

    patch: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDeleted:
    """Nothing is left: report `Deleted` and drop the work."""


FinalizeStep = DeleteAppliedWork | DeleteAppliedResources | RemoveFinalizer | ReportDeleted


def next_step(applied_work: Object | None) -> FinalizeStep:
    """Return the next step of a deletion, by the state of the AppliedManifestWork."""
    if applied_work is None:
        return ReportDeleted()
    if not json_types.text_at(applied_work, "metadata", "deletionTimestamp"):
        return DeleteAppliedWork()
    resources = ownership.applied_resources(applied_work)
    if resources:
        return DeleteAppliedResources(resources=tuple(resources))
    # Without our finalizer the API server removes it; the patch is then empty and not sent.
    return RemoveFinalizer(patch=ownership.finalizer_patch(applied_work, is_set=False) or {})


def deleting(*, generation: int, blockers: Sequence[DeletionBlocker] = ()) -> status.Condition:
    """Return `Deleting` True, with the objects that block the deletion."""
    message = "ManifestWork is being deleted"
    if blockers:
        shown = ", ".join(map(str, blockers[:_BLOCKERS_SHOWN]))
        more = f" and {len(blockers) - _BLOCKERS_SHOWN} more" if len(blockers) > _BLOCKERS_SHOWN else ""
        message = f"{message}, waiting for {shown}{more}"
    return status.Condition(
        type=status.DELETING,
        status=status.TRUE,
        reason="WorkDeleting",
        message=message,
        observed_generation=generation,
    )


def deleted(*, consumer: str) -> status.Condition:
    """Return `Deleted` True: every object is gone."""
    return status.Condition(
        type=status.DELETED,
        status=status.TRUE,
        reason="ManifestsDeleted",
        message=f"The manifests are deleted from the cluster {consumer}",
    )


def _removed(owner: ownership.OwnerReference) -> ownership.OwnerReference:
    return ownership.OwnerReference(name=owner.name, uid=owner.uid, is_owned=False)


def _is_another_work(reference: Object, owner: ownership.OwnerReference) -> bool:
    is_work = reference.get("apiVersion") == ownership.API_VERSION and reference.get("kind") == ownership.KIND
    return bool(is_work and reference.get("uid") != owner.uid)
