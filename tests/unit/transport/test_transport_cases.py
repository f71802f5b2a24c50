"""Every transport passes the transport cases: over memory, and on real ports over gRPC and MQTT.

The MQTT broker is `memory_broker`; tests/peers/brokers runs the same cases on Mosquitto.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from maestropy.transport import peer_identity, port
from maestropy.transport.grpc import server as grpc_server
from maestropy.transport.grpc.agent import GrpcTransport
from maestropy.transport.grpc.client import GrpcEndpoint
from maestropy.transport.grpc.limits import GrpcLimits
from maestropy.transport.grpc.status import CallRejected, StatusCode
from maestropy.wire import errors
from maestropy.wire.events import event, grpc_binding
from tests.conformance import transport_cases
from tests.conformance.memory_broker import memory_broker
from tests.conformance.memory_server import MemoryServer
from tests.conformance.mqtt_rig import LIMIT, Broker, mqtt_rig
from tests.conformance.transport_cases import CONSUMER, Case, Rig, status_update


class MemoryRig(MemoryServer):
    """The server in memory, which only records events."""

    keeps_order = True

    def __init__(self) -> None:
        super().__init__("memory:1", consumer=CONSUMER)
        self.received: list[event.CloudEvent] = []

    @property
    def transport(self) -> port.Transport:
        return self

    async def receive(self, received: event.CloudEvent) -> None:
        if received.id == "id-never":
            raise port.PublishRejected("never")
        self.received.append(received)

    async def send(self, sent: event.CloudEvent) -> None:  # type: ignore[override]  # the base class needs no waiting
        super().send(sent)

    async def break_connections(self) -> None:
        assert self._connection is not None
        self._connection.close()

    async def stop(self) -> None:
        self.is_unreachable = True

    async def start(self) -> None:
        self.is_unreachable = False

    def rejected_update(self) -> event.CloudEvent:
        return status_update("never")


class GrpcRig:
    """A port for agents that remembers what it is passing."""

    keeps_order = True

    def __init__(self) -> None:
        self.received: list[event.CloudEvent] = []
        self._queues: list[asyncio.Queue[event.CloudEvent | None]] = []
        self._listener: grpc_server.GrpcListener | None = None
        self._port = 0

    async def authenticate(self, peer: peer_identity.Peer) -> peer_identity.PeerIdentity:
        return peer_identity.ANONYMOUS

    async def publish(self, received: event.CloudEvent, peer: peer_identity.Peer) -> None:
        if received.id == "id-never":
            raise CallRejected(StatusCode.INVALID_ARGUMENT, "never")
        if received.id == "id-go-failure":
            raise CallRejected(StatusCode.FAILED_PRECONDITION, "{}")
        self.received.append(received)

    async def malformed(self, problem: errors.WireError, peer: peer_identity.Peer) -> CallRejected:
        return CallRejected(StatusCode.INVALID_ARGUMENT, str(problem))

    @asynccontextmanager
    async def subscribe(
        self, subscription: grpc_binding.Subscription, peer: peer_identity.Peer
    ) -> AsyncIterator[grpc_server.Stream]:
        queue: asyncio.Queue[event.CloudEvent | None] = asyncio.Queue()
        self._queues.append(queue)

        async def messages() -> AsyncIterator[Sequence[bytes]]:
            while (waiting := await queue.get()) is not None:
                yield [grpc_binding.encode_event(waiting)]

        try:
            yield grpc_server.Stream(id="1", messages=messages())
        finally:
            self._queues.remove(queue)

    @property
    def transport(self) -> port.Transport:
        return GrpcTransport(
            GrpcEndpoint(url=f"127.0.0.1:{self._port}", heartbeat_timeout_seconds=5), consumer=CONSUMER
        )

    async def send(self, sent: event.CloudEvent) -> None:
        for queue in self._queues:
            queue.put_nowait(sent)

    async def break_connections(self) -> None:
        await self.stop()
        await self.start()

    async def stop(self) -> None:
        assert self._listener is not None
        await self._listener.stop(grace_seconds=0)

    async def start(self) -> None:
        self._listener = grpc_server.GrpcListener(
            self, limits=GrpcLimits(), observer=NoMetrics(), monotonic=asyncio.get_running_loop().time
        )
        self._port = self._listener.bind(f"127.0.0.1:{self._port}", credentials=None)
        await self._listener.start()

    def rejected_update(self) -> event.CloudEvent:
        return status_update("never")


class NoMetrics:
    def called(self, method: grpc_server.Method, source: str) -> None: ...

    def finished(self, method: grpc_server.Method, source: str, *, code: str, seconds: float) -> None: ...

    def sent(self, method: str, source: str, *, count: int) -> None:
        pass

    def crashed(self, method: str, error: Exception) -> None:
        raise error


@asynccontextmanager
async def memory() -> AsyncIterator[Rig]:
    yield MemoryRig()


@asynccontextmanager
async def grpc() -> AsyncIterator[Rig]:
    rig = GrpcRig()
    await rig.start()
    try:
        yield rig
    finally:
        await rig.stop()


async def play(opening: AbstractAsyncContextManager[Rig], case: Case) -> None:
    async with opening as rig:
        await case(rig)


@pytest.mark.parametrize("case", transport_cases.CASES.values(), ids=transport_cases.CASES.keys())
async def test_memory_transport_conforms(case: Case) -> None:
    await play(memory(), case)


@pytest.mark.parametrize("case", transport_cases.CASES.values(), ids=transport_cases.CASES.keys())
async def test_grpc_transport_conforms(case: Case) -> None:
    await play(grpc(), case)


async def test_failed_precondition_is_not_final() -> None:
    """A Go server answers so to every failure, for instance while its database is away."""
    async with grpc() as rig, rig.transport.connect() as connection:
        with pytest.raises(port.NotAccepted, match=r"FailedPrecondition: \{\}"):
            await connection.publish(status_update("go-failure"))
        await connection.publish(status_update("w1"))
        assert [received.id for received in rig.received] == ["id-w1"]


@asynccontextmanager
async def mqtt(folder: Path) -> AsyncIterator[Rig]:
    async with memory_broker(limit=LIMIT) as broker:
        broker_process = Broker(config=broker.config(folder), start=broker.start, stop=broker.stop)
        async with mqtt_rig(broker_process) as rig:
            yield rig


@pytest.mark.parametrize("case", transport_cases.CASES.values(), ids=transport_cases.CASES.keys())
async def test_mqtt_transport_conforms(case: Case, tmp_path: Path) -> None:
    await play(mqtt(tmp_path), case)
