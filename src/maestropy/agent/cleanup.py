"""Carry out deletions: objects that left a work, and works that leave altogether."""

from collections.abc import Iterable
from dataclasses import dataclass

from maestropy.agent.apply import Applier, where
from maestropy.agent.decide import deletion, ownership
from maestropy.agent.observe import Place
from maestropy.journal.emit import Journal
from maestropy.journal.fields import Agent as Phrase
from maestropy.journal.fields import Key
from maestropy.kube import errors, objects
from maestropy.kube.objects import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """What could not be finished yet."""

    resources: tuple[ownership.AppliedResource, ...] = ()
    blockers: tuple[deletion.Blocker, ...] = ()
    problems: tuple[str, ...] = ()


class Cleaner:
    """Deletes what a work owned and no longer wants."""

    def __init__(self, applier: Applier, *, journal: Journal) -> None:
        self._applier = applier
        self._journal = journal

    async def clean_up(
        self,
        resources: Iterable[ownership.AppliedResource],
        *,
        owner: ownership.Owner,
        reason: str,
        context: dict[str, object],
    ) -> Leftovers:
        """Delete, hand over or forget each object; return what is still there."""
        left: list[ownership.AppliedResource] = []
        blockers: list[deletion.Blocker] = []
        problems: list[str] = []
        for resource in resources:
            place = await self._applier.place_of(resource)
            told = {**context, **where(place), Key.REASON: reason}
            try:
                blocker = await self._end(resource, place, owner=owner, told=told)
            except errors.Malformed:
                # No such object can exist, whoever wrote it down.
                blocker = None
            except errors.KubeError as error:
                self._journal.error("failed to delete an applied resource", told, err=error)
                blocker = deletion.Blocker(resource=resource, problem=error.message)
                problems.append(error.message)
            if blocker is not None:
                left.append(resource)
                blockers.append(blocker)
        return Leftovers(resources=tuple(left), blockers=tuple(blockers), problems=tuple(problems))

    async def _end(
        self, resource: ownership.AppliedResource, place: Place, *, owner: ownership.Owner, told: dict[str, object]
    ) -> deletion.Blocker | None:
        """End one object; returns what keeps it."""
        # The watch may not have heard yet of what somebody just created; what it knows to be there is good enough.
        seen = await self._applier.look(place) or await self._applier.get(place)
        try:
            blocker = await self._judge(resource, place, seen, owner=owner, told=told)
        except errors.Conflict:
            # Not as the watch last told: it may have another owner by now, or be another one.
            found = await self._applier.get(place)
            blocker = await self._judge(resource, place, found, owner=owner, told=told)
        if blocker is None:
            self._applier.forget(place, owner)
        return blocker

    async def _judge(
        self,
        resource: ownership.AppliedResource,
        place: Place,
        live: Json | None,
        *,
        owner: ownership.Owner,
        told: dict[str, object],
    ) -> deletion.Blocker | None:
        match deletion.judge(resource, live, owner=owner):
            case deletion.Forget():
                if live is None:
                    self._journal.info(Phrase.REMOVED, told)
            case deletion.LetGo(patch=patch):
                await self._applier.let_go(place, patch)
            case deletion.Wait(finalizers=finalizers):
                return deletion.Blocker(resource=resource, finalizers=finalizers)
            case deletion.Delete(uid=uid):
                assert live is not None
                held = await self._delete(place, uid=uid, version=objects.resource_version(live), told=told)
                if held is not None:
                    return deletion.Blocker(resource=resource, finalizers=tuple(finalizers_of(held)))
        return None

    async def _delete(self, place: Place, *, uid: str, version: str, told: dict[str, object]) -> Json | None:
        """Delete an object; returns it if it is still there. Most are gone with the answer."""
        try:
            held = await self._applier.delete(place, uid=uid, version=version)
        except errors.NotFound:
            return None
        self._journal.info(Phrase.DELETED, told)
        return held


def finalizers_of(held: Json) -> list[str]:
    """Return what holds an object that is being deleted."""
    found: list[str] = (held.get("metadata") or {}).get("finalizers") or []
    return found
