"""A small agent for tests of the client: it takes works, reports as told, and reconnects when the server goes."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from maestropy.aio import clock
from maestropy.transport.grpc_client import Endpoint, GrpcClient, StreamTimeout
from maestropy.transport.status import Refused
from maestropy.wire import codec, envelope, event, instant, order, resync, status, work


def now() -> instant.Timestamp:
    nanos = time.time_ns()
    return instant.Timestamp(nanos // 10**9, nanos % 10**9)


@dataclass
class ScriptedAgent:
    """Applies whatever comes, unless told to hold."""

    address: str
    consumer: str
    source: str = "maestro"
    holds: bool = False
    feedback: dict[str, Any] = field(default_factory=dict)
    works: dict[str, work.ManifestWork] = field(default_factory=dict)
    received: list[event.Event] = field(default_factory=list)
    reports: int = 0
    _sequence: int = 0

    async def run(self) -> None:
        """Serve until cancelled."""
        while True:
            async with GrpcClient(Endpoint(url=self.address)) as client:
                with contextlib.suppress(Refused, StreamTimeout):
                    await self._serve(client)
            await asyncio.sleep(0.05)

    async def _serve(self, client: GrpcClient) -> None:
        wanted = envelope.Subscription(cluster_name=self.consumer, data_type=event.MANIFEST_BUNDLES)
        async with client.subscribe(wanted) as events:
            versions = {uid: found.generation for uid, found in self.works.items()}
            await client.publish(
                event.Event(
                    id=clock.new_id(),
                    source=f"{self.consumer}-agent",
                    type=event.SPEC_RESYNC_REQUEST,
                    time=now(),
                    extensions={event.CLUSTER_NAME: self.consumer, event.ORIGINAL_SOURCE: self.source},
                    data=resync.encode_versions(versions),
                )
            )
            async for received in events:
                if ".spec." not in received.type:
                    continue
                self.received.append(received)
                found = codec.work_from_spec_event(received)
                self.works[found.uid] = found
                if self.holds:
                    continue
                if found.deletion_timestamp:
                    await self.report(found.uid, "Deleted", client=client)
                else:
                    await self.report(found.uid, "Applied", "Available", client=client)

    async def report(self, uid: str, *conditions: str, client: GrpcClient | None = None, message: str = "") -> None:
        """Report that these conditions are true; raises Refused while there is no server."""
        self._sequence = order.next_id(self._sequence, now_ms=time.time_ns() // 10**6)
        found = self.works[uid]
        told = status.WorkStatus()
        for kind in conditions:
            one = status.Condition(type=kind, status="True", reason="Told", message=message)
            told = told.with_condition(one, now=now())
        told = told.with_manifests(map(self._manifest_status, enumerate(found.manifests)))
        told = status.WorkStatus({**told.body, "conditions": [*told.body["conditions"]]})
        stamp = codec.Stamp(id=clock.new_id(), source=f"{self.consumer}-agent", time=now())
        reported = codec.status_event(
            found.with_status(told),
            action=event.Action.UPDATE_REQUEST,
            sequence_id=str(self._sequence),
            stamp=stamp,
        )
        async with contextlib.AsyncExitStack() as stack:
            sender = client or await stack.enter_async_context(GrpcClient(Endpoint(url=self.address)))
            await sender.publish(reported)
        self.reports += 1
        if "Deleted" in conditions:
            del self.works[uid]

    def _manifest_status(self, item: tuple[int, Any]) -> status.ManifestStatus:
        index, manifest = item
        meta = status.ResourceMeta(
            ordinal=index,
            kind=manifest["kind"],
            name=manifest["metadata"]["name"],
            namespace=manifest["metadata"].get("namespace", ""),
        )
        raw = [
            status.FeedbackValue(name=name, type="JsonRaw", value=work.jsontypes.encode(value).decode())
            for name, value in self.feedback.items()
        ]
        return status.manifest_status(meta, feedback=raw)


@contextlib.asynccontextmanager
async def scripted_agent(address: str, consumer: str, **how: Any) -> AsyncIterator[ScriptedAgent]:
    """Run an agent until the block ends."""
    agent = ScriptedAgent(address, consumer, **how)
    running = asyncio.ensure_future(agent.run())
    try:
        yield agent
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
