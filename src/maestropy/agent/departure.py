"""Stage: a work that leaves, one step after the other: say so, end its record, end its objects, let the record go.

Whatever somebody still holds is told; the work is reported as deleted only when nothing of it is left.
"""

from collections.abc import Sequence

from maestropy.agent.cleanup import finalizers_of
from maestropy.agent.decide import deletion, ownership
from maestropy.agent.records import RECORDS
from maestropy.agent.turn import PENDING_SECONDS, NotYet, Parts, owner_of
from maestropy.agent.works import Held
from maestropy.aio.keyed import Again
from maestropy.journal.fields import Agent as Phrase
from maestropy.journal.fields import Key, Logger
from maestropy.kube.objects import Json


class Departure:
    """Takes the turns of works and records that leave."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._unfolded: set[str] = set()
        """The uids of leaving records that list all there is."""

    async def leave(self, key: str, held: Held | None, record: Json | None) -> Again | None:
        """Take the next step of a deletion."""
        if record is not None and record["metadata"]["uid"] not in self._unfolded:
            record = await self._unfold(record)
        match deletion.next_stage(record):
            case deletion.Finish():
                self._parts.rest(key)
                if held is not None and held.is_leaving:
                    self._say_deleted(held)
                return None
            case deletion.DeleteRecord():
                assert record is not None
                self._say_deleting(held)
                await self._parts.records.delete(record)
                return Again(0)
            case deletion.CleanUp(resources=resources):
                assert record is not None
                return await self._clean_up(key, held, record, resources=resources)
            case deletion.ReleaseRecord(patch=patch):
                assert record is not None
                return await self._release(key, held, record, patch=dict(patch))

    async def _unfold(self, record: Json) -> Json:
        """List what the record only announced, so that its end waits for that too."""
        announced = ownership.read_announced(record)
        if announced:
            listed = ownership.read_resources(record)
            record = await self._parts.records.list_resources(record, [*listed, *announced])
        self._unfolded.add(record["metadata"]["uid"])
        return record

    async def _release(self, key: str, held: Held | None, record: Json, *, patch: Json) -> Again:
        """Let the record go; it is gone unless somebody else holds it."""
        if patch:
            record = await self._parts.records.patch(record, patch)
        holders = finalizers_of(record)
        if not holders:
            self._unfolded.discard(record["metadata"]["uid"])
            self._parts.records.forget(key)
            return Again(0)
        itself = ownership.AppliedResource(group=ownership.GROUP, resource=RECORDS.plural, name=key)
        self._say_deleting(held, blockers=[deletion.Blocker(resource=itself, finalizers=tuple(holders))])
        return Again(PENDING_SECONDS)

    async def _clean_up(
        self, key: str, held: Held | None, record: Json, *, resources: Sequence[ownership.AppliedResource]
    ) -> Again:
        name = str((record.get("spec") or {}).get("manifestWorkName") or key)
        await self._parts.watch(key, (), resources)
        left = await self._parts.cleaner.clean_up(
            resources,
            owner=owner_of(record, is_wanted=False),
            reason=deletion.reason_terminating(name),
            context={Key.LOGGER: Logger.APPLIED_WORK_FINALIZER, Key.APPLIED_MANIFEST_WORK_NAME: key},
        )
        if not left.resources:
            return await self._release(
                key, held, record, patch=ownership.finalizer_patch(record, is_wanted=False) or {}
            )
        await self._parts.records.list_resources(record, left.resources)
        self._parts.journal.info(Phrase.PENDING_DELETION, {Key.NUM_OF_RESOURCES: len(left.resources)}, v=4)
        self._say_deleting(held, blockers=left.blockers)
        if left.problems:
            raise NotYet("; ".join(left.problems[:3]))
        return Again(PENDING_SECONDS)

    def _say_deleting(self, held: Held | None, *, blockers: Sequence[deletion.Blocker] = ()) -> None:
        if held is None or not held.is_leaving:
            return
        condition = deletion.deleting(generation=held.wanted.generation, blockers=blockers)
        held.status = held.status.with_condition(condition, now=self._parts.now())
        self._parts.reporter.report(held)

    def _say_deleted(self, held: Held) -> None:
        condition = deletion.deleted(consumer=held.wanted.namespace)
        held.status = held.status.with_condition(condition, now=self._parts.now())
        self._parts.reporter.report(held)
