"""The agent's records on the cluster (AppliedManifestWorks), kept in step by a watch.

They are the only memory that outlives the agent, and a Go agent reads and writes the same ones.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import NamedTuple

from maestropy.agent.decide import ownership
from maestropy.agent.holding import Holding, Told
from maestropy.journal.emit import Journal
from maestropy.kube import errors, freshness, objects, watch
from maestropy.kube.client import KubeClient
from maestropy.kube.objects import Json
from maestropy.kube.packing import Packed, pack
from maestropy.kube.request import Deletion, Patch, PatchType, ResourceType, Write
from maestropy.wire import work

RECORDS = ResourceType(
    group=ownership.GROUP, version="v1", plural="appliedmanifestworks", kind=ownership.KIND, namespaced=False
)
_STATUS = Write(subresource="status")


class Wakes(NamedTuple):
    """Whom to tell what."""

    changed: Callable[[str], None]
    """A record is not as it was."""
    recovered: Callable[[], None]
    """The API server answers again."""


class Records:
    """All records, as the cluster has them."""

    def __init__(
        self,
        client: KubeClient,
        *,
        identity: ownership.Identity,
        wakes: Wakes,
        jitter: Callable[[], float],
        journal: Journal,
    ) -> None:
        self._client = client
        self._identity = identity
        self._wakes = wakes
        self._is_interrupted = False
        self._jitter = jitter
        self._journal = journal
        self._records: dict[str, Packed] = {}
        self._holding: Holding[str] = Holding(self._heard)
        self._watch: watch.Watch | None = None
        """None until it has told everything that is there."""
        self._ended: set[str] = set()
        """The uids of records that we saw end before the watch told; what it still tells of them is old."""
        self.synced = asyncio.Event()

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._records))

    def name_for(self, wanted_name: str) -> str:
        """Return the name of a work's record."""
        return ownership.record_name(self._identity.hub_hash, wanted_name)

    def get(self, name: str) -> Json | None:
        """Return a record as last seen."""
        known = self._records.get(name)
        return None if known is None else known.unpack()

    async def run(self) -> None:
        """Follow the records for ever; every change wakes the work it belongs to."""
        while True:
            follower = watch.Watch(
                self._client, RECORDS, jitter=self._jitter, on_trouble=self._on_trouble, on_open=self._on_open
            )
            try:
                async with aclosing(follower.changes()) as changes:
                    async for change in changes:
                        self._take(change, follower)
            except errors.NotFound as error:
                self._on_trouble(error)
                await asyncio.sleep(2)

    async def ensure(self, wanted: work.ManifestWork, *, coming: Sequence[ownership.AppliedResource]) -> Json:
        """Return the record of a work, made or mended if necessary; a new one announces what is coming."""
        name = self.name_for(wanted.name)
        record = self.get(name)
        if record is None:
            with self._holding.during(name):
                try:
                    new = ownership.new_record(wanted, identity=self._identity, coming=coming)
                    record = await self._client.create(RECORDS, new)
                except errors.AlreadyExists:
                    record = await self._client.get(RECORDS, name)
                self._keep(record)
        for patch in (
            ownership.record_spec_patch(record, work_name=wanted.name, identity=self._identity),
            ownership.finalizer_patch(record, is_wanted=True) if not objects.is_terminating(record) else None,
        ):
            if patch is not None:
                record = await self.patch(record, patch)
        return record

    async def list_resources(self, record: Json, resources: Iterable[ownership.AppliedResource]) -> Json:
        """Write down which objects a work has; nothing is sent when the record says so already."""
        patch = ownership.record_status_patch(record, resources)
        return record if patch is None else await self.patch(record, patch, write=_STATUS)

    async def mark(self, record: Json, patch: Json) -> Json:
        """Change the status of a record."""
        return await self.patch(record, patch, write=_STATUS)

    async def patch(self, record: Json, patch: Json, *, write: Write | None = None) -> Json:
        """Change a record; raises Conflict when somebody was quicker."""
        name = record["metadata"]["name"]
        change = Patch(type=PatchType.MERGE, body=patch)
        with self._holding.during(name):
            try:
                found = await self._client.patch(RECORDS, name, change=change, write=write or Write())
            except errors.NotFound:
                self.forget(name)
                raise
            except errors.Conflict:
                await self._read(name)
                raise
            return self._keep(found)

    async def delete(self, record: Json) -> None:
        """Ask for the end of a record; its finalizer holds it until its objects are gone."""
        name = record["metadata"]["name"]
        with self._holding.during(name):
            try:
                answer = await self._client.delete(RECORDS, name, deletion=Deletion(uid=record["metadata"]["uid"]))
            except errors.NotFound:
                self.forget(name)
                return
            except errors.Conflict:
                await self._read(name)
                return
            if answer.get("kind") == ownership.KIND:
                self._keep(answer)

    def forget(self, name: str) -> None:
        """Note that a record is gone before the watch says so."""
        known = self._records.pop(name, None)
        if known is not None:
            self._ended.add(known.sighting.uid)

    async def _read(self, name: str) -> None:
        try:
            self._keep(await self._client.get(RECORDS, name))
        except errors.NotFound:
            self.forget(name)

    def _keep(self, record: Json) -> Json:
        # An answer that the record's end overtook must not bring it back.
        name, kept = record["metadata"]["name"], pack(record)
        if not self._is_gone(name, kept.sighting):
            self._records[name] = kept
        return record

    def _is_gone(self, name: str, shown: watch.Sighting) -> bool:
        if self._watch is None:
            return False
        verdict = freshness.judge(shown, self._watch.sight("", name), heard_until=self._watch.heard_until)
        return verdict == freshness.Verdict.GONE

    def _take(self, change: watch.Change, follower: watch.Watch) -> None:
        if isinstance(change, watch.Synced):
            self._watch = follower
            self._compare()
            self.synced.set()
            return
        self._holding.tell(change.object["metadata"]["name"], change)

    def _heard(self, name: str, change: Told) -> None:
        uid = objects.uid(change.object)
        is_end = isinstance(change, watch.Deleted)
        if is_end:
            self._ended.discard(uid)
        elif uid in self._ended:
            return
        known = self._records.get(name)
        if freshness.is_echo(change, shown=None if known is None else known.sighting):
            return
        if is_end:
            self._records.pop(name, None)
        else:
            self._records[name] = pack(change.object)
        self._wakes.changed(name)

    def _compare(self) -> None:
        """Drop what came and went in a gap, unseen by a watch."""
        for name in [name for name, kept in self._records.items() if self._is_gone(name, kept.sighting)]:
            del self._records[name]
            self._wakes.changed(name)

    def _on_open(self) -> None:
        if self._is_interrupted:
            self._is_interrupted = False
            self._wakes.recovered()

    def _on_trouble(self, error: errors.KubeError) -> None:
        self._is_interrupted = True
        self._journal.warning("the watch of AppliedManifestWorks is interrupted", err=error)
