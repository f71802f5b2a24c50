"""Sources of a simulation: they publish wishes until they are answered, and follow the statuses of their bundles.

Played: the client. It behaves as the SDK does: a wish is repeated under the same event id until the server says yes or
no, and after every connection it lists what there is and asks for the statuses it lacks.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from simulation.actors import Crowd
from simulation.memory_postgres import Engine
from simulation.network import Network, Wire

from maestropy.aio import tasks
from maestropy.aio.clock import Clock
from maestropy.transport.grpc_client import StreamTimeout
from maestropy.transport.status import Code, Refused
from maestropy.wire import codec, envelope, event, identity, instant, resync, work

HOLDER = "simulation/holder"
NOBODY = "nobody answered"
_ATTEMPTS = 60


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """One bundle that a source may want."""

    name: str
    source: str
    consumer: str

    @property
    def id(self) -> str:
        return identity.resource_id(self.source, namespace=self.consumer, name=self.name)


@dataclass(frozen=True, kw_only=True)
class Content:
    """What a bundle is made of: ConfigMaps that carry a token, which no other wish has."""

    token: str
    parts: int = 1
    is_held: bool = False
    """Whether a controller of the cluster holds the objects when they are deleted."""

    def manifests(self, bundle: Bundle) -> list[dict[str, Any]]:
        metadata: dict[str, Any] = {"namespace": "default"}
        if self.is_held:
            metadata["finalizers"] = [HOLDER]
        return [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {**metadata, "name": f"{bundle.name}-{part}"},
                "data": {"token": self.token},
            }
            for part in range(self.parts)
        ]


@dataclass(kw_only=True)
class Answer:
    """What became of a wish."""

    accepted: bool
    text: str = ""


@dataclass(eq=False)
class Source:
    """One source."""

    name: str
    network: Network
    engine: Engine
    clock: Clock
    told: Any = None
    statuses: dict[str, str] = field(default_factory=dict)
    """The hash of the last status heard of each bundle."""
    crowd: Crowd = field(default_factory=Crowd)

    def start(self) -> None:
        self.crowd.start(self.name, self._follow())

    async def create(self, bundle: Bundle, content: Content) -> Answer:
        return await self._wish(event.Action.CREATE_REQUEST, self._work(bundle, content, version=0), content.token)

    async def update(self, bundle: Bundle, content: Content, *, version: int) -> Answer:
        wanted = self._work(bundle, content, version=version)
        return await self._wish(event.Action.UPDATE_REQUEST, wanted, content.token)

    async def delete(self, bundle: Bundle, *, wish: str) -> Answer:
        wanted = self._work(bundle, Content(token="", parts=0), version=0)
        leaving = wanted.with_metadata(deletionTimestamp=self._now().rfc3339_seconds())
        return await self._wish(event.Action.DELETE_REQUEST, leaving, wish)

    def _work(self, bundle: Bundle, content: Content, *, version: int) -> work.ManifestWork:
        wanted = work.new(bundle.name, namespace=bundle.consumer, manifests=content.manifests(bundle))
        return wanted.with_metadata(uid=bundle.id, generation=version)

    async def _wish(self, action: event.Action, wanted: work.ManifestWork, wish: str) -> Answer:
        stamp = codec.Stamp(id=f"wish-{wish}", source=self.name, time=self._now())
        sent = codec.spec_event(wanted, action=action, stamp=stamp)
        pause = 0.1
        for _ in range(_ATTEMPTS):
            try:
                wire = Wire(self.network, owner=self.name, port="sources")
                try:
                    await wire.publish(sent, timeout_seconds=10.0)
                finally:
                    wire.break_off()
            except Refused as refused:
                if refused.code in (Code.UNKNOWN, Code.PERMISSION_DENIED):
                    return Answer(accepted=False, text=str(refused))
            else:
                return Answer(accepted=True)
            await asyncio.sleep(pause)
            pause = min(5.0, 2 * pause)
        return Answer(accepted=False, text=NOBODY)

    async def _follow(self) -> None:
        while True:
            try:
                await tasks.apart(self._listen())
            except* (Refused, StreamTimeout):
                pass
            await asyncio.sleep(0.5)

    async def _listen(self) -> None:
        wanted = envelope.Subscription(source=self.name, data_type=event.MANIFEST_BUNDLES)
        wire = Wire(self.network, owner=self.name, port="sources")
        async with wire.subscribe(wanted) as events, asyncio.TaskGroup() as group:
            group.create_task(self._resync(wire))
            async for received in events:
                self._hear(received)

    async def _resync(self, wire: Wire) -> None:
        """List what there is, as REST would tell, and ask for the statuses that are lacking."""
        rows = self.engine.tables["resources"]
        for gone in [each for each in self.statuses if each not in rows]:
            del self.statuses[gone]
        question = event.Event(
            id=f"resync-{self.network.chance(self.name).getrandbits(48)}",
            source=self.name,
            type=event.STATUS_RESYNC_REQUEST,
            time=self._now(),
            extensions={event.CLUSTER_NAME: "", event.ORIGINAL_SOURCE: ""},
            data=resync.encode_hashes({each: self.statuses.get(each, "") for each in self._mine()}),
        )
        await wire.publish(question)

    def _mine(self) -> list[str]:
        return [row["id"] for row in self.engine.tables["resources"].values() if row["source"] == self.name]

    def _hear(self, received: event.Event) -> None:
        found = codec.work_from_status_event(received)
        if self.told:
            self.told(
                f"{self.name}: hears of {found.uid[:8]} version {found.generation} deleted={found.status.is_deleted}"
            )
        if found.status.is_deleted:
            self.statuses.pop(found.uid, None)
        else:
            self.statuses[found.uid] = received.optional_text(event.STATUS_HASH)

    def _now(self) -> instant.Timestamp:
        return instant.from_datetime(self.clock.now())
