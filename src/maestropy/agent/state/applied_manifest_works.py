"""Cache the AppliedManifestWorks of the cluster by a watch, and write them.

They are the only state that outlives the agent, and a Go agent reads and writes the same ones.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import NamedTuple

from maestropy.agent.decide import data_safety, ownership
from maestropy.agent.state.watch_event_buffer import ObjectChange, WatchHold
from maestropy.journal.emit import Journal
from maestropy.journal.phrases import AgentPhrase
from maestropy.kube import errors, freshness, objects, watch
from maestropy.kube.client import KubeClient
from maestropy.kube.objects import Json
from maestropy.kube.packed_objects import PackedObject, pack
from maestropy.kube.request import DeleteOptions, Patch, PatchType, ResourceType, WriteOptions
from maestropy.wire.works import work

APPLIED_MANIFEST_WORKS = ResourceType(
    group=ownership.GROUP, version="v1", plural="appliedmanifestworks", kind=ownership.KIND, namespaced=False
)
_STATUS = WriteOptions(subresource="status")


class UnrecordableWork(Exception):
    """The AppliedManifestWork of a work is not valid: its resource ID is no name in Kubernetes, or a label is none."""


class AppliedWorkCallbacks(NamedTuple):
    """What the cache calls."""

    changed: Callable[[str], None]
    """An AppliedManifestWork changed."""
    recovered: Callable[[], None]
    """The API server is reachable again."""


class AppliedWorks:
    """All AppliedManifestWorks of the cluster."""

    def __init__(
        self,
        client: KubeClient,
        *,
        identity: ownership.AgentIdentity,
        consumer: str,
        callbacks: AppliedWorkCallbacks,
        jitter: Callable[[], float],
        journal: Journal,
    ) -> None:
        self._client = client
        self._identity = identity
        self._consumer = consumer
        self._callbacks = callbacks
        self._is_interrupted = False
        self._jitter = jitter
        self._journal = journal
        self._applied_works: dict[str, PackedObject] = {}
        self._other_consumers: dict[str, str] = {}
        """The consumer of AppliedManifestWorks that the agent of another consumer applied, by their names."""
        self._other_agents: set[str] = set()
        """The names of AppliedManifestWorks of another agent identity."""
        self._hold: WatchHold[str] = WatchHold(self._handle)
        self._watch: watch.ResourceWatch | None = None
        """None until the first list is complete."""
        self._deleted_uids: set[str] = set()
        """UIDs of AppliedManifestWorks that are gone before the watch reported it; their later events are stale."""
        self._unanswered: set[str] = set()
        """Names of AppliedManifestWorks with a write whose outcome is not known: they may be newer than the cache."""
        self.synced = asyncio.Event()
        self.problem = ""
        """Why they cannot be watched; empty while they are."""

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._applied_works))

    def own(self, has_work: Callable[[str], bool]) -> dict[str, bool]:
        """Return whether the agent has the work of each AppliedManifestWork of this hub and consumer."""
        prefix, others = f"{self._identity.hub_hash}-", self._other_consumers
        return {
            name: has_work(name[len(prefix) :])
            for name in self._applied_works
            if name.startswith(prefix) and name not in others
        }

    def is_of_other_consumer(self, name: str) -> bool:
        """Return whether the agent of another consumer applied it: only that agent knows whether it is wanted."""
        return name in self._other_consumers

    def other_consumers(self) -> Mapping[str, int]:
        """Return how many AppliedManifestWorks agents of other consumers applied under the identity of this agent."""
        return Counter(consumer for name, consumer in self._other_consumers.items() if name not in self._other_agents)

    def other_agent_count(self) -> int:
        """Return how many AppliedManifestWorks belong to agents with another identity."""
        return len(self._other_agents)

    def name_of(self, work_name: str) -> str:
        """Return the name of a work's AppliedManifestWork."""
        return ownership.applied_work_name(self._identity.hub_hash, work_name)

    def get(self, name: str) -> Json | None:
        """Return an AppliedManifestWork as last seen."""
        known = self._applied_works.get(name)
        return None if known is None else known.unpack()

    async def refresh(self, name: str) -> None:
        """Read an AppliedManifestWork again if a write to it got no answer.

        The write may have recorded the origin of a newer spec. Until the watch shows that, a decision by the cache
        would let an older copy of the database replace what is applied.
        """
        if name in self._unanswered:
            with self._hold.during(name):
                await self._read(name)

    async def run(self) -> None:
        """Watch the AppliedManifestWorks until cancelled; every change triggers a reconcile."""
        while True:
            watching = watch.ResourceWatch(
                self._client,
                APPLIED_MANIFEST_WORKS,
                jitter=self._jitter,
                on_error=self._on_trouble,
                on_open=self._on_open,
            )
            try:
                async with aclosing(watching.changes()) as changes:
                    async for change in changes:
                        self._receive(change, watching)
            except errors.NotFound as error:
                self._on_trouble(error)
                await asyncio.sleep(2)

    async def ensure(
        self,
        manifest_work: work.ManifestWork,
        *,
        planned: Sequence[ownership.AppliedResource],
        origin: data_safety.SpecOrigin,
    ) -> Json:
        """Return the AppliedManifestWork of a work, created or patched if necessary.

        A new one records the origin of the spec and announces the planned resources.
        """
        name = self.name_of(manifest_work.name)
        applied_work = self.get(name)
        if applied_work is None:
            with self._hold.during(name):
                try:
                    new = ownership.new_applied_work(
                        manifest_work,
                        identity=self._identity,
                        planned=planned,
                        annotations={
                            data_safety.ORIGIN: data_safety.annotation(replace(origin, consumer=self._consumer))
                        },
                    )
                    applied_work = await self._client.create(APPLIED_MANIFEST_WORKS, new)
                except (errors.Invalid, errors.MalformedObject) as error:
                    raise UnrecordableWork(str(error)) from error
                except errors.AlreadyExists:
                    applied_work = await self._client.get(APPLIED_MANIFEST_WORKS, name)
                self._store(applied_work)
        for patch in (
            ownership.spec_patch(applied_work, work_name=manifest_work.name, identity=self._identity),
            ownership.finalizer_patch(applied_work, is_set=True) if not objects.is_terminating(applied_work) else None,
        ):
            if patch is not None:
                applied_work = await self.patch(applied_work, patch)
        return applied_work

    async def record(self, applied_work: Json, origin: data_safety.SpecOrigin) -> Json:
        """Record the origin of a spec; no request is sent when nothing changes."""
        previous = data_safety.read_origin(applied_work)
        to_record = origin if origin.is_adopted else data_safety.recorded(origin, previous=previous)
        to_record = replace(to_record, consumer=self._consumer)
        if data_safety.is_recorded(to_record, previous=previous):
            return applied_work
        patch = ownership.annotation_patch(applied_work, data_safety.ORIGIN, data_safety.annotation(to_record))
        return applied_work if patch is None else await self.patch(applied_work, patch)

    async def set_applied_resources(self, applied_work: Json, resources: Iterable[ownership.AppliedResource]) -> Json:
        """List the objects of a work in its status; no request is sent when nothing changes."""
        patch = ownership.status_patch(applied_work, resources)
        return applied_work if patch is None else await self.patch(applied_work, patch, write=_STATUS)

    async def patch_status(self, applied_work: Json, patch: Json) -> Json:
        """Patch the status of an AppliedManifestWork."""
        return await self.patch(applied_work, patch, write=_STATUS)

    async def patch(self, applied_work: Json, patch: Json, *, write: WriteOptions | None = None) -> Json:
        """Patch an AppliedManifestWork; raises Conflict if it changed meanwhile."""
        name = applied_work["metadata"]["name"]
        change = Patch(type=PatchType.MERGE, body=patch)
        with self._hold.during(name):
            self._unanswered.add(name)
            try:
                patched = await self._client.patch(
                    APPLIED_MANIFEST_WORKS, name, change=change, write=write or WriteOptions()
                )
            except errors.NotFound:
                self.forget(name)
                raise
            except errors.Conflict:
                await self._read(name)
                raise
            return self._store(patched)

    async def delete(self, applied_work: Json) -> None:
        """Delete an AppliedManifestWork; its finalizer keeps it until its objects are gone."""
        name = applied_work["metadata"]["name"]
        with self._hold.during(name):
            self._unanswered.add(name)
            try:
                response = await self._client.delete(
                    APPLIED_MANIFEST_WORKS, name, deletion=DeleteOptions(uid=applied_work["metadata"]["uid"])
                )
            except errors.NotFound:
                self.forget(name)
                return
            except errors.Conflict:
                await self._read(name)
                return
            self._unanswered.discard(name)
            if response.get("kind") == ownership.KIND:
                self._store(response)

    def forget(self, name: str) -> None:
        """Drop an AppliedManifestWork that is gone before the watch reports it."""
        known = self._applied_works.get(name)
        self._drop(name)
        self._unanswered.discard(name)
        if known is not None:
            self._deleted_uids.add(known.version.uid)

    async def _read(self, name: str) -> None:
        try:
            self._store(await self._client.get(APPLIED_MANIFEST_WORKS, name))
        except errors.NotFound:
            self.forget(name)

    def _store(self, applied_work: Json) -> Json:
        # A response that arrives after the deletion must not restore the object.
        name, kept = applied_work["metadata"]["name"], pack(applied_work)
        self._unanswered.discard(name)
        if not self._is_gone(name, kept.version):
            self._keep(name, applied_work, kept)
        return applied_work

    def _keep(self, name: str, applied_work: Json, packed: PackedObject) -> None:
        self._drop(name)
        self._applied_works[name] = packed
        if not ownership.is_of_agent(applied_work, self._identity):
            self._other_agents.add(name)
        consumer = data_safety.other_consumer(data_safety.read_origin(applied_work), consumer=self._consumer)
        if consumer:
            self._other_consumers[name] = consumer

    def _drop(self, name: str) -> None:
        self._applied_works.pop(name, None)
        self._other_consumers.pop(name, None)
        self._other_agents.discard(name)

    def _is_gone(self, name: str, shown: watch.ObjectVersion) -> bool:
        if self._watch is None:
            return False
        verdict = freshness.compare(shown, self._watch.version_of("", name), watched_until=self._watch.watched_until)
        return verdict == freshness.Freshness.DELETED

    def _receive(self, change: watch.Change, watching: watch.ResourceWatch) -> None:
        if isinstance(change, watch.Synced):
            self._watch = watching
            self._drop_deleted_in_gap()
            self.synced.set()
            return
        self._hold.deliver(change.object["metadata"]["name"], change)

    def _handle(self, name: str, change: ObjectChange) -> None:
        uid = objects.uid(change.object)
        is_end = isinstance(change, watch.Deleted)
        if is_end:
            self._deleted_uids.discard(uid)
        elif uid in self._deleted_uids:
            return
        known = self._applied_works.get(name)
        if freshness.is_known_change(change, response=None if known is None else known.version):
            return
        if is_end:
            self._drop(name)
        else:
            self._keep(name, change.object, pack(change.object))
        self._callbacks.changed(name)

    def _drop_deleted_in_gap(self) -> None:
        """Drop what was deleted while no watch was open."""
        for name in [name for name, kept in self._applied_works.items() if self._is_gone(name, kept.version)]:
            self._drop(name)
            self._callbacks.changed(name)

    def _on_open(self) -> None:
        self.problem = ""
        if self._is_interrupted:
            self._is_interrupted = False
            self._callbacks.recovered()

    def _on_trouble(self, error: errors.KubeError) -> None:
        self._is_interrupted = True
        self.problem = str(error)
        self._journal.warning(AgentPhrase.APPLIED_WORK_WATCH_INTERRUPTED, err=error)
