"""Simulated sources: they publish spec requests until a server answers, and watch the statuses of their resources.

The client behaves as the SDK does: a request is repeated under the same event ID until a server accepts or rejects it,
and after every connection it lists its resources and requests the statuses it misses.
"""

import asyncio
import functools
from dataclasses import dataclass, field
from typing import Any

from maestropy.aio import tasks
from maestropy.aio.clock import Clock
from maestropy.transport.grpc.client import StreamTimeout
from maestropy.transport.grpc.status import CallRejected, StatusCode
from maestropy.wire import codec, resync, timestamps
from maestropy.wire.events import event, grpc_binding
from maestropy.wire.works import resource_id, work
from tests.simulation.actors import KillableTasks
from tests.simulation.memory_postgres import Engine
from tests.simulation.network import Network, Wire

HOLDER = "simulation/holder"
NO_ANSWER = "no server answered"
_ATTEMPTS = 60


@dataclass(frozen=True, kw_only=True)
class SimulatedResource:
    """One resource that a source may create."""

    name: str
    source: str
    consumer: str

    @functools.cached_property
    def id(self) -> str:
        return resource_id.resource_id(self.source, namespace=self.consumer, name=self.name)


@dataclass(frozen=True, kw_only=True)
class Content:
    """The content of a resource: ConfigMaps with a token that is unique to the request."""

    token: str
    parts: int = 1
    is_held: bool = False
    """Whether a controller of the cluster holds the objects when they are deleted."""

    def manifests(self, resource: SimulatedResource) -> list[dict[str, Any]]:
        metadata: dict[str, Any] = {"namespace": "default"}
        if self.is_held:
            metadata["finalizers"] = [HOLDER]
        return [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {**metadata, "name": f"{resource.name}-{part}"},
                "data": {"token": self.token},
            }
            for part in range(self.parts)
        ]


@dataclass(kw_only=True)
class Answer:
    """The answer to a request."""

    accepted: bool
    text: str = ""


@dataclass(eq=False)
class Source:
    """One source."""

    name: str
    network: Network
    engine: Engine
    clock: Clock
    log_line: Any = None
    statuses: dict[str, str] = field(default_factory=dict)
    """The hash of the last status received for each resource."""
    killable: KillableTasks = field(default_factory=KillableTasks)

    def start(self) -> None:
        self.killable.start(self.name, self._follow())

    async def create(self, resource: SimulatedResource, content: Content) -> Answer:
        return await self._publish(
            event.EventAction.CREATE_REQUEST, self._work(resource, content, version=0), content.token
        )

    async def update(self, resource: SimulatedResource, content: Content, *, version: int) -> Answer:
        wanted = self._work(resource, content, version=version)
        return await self._publish(event.EventAction.UPDATE_REQUEST, wanted, content.token)

    async def delete(self, resource: SimulatedResource, *, request: str) -> Answer:
        wanted = self._work(resource, Content(token="", parts=0), version=0)
        leaving = wanted.with_metadata(deletionTimestamp=self._now().rfc3339_seconds())
        return await self._publish(event.EventAction.DELETE_REQUEST, leaving, request)

    def _work(self, resource: SimulatedResource, content: Content, *, version: int) -> work.ManifestWork:
        wanted = work.new(resource.name, namespace=resource.consumer, manifests=content.manifests(resource))
        return wanted.with_metadata(uid=resource.id, generation=version)

    async def _publish(self, action: event.EventAction, wanted: work.ManifestWork, request: str) -> Answer:
        attributes = codec.ContextAttributes(id=f"request-{request}", source=self.name, time=self._now())
        sent = codec.spec_event(wanted, action=action, attributes=attributes)
        pause = 0.1
        for _ in range(_ATTEMPTS):
            try:
                wire = Wire(self.network, owner=self.name, port="sources")
                try:
                    await wire.publish(sent, timeout_seconds=10.0)
                finally:
                    wire.break_off()
            except CallRejected as rejected:
                if rejected.code in (StatusCode.UNKNOWN, StatusCode.PERMISSION_DENIED):
                    return Answer(accepted=False, text=str(rejected))
            else:
                return Answer(accepted=True)
            await asyncio.sleep(pause)
            pause = min(5.0, 2 * pause)
        return Answer(accepted=False, text=NO_ANSWER)

    async def _follow(self) -> None:
        while True:
            try:
                await tasks.run_isolated(self._listen())
            except* (CallRejected, StreamTimeout):
                pass
            await asyncio.sleep(0.5)

    async def _listen(self) -> None:
        wanted = grpc_binding.Subscription(source=self.name, data_type=event.MANIFEST_BUNDLES)
        wire = Wire(self.network, owner=self.name, port="sources")
        async with wire.subscribe(wanted) as events, asyncio.TaskGroup() as group:
            group.create_task(self._resync(wire))
            async for received in events:
                self._receive(received)

    async def _resync(self, wire: Wire) -> None:
        """List the resources, as REST would, and request the statuses that are missing."""
        rows = self.engine.tables["resources"]
        for gone in [status for status in self.statuses if status not in rows]:
            del self.statuses[gone]
        request = event.CloudEvent(
            id=f"resync-{self.network.chance(self.name).getrandbits(48)}",
            source=self.name,
            type=event.STATUS_RESYNC_REQUEST,
            time=self._now(),
            extensions={event.CLUSTER_NAME: "", event.ORIGINAL_SOURCE: ""},
            data=resync.encode_hashes({each: self.statuses.get(each, "") for each in self._mine()}),
        )
        await wire.publish(request)

    def _mine(self) -> list[str]:
        return [row["id"] for row in self.engine.tables["resources"].values() if row["source"] == self.name]

    def _receive(self, received: event.CloudEvent) -> None:
        found = codec.work_from_status_event(received)
        if self.log_line:
            self.log_line(
                f"{self.name}: receives a status of {found.uid[:8]} "
                f"version {found.generation} deleted={found.status.is_deleted}"
            )
        if found.status.is_deleted:
            self.statuses.pop(found.uid, None)
        else:
            self.statuses[found.uid] = received.optional_text(event.STATUS_HASH)

    def _now(self) -> timestamps.Timestamp:
        return timestamps.from_datetime(self.clock.now())
