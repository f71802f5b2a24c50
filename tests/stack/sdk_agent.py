"""A scripted agent for client tests: it receives works, reports their status, and reconnects after a server restart."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from maestropy.aio import clock
from maestropy.transport.grpc.client import GrpcClient, GrpcEndpoint, StreamTimeout
from maestropy.transport.grpc.status import CallRejected
from maestropy.wire import codec, json_types, ordering, resync, timestamps
from maestropy.wire.events import event, grpc_binding
from maestropy.wire.works import status, work


def now() -> timestamps.Timestamp:
    nanos = time.time_ns()
    return timestamps.Timestamp(nanos // 10**9, nanos % 10**9)


@dataclass
class ScriptedAgent:
    """Reports every work as applied, unless `holds` is set."""

    address: str
    consumer: str
    source: str = "maestro"
    holds: bool = False
    feedback: dict[str, Any] = field(default_factory=dict)
    works: dict[str, work.ManifestWork] = field(default_factory=dict)
    received: list[event.CloudEvent] = field(default_factory=list)
    reports: int = 0
    _sequence: int = 0

    async def run(self) -> None:
        """Serve until cancelled."""
        while True:
            async with GrpcClient(GrpcEndpoint(url=self.address)) as client:
                with contextlib.suppress(CallRejected, StreamTimeout):
                    await self._serve(client)
            await asyncio.sleep(0.05)

    async def _serve(self, client: GrpcClient) -> None:
        subscription = grpc_binding.Subscription(cluster_name=self.consumer, data_type=event.MANIFEST_BUNDLES)
        async with client.subscribe(subscription) as events:
            versions = {uid: known.generation for uid, known in self.works.items()}
            await client.publish(
                event.CloudEvent(
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
                desired = codec.work_from_spec_event(received)
                self.works[desired.uid] = desired
                if self.holds:
                    continue
                if desired.deletion_timestamp:
                    await self.report(desired.uid, "Deleted", client=client)
                else:
                    await self.report(desired.uid, "Applied", "Available", client=client)

    async def report(self, uid: str, *conditions: str, client: GrpcClient | None = None, message: str = "") -> None:
        """Report these conditions as True; raises CallRejected while there is no server."""
        self._sequence = ordering.next_id(self._sequence, now_ms=time.time_ns() // 10**6)
        desired = self.works[uid]
        work_status = status.WorkStatus()
        for kind in conditions:
            condition = status.Condition(type=kind, status="True", reason="Reported", message=message)
            work_status = work_status.with_condition(condition, now=now())
        work_status = work_status.with_manifests(map(self._manifest_status, enumerate(desired.manifests)))
        work_status = status.WorkStatus({**work_status.body, "conditions": [*work_status.body["conditions"]]})
        attributes = codec.ContextAttributes(id=clock.new_id(), source=f"{self.consumer}-agent", time=now())
        reported = codec.status_event(
            desired.with_status(work_status),
            action=event.EventAction.UPDATE_REQUEST,
            sequence_id=str(self._sequence),
            attributes=attributes,
        )
        async with contextlib.AsyncExitStack() as stack:
            sender = client
            if sender is None:
                sender = await stack.enter_async_context(GrpcClient(GrpcEndpoint(url=self.address)))
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
            status.FeedbackValue(name=name, type="JsonRaw", value=json_types.encode(value).decode())
            for name, value in self.feedback.items()
        ]
        return status.manifest_status(meta, feedback=raw)


@contextlib.asynccontextmanager
async def scripted_agent(address: str, consumer: str, **options: Any) -> AsyncIterator[ScriptedAgent]:
    """Run a scripted agent; a context manager."""
    agent = ScriptedAgent(address, consumer, **options)
    running = asyncio.ensure_future(agent.run())
    try:
        yield agent
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
