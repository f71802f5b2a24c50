"""Delete objects: those pruned from a work, and those of a deleted work."""

from collections.abc import Iterable
from dataclasses import dataclass

from maestropy.agent.controllers.applier import Applier, object_fields
from maestropy.agent.controllers.watcher import ObjectRef
from maestropy.agent.decide import deletion, ownership
from maestropy.journal.emit import Journal
from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import AgentPhrase
from maestropy.kube import errors, objects
from maestropy.kube.objects import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingDeletions:
    """Objects that are not deleted yet."""

    resources: tuple[ownership.AppliedResource, ...] = ()
    blockers: tuple[deletion.DeletionBlocker, ...] = ()
    problems: tuple[str, ...] = ()


class ObjectDeleter:
    """Deletes objects that a work owned and no longer contains."""

    def __init__(self, applier: Applier, *, journal: Journal) -> None:
        self._applier = applier
        self._journal = journal

    async def delete_all(
        self,
        resources: Iterable[ownership.AppliedResource],
        *,
        owner: ownership.OwnerReference,
        reason: str,
        base_fields: dict[str, object],
    ) -> PendingDeletions:
        """Delete each object or remove our owner reference; return what still exists."""
        remaining_resources: list[ownership.AppliedResource] = []
        blockers: list[deletion.DeletionBlocker] = []
        problems: list[str] = []
        for resource in resources:
            ref = await self._applier.ref_of(resource)
            log_fields = {**base_fields, **object_fields(ref), LogKey.REASON: reason}
            try:
                blocker = await self._delete_or_release(resource, ref, owner=owner, log_fields=log_fields)
            except errors.MalformedObject:
                # No object with such a name can exist.
                blocker = None
            except errors.KubeError as error:
                self._journal.error(AgentPhrase.DELETE_RESOURCE_FAILED, log_fields, err=error)
                blocker = deletion.DeletionBlocker(resource=resource, problem=error.message)
                problems.append(error.message)
            if blocker is not None:
                remaining_resources.append(resource)
                blockers.append(blocker)
        return PendingDeletions(
            resources=tuple(remaining_resources), blockers=tuple(blockers), problems=tuple(problems)
        )

    async def _delete_or_release(
        self,
        resource: ownership.AppliedResource,
        ref: ObjectRef,
        *,
        owner: ownership.OwnerReference,
        log_fields: dict[str, object],
    ) -> deletion.DeletionBlocker | None:
        """Delete one object; return what blocks its deletion."""
        # The watch may not show a new object yet, so "not found" is confirmed by the API server.
        live = await self._applier.read(ref) or await self._applier.get(ref)
        try:
            blocker = await self._carry_out(resource, ref, live, owner=owner, log_fields=log_fields)
        except errors.Conflict:
            # The object changed since the watch showed it: it may have another owner or another UID.
            current = await self._applier.get(ref)
            blocker = await self._carry_out(resource, ref, current, owner=owner, log_fields=log_fields)
        if blocker is None:
            self._applier.forget(ref, owner)
        return blocker

    async def _carry_out(
        self,
        resource: ownership.AppliedResource,
        ref: ObjectRef,
        live: Json | None,
        *,
        owner: ownership.OwnerReference,
        log_fields: dict[str, object],
    ) -> deletion.DeletionBlocker | None:
        match deletion.decide_object(resource, live, owner=owner):
            case deletion.Untrack():
                if live is None:
                    self._journal.info(AgentPhrase.REMOVED, log_fields)
            case deletion.RemoveOwner(patch=patch):
                await self._applier.remove_owner(ref, patch)
            case deletion.AwaitFinalizers(finalizers=finalizers):
                return deletion.DeletionBlocker(resource=resource, finalizers=finalizers)
            case deletion.DeleteObject(uid=uid):
                assert live is not None
                remaining = await self._delete(
                    ref, uid=uid, version=objects.resource_version(live), log_fields=log_fields
                )
                if remaining is not None:
                    return deletion.DeletionBlocker(resource=resource, finalizers=tuple(finalizers_of(remaining)))
        return None

    async def _delete(self, ref: ObjectRef, *, uid: str, version: str, log_fields: dict[str, object]) -> Json | None:
        """Delete an object; return it if finalizers keep it."""
        try:
            remaining = await self._applier.delete(ref, uid=uid, version=version)
        except errors.NotFound:
            return None
        self._journal.info(AgentPhrase.DELETED, log_fields)
        return remaining


def finalizers_of(remaining: Json) -> list[str]:
    """Return the finalizers of an object."""
    finalizers: list[str] = (remaining.get("metadata") or {}).get("finalizers") or []
    return finalizers
