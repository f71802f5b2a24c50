"""The cases of every medium: over memory, and on real ports over gRPC and MQTT.

The MQTT broker is a small one of our own; Mosquitto plays the same cases in tests/peers/brokers.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from conformance import transport_cases
from conformance.memory_broker import memory_broker
from conformance.memory_server import MemoryServer
from conformance.mqtt_rig import LIMIT, Broker, rigged
from conformance.transport_cases import CONSUMER, Case, Rig, report

from maestropy.transport import base, grpc_server, identity
from maestropy.transport.grpc_agent import GrpcMedium
from maestropy.transport.grpc_client import Endpoint
from maestropy.transport.status import Code, Refused
from maestropy.wire import envelope, errors, event


class MemoryRig(MemoryServer):
    """The server in memory, which only listens."""

    def __init__(self) -> None:
        super().__init__("memory:1", consumer=CONSUMER)
        self.heard: list[event.Event] = []

    @property
    def medium(self) -> base.Medium:
        return self

    async def take(self, received: event.Event) -> None:
        if received.id == "id-never":
            raise base.Rejected("never")
        self.heard.append(received)

    async def send(self, sent: event.Event) -> None:  # type: ignore[override]  # the base class needs no waiting
        super().send(sent)

    async def hang_up(self) -> None:
        assert self._connection is not None
        self._connection.break_off()

    async def vanish(self) -> None:
        self.is_away = True

    async def come_back(self) -> None:
        self.is_away = False

    def unacceptable(self) -> event.Event:
        return report("never")


class GrpcRig:
    """A port for agents that remembers what it is told."""

    def __init__(self) -> None:
        self.heard: list[event.Event] = []
        self._queues: list[asyncio.Queue[event.Event | None]] = []
        self._listener: grpc_server.Listener | None = None
        self._port = 0

    async def publish(self, received: event.Event, peer: identity.Peer) -> None:
        if received.id == "id-never":
            raise Refused(Code.FAILED_PRECONDITION, "never")
        self.heard.append(received)

    async def malformed(self, problem: errors.WireError, peer: identity.Peer) -> Refused:
        return Refused(Code.INVALID_ARGUMENT, str(problem))

    @asynccontextmanager
    async def subscribe(self, wanted: envelope.Subscription, peer: identity.Peer) -> AsyncIterator[grpc_server.Stream]:
        queue: asyncio.Queue[event.Event | None] = asyncio.Queue()
        self._queues.append(queue)

        async def messages() -> AsyncIterator[Sequence[bytes]]:
            while (waiting := await queue.get()) is not None:
                yield [envelope.encode_event(waiting)]

        try:
            yield grpc_server.Stream(id="1", messages=messages())
        finally:
            self._queues.remove(queue)

    @property
    def medium(self) -> base.Medium:
        return GrpcMedium(Endpoint(url=f"127.0.0.1:{self._port}", silence_seconds=5), consumer=CONSUMER)

    async def send(self, sent: event.Event) -> None:
        for queue in self._queues:
            queue.put_nowait(sent)

    async def hang_up(self) -> None:
        await self.vanish()
        await self.come_back()

    async def vanish(self) -> None:
        assert self._listener is not None
        await self._listener.stop(grace_seconds=0)

    async def come_back(self) -> None:
        self._listener = grpc_server.Listener(
            self, limits=grpc_server.Limits(), observer=Silent(), monotonic=asyncio.get_running_loop().time
        )
        self._port = self._listener.bind(f"127.0.0.1:{self._port}", credentials=None)
        await self._listener.start()

    def unacceptable(self) -> event.Event:
        return report("never")


class Silent:
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
    await rig.come_back()
    try:
        yield rig
    finally:
        await rig.vanish()


def play(opening: AbstractAsyncContextManager[Rig], case: Case) -> None:
    async def scenario() -> None:
        async with opening as rig:
            await case(rig)

    asyncio.run(scenario())


@pytest.mark.parametrize("case", transport_cases.CASES.values(), ids=transport_cases.CASES.keys())
def test_memory(case: Case) -> None:
    play(memory(), case)


@pytest.mark.parametrize("case", transport_cases.CASES.values(), ids=transport_cases.CASES.keys())
def test_grpc(case: Case) -> None:
    play(grpc(), case)


@asynccontextmanager
async def mqtt(folder: Path) -> AsyncIterator[Rig]:
    async with memory_broker(limit=LIMIT) as broker:
        where = Broker(config=broker.config(folder), start=broker.start, stop=broker.stop)
        async with rigged(where) as rig:
            yield rig


@pytest.mark.parametrize("case", transport_cases.CASES.values(), ids=transport_cases.CASES.keys())
def test_mqtt(case: Case, tmp_path: Path) -> None:
    play(mqtt(tmp_path), case)
