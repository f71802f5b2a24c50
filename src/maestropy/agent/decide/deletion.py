"""How does a work end, and what stands in the way?

First the work says that it is being deleted, then its record goes: every object the record lists is deleted, handed
over, or let go, and the record keeps its finalizer until none is left. Only then the work says `Deleted`, which the
server takes as leave to forget it. Deleting is the caller's half; here each object and each stage gets its verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from maestropy.agent.decide import ownership
from maestropy.wire import errors, jsontypes, status
from maestropy.wire.jsontypes import Object

_BLOCKERS_SHOWN = 10
_FINALIZERS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """The object is none of our business (any more)."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGo:
    """Others need the object: take only our owner reference off it, by this merge patch, and forget it."""

    patch: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete these very objects; 404 and 409 mean that it is gone or someone else's: forget it."""

    uid: str
    propagation: str = "Background"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The object is being deleted; something holds it."""

    finalizers: tuple[str, ...]


Verdict = Forget | LetGo | Delete | Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """An object that is still there, and who holds it."""

    resource: ownership.AppliedResource
    finalizers: tuple[str, ...] = ()
    problem: str = ""
    """What the cluster said when it was to be deleted."""

    def __str__(self) -> str:
        """Name it as people look for it."""
        where = f"{self.resource.namespace}/" if self.resource.namespace else ""
        group = f".{self.resource.group}" if self.resource.group else ""
        held = ", ".join(self.finalizers[:_FINALIZERS_SHOWN])
        why = f" (finalizers: {held})" if held else f" ({self.problem})" if self.problem else ""
        return f"{self.resource.resource}{group} {where}{self.resource.name}{why}"


def judge(recorded: ownership.AppliedResource, live: Object | None, *, owner: ownership.Owner) -> Verdict:
    """Return what happens to one recorded object that is no longer wanted."""
    if live is None:
        return Forget(reason="it is gone")
    try:
        references = jsontypes.objects_at(live, "metadata", "ownerReferences")
    except errors.WireError:
        return Forget(reason="its owner references cannot be read")
    if not any(reference.get("uid") == owner.uid for reference in references):
        return Forget(reason="it is not owned by this work")
    if any(_is_another_work(reference, owner) for reference in references):
        return LetGo(patch=ownership.owners_patch(live, _unwanted(owner)) or {})
    uid = jsontypes.text_at(live, "metadata", "uid")
    if recorded.uid and uid != recorded.uid:
        return Forget(reason="it was created anew by someone else")
    if jsontypes.text_at(live, "metadata", "deletionTimestamp"):
        return Wait(finalizers=tuple(jsontypes.texts_at(live, "metadata", "finalizers")))
    return Delete(uid=uid)


def reason_untracked(work_name: str) -> str:
    """Return why an object is deleted whose manifest left the work, for the log."""
    return f"it is no longer maintained by manifestwork {work_name}"


def reason_terminating(work_name: str) -> str:
    """Return why an object is deleted whose work goes, for the log."""
    return f"manifestwork {work_name} is terminating"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecord:
    """Report `Deleting`, then delete the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanUp:
    """Judge each of these objects, and record what is left."""

    resources: tuple[ownership.AppliedResource, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRecord:
    """Take the finalizer off the record, by this merge patch."""

    patch: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Nothing is left: report `Deleted` and forget the work."""


Stage = DeleteRecord | CleanUp | ReleaseRecord | Finish


def next_stage(record: Object | None) -> Stage:
    """Return what comes next for a work that is to go, by the state of its record."""
    if record is None:
        return Finish()
    if not jsontypes.text_at(record, "metadata", "deletionTimestamp"):
        return DeleteRecord()
    resources = ownership.read_resources(record)
    if resources:
        return CleanUp(resources=tuple(resources))
    # Without our finalizer the record goes by itself; the patch is then empty and there is nothing to send.
    return ReleaseRecord(patch=ownership.finalizer_patch(record, is_wanted=False) or {})


def deleting(*, generation: int, blockers: Sequence[Blocker] = ()) -> status.Condition:
    """Say that a work is being deleted, and name what keeps it."""
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
    """Say that everything is gone."""
    return status.Condition(
        type=status.DELETED,
        status=status.TRUE,
        reason="ManifestsDeleted",
        message=f"The manifests are deleted from the cluster {consumer}",
    )


def _unwanted(owner: ownership.Owner) -> ownership.Owner:
    return ownership.Owner(name=owner.name, uid=owner.uid, is_wanted=False)


def _is_another_work(reference: Object, owner: ownership.Owner) -> bool:
    is_work = reference.get("apiVersion") == ownership.API_VERSION and reference.get("kind") == ownership.KIND
    return bool(is_work and reference.get("uid") != owner.uid)
