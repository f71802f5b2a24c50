"""A source and an agent as tests use them: they speak the protocol and know nothing else of the server."""

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from maestropy.wire import ordering, resync, timestamps
from maestropy.wire.events import event, grpc_binding

PATIENCE = 60.0
MANIFEST: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "cm", "namespace": "default"},
    "data": {"k": "v"},
}


def new_id() -> str:
    return str(uuid.uuid4())


def bundle_data(text: str = "v", **more: Any) -> bytes:
    """Return a manifest bundle with one ConfigMap that holds `text`."""
    return json.dumps({"manifests": [{**MANIFEST, "data": {"k": text}}], **more}).encode()


def now() -> timestamps.Timestamp:
    nanos = time.time_ns()
    return timestamps.Timestamp(nanos // 10**9, nanos % 10**9)


def condition(kind: str, *, status: str = "True") -> dict[str, str]:
    return {
        "type": kind,
        "status": status,
        "reason": "Done",
        "message": "",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }


class Stream:
    """An open subscription; events are kept until somebody takes them."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self.events: list[event.CloudEvent] = []
        self.heartbeats = 0
        self.seen = 0
        self.error: grpc.aio.AioRpcError | None = None
        self.ended = asyncio.Event()
        self._news = asyncio.Condition()

    async def read(self) -> None:
        """Read until the stream ends."""
        try:
            async for message in self._call:
                received = grpc_binding.decode_event(message)
                if received.type == event.HEARTBEAT:
                    self.heartbeats += 1
                    continue
                async with self._news:
                    self.events.append(received)
                    self.seen += 1
                    self._news.notify_all()
        except grpc.aio.AioRpcError as error:
            self.error = error
        finally:
            self.ended.set()
            async with self._news:
                self._news.notify_all()

    async def take(
        self, match: Callable[[event.CloudEvent], bool] = lambda _: True, *, seconds: float = PATIENCE
    ) -> event.CloudEvent:
        """Wait for an event that matches, and take it; others stay."""
        async with asyncio.timeout(seconds), self._news:
            while True:
                for found in self.events:
                    if match(found):
                        self.events.remove(found)
                        return found
                assert not self.ended.is_set(), f"the stream has ended: {self.error}"
                await self._news.wait()

    async def spec_of(self, resource_id: str, *, version: int | None = None) -> event.CloudEvent:
        """Wait for the spec or the status of one bundle."""
        return await self.take(lambda e: is_about(e, resource_id, version=version))


def is_about(received: event.CloudEvent, resource_id: str, *, version: int | None = None) -> bool:
    if received.extensions.get(event.RESOURCE_ID) != resource_id:
        return False
    return version is None or received.integer(event.RESOURCE_VERSION) == version


class Client:
    """One connection to one port of a server."""

    def __init__(self, address: str) -> None:
        # Connections are shared between channels of equal options; a test that stalls one must not stall the others.
        options = (("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 50))
        self.channel: Any = grpc.aio.insecure_channel(address, options=options)

    async def publish(self, value: event.CloudEvent) -> None:
        await self.publish_bytes(grpc_binding.encode_publish(value))

    async def publish_bytes(self, request: bytes) -> None:
        await self.channel.unary_unary(grpc_binding.PUBLISH_METHOD)(request, timeout=PATIENCE)

    async def refused(self, value: event.CloudEvent) -> grpc.aio.AioRpcError:
        """Publish what must be refused, and return the refusal."""
        try:
            await self.publish(value)
        except grpc.aio.AioRpcError as error:
            return error
        raise AssertionError(f"{value.type} was not refused")

    async def answer(self, value: event.CloudEvent) -> str:
        """Publish, and return the text of the refusal, empty when there is none."""
        try:
            await self.publish(value)
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name}: {error.details()}"
        return ""

    @contextlib.asynccontextmanager
    async def open_stream(self, wanted: grpc_binding.Subscription, *, reads: bool = True) -> AsyncIterator[Stream]:
        call = self.channel.unary_stream(grpc_binding.SUBSCRIBE_METHOD)(grpc_binding.encode_subscription(wanted))
        headers = dict(await asyncio.wait_for(call.initial_metadata(), PATIENCE))
        assert headers["subscription-id"]
        stream = Stream(call)
        reader = asyncio.ensure_future(stream.read()) if reads else None
        try:
            yield stream
        finally:
            call.cancel()
            if reader is not None:
                with contextlib.suppress(asyncio.CancelledError):
                    await reader


@dataclass(kw_only=True)
class Source(Client):
    """A client of the port for sources."""

    address: str
    id: str = "source-a"

    def __post_init__(self) -> None:
        super().__init__(self.address)

    def subscribe(self, *, reads: bool = True) -> contextlib.AbstractAsyncContextManager[Stream]:
        wanted = grpc_binding.Subscription(source=self.id, data_type=event.MANIFEST_BUNDLES)
        return self.open_stream(wanted, reads=reads)

    def spec(self, kind: str, resource_id: str, consumer: str, **changes: Any) -> event.CloudEvent:
        """Return a create, update or delete request."""
        data = changes.get("data", bundle_data() if kind != event.SPEC_DELETE else b"")
        metadata = changes.get("metadata", {"name": f"work-{resource_id}", "namespace": consumer, "uid": resource_id})
        return event.CloudEvent(
            id=changes.get("event_id") or new_id(),
            source=changes.get("source", self.id),
            type=kind,
            time=now(),
            extensions={
                event.RESOURCE_ID: resource_id,
                event.RESOURCE_VERSION: changes.get("version", 0),
                event.CLUSTER_NAME: consumer,
                event.ORIGINAL_SOURCE: "",
                event.METADATA: json.dumps(metadata),
            },
            data=data,
        )

    async def create(self, resource_id: str, consumer: str, **changes: Any) -> None:
        await self.publish(self.spec(event.SPEC_CREATE, resource_id, consumer, **changes))

    async def update(self, resource_id: str, consumer: str, **changes: Any) -> None:
        await self.publish(self.spec(event.SPEC_UPDATE, resource_id, consumer, **changes))

    async def delete(self, resource_id: str, consumer: str, **changes: Any) -> None:
        await self.publish(self.spec(event.SPEC_DELETE, resource_id, consumer, **changes))

    async def resync(self, hashes: Mapping[str, str]) -> None:
        await self.publish(
            event.CloudEvent(
                id=new_id(),
                source=self.id,
                type=event.STATUS_RESYNC_REQUEST,
                time=now(),
                extensions={event.CLUSTER_NAME: "", event.ORIGINAL_SOURCE: ""},
                data=resync.encode_hashes(hashes),
            )
        )


@dataclass(kw_only=True)
class Agent(Client):
    """A client of the port for agents."""

    address: str
    consumer: str
    works: dict[str, event.CloudEvent] = field(default_factory=dict)
    last_sequence: int = 0

    def __post_init__(self) -> None:
        super().__init__(self.address)

    def subscribe(self, *, reads: bool = True) -> contextlib.AbstractAsyncContextManager[Stream]:
        wanted = grpc_binding.Subscription(cluster_name=self.consumer, data_type=event.MANIFEST_BUNDLES)
        return self.open_stream(wanted, reads=reads)

    def sequence(self) -> str:
        """Return a sequence id newer than all before."""
        self.last_sequence = ordering.next_id(self.last_sequence, now_ms=time.time_ns() // 10**6)
        return str(self.last_sequence)

    def report(self, resource_id: str, version: int, *kinds: str, **changes: Any) -> event.CloudEvent:
        """Return a status with the named conditions."""
        sequence = changes.get("sequence") or self.sequence()
        kinds = kinds or ("Applied", "Available")
        return event.CloudEvent(
            id=new_id(),
            source=f"{self.consumer}-work-agent",
            type=event.STATUS_UPDATE,
            time=now(),
            extensions={
                event.RESOURCE_ID: resource_id,
                event.RESOURCE_VERSION: version,
                event.CLUSTER_NAME: changes.get("consumer", self.consumer),
                event.ORIGINAL_SOURCE: "maestro",
                event.SEQUENCE_ID: sequence,
                event.STATUS_HASH: changes.get("hash", f"hash-{sequence}"),
            },
            data=json.dumps({"conditions": [condition(kind) for kind in kinds], "resourceStatus": []}).encode(),
        )

    async def tell(self, resource_id: str, version: int, *kinds: str, **changes: Any) -> None:
        """Publish a status."""
        await self.publish(self.report(resource_id, version, *kinds, **changes))

    async def resync(self, versions: Mapping[str, int]) -> None:
        """Say what this agent has."""
        await self.publish(
            event.CloudEvent(
                id=new_id(),
                source=f"{self.consumer}-work-agent",
                type=event.SPEC_RESYNC_REQUEST,
                time=now(),
                extensions={event.CLUSTER_NAME: self.consumer, event.ORIGINAL_SOURCE: ""},
                data=resync.encode_versions(versions),
            )
        )

    async def close(self) -> None:
        await self.channel.close()


@contextlib.asynccontextmanager
async def source(address: str, source_id: str = "source-a") -> AsyncIterator[Source]:
    """Connect a source."""
    client = Source(address=address, id=source_id)
    try:
        yield client
    finally:
        await client.channel.close()


@contextlib.asynccontextmanager
async def agent(address: str, consumer: str) -> AsyncIterator[Agent]:
    """Connect an agent."""
    client = Agent(address=address, consumer=consumer)
    try:
        yield client
    finally:
        await client.channel.close()
