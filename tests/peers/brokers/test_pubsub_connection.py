"""The connection to Pub/Sub: the cases of every transport and broker, leases, limits, and what is missing or denied."""

import asyncio
import contextlib
import io
import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from maestropy.server.brokers.pubsub import PubsubBroker
from maestropy.transport import port
from maestropy.transport.pubsub import config as pubsub_config
from maestropy.transport.pubsub import connection
from maestropy.transport.pubsub.agent import PubsubTransport
from maestropy.transport.pubsub.endpoint import PubsubEndpoint, ReceiveLimits
from maestropy.wire.events import event, pubsub_binding
from tests import waiting
from tests.conformance import broker_cases, broker_rigs, transport_cases
from tests.conformance.transport_cases import CONSUMER, status_update
from tests.peers.brokers import pubsub_agents
from tests.peers.pubsub_emulator import Emulator, emulator, subscription, topic

pytestmark = pytest.mark.peers
# Pub/Sub keeps no order, takes events although nobody subscribes, and its agents have no address, as Go's.
TRANSPORT_CASES = {
    name: case for name, case in transport_cases.CASES.items() if "_order" not in name and "address" not in name
}
BROKER_CASES = {
    name: case for name, case in broker_cases.CASES.items() if "_order_" not in name and "listening" not in name
}


@pytest.fixture
def pubsub(tmp_path: Path) -> Iterator[Emulator]:
    with emulator(tmp_path / "pubsub") as running:
        running.add_consumer(CONSUMER)
        running.add_consumer("cluster2")
        yield running


def server_endpoint(pubsub: Emulator) -> PubsubEndpoint:
    path = pubsub.config(pubsub.folder / "server.yaml")
    return pubsub_config.read(path, flag="--x", role="source", environ={}).endpoint


def agent_endpoint(pubsub: Emulator, consumer: str = CONSUMER) -> PubsubEndpoint:
    path = pubsub.config(pubsub.folder / f"{consumer}.yaml", consumer)
    return pubsub_config.read(path, flag="--x", role="agent", environ={}).endpoint


class TransportRig:
    """An emulator, and a client in place of a server."""

    keeps_order = False

    def __init__(self, pubsub: Emulator) -> None:
        self.received: list[event.CloudEvent] = []
        self._pubsub = pubsub
        self._endpoint = server_endpoint(pubsub)
        self._agent = agent_endpoint(pubsub)
        self._resources = contextlib.AsyncExitStack()

    @property
    def transport(self) -> port.Transport:
        return PubsubTransport(self._agent, consumer=CONSUMER, client_id="agent", on_problem=pytest.fail)

    async def send(self, sent: event.CloudEvent) -> None:
        message = pubsub_binding.encode(sent)
        await asyncio.to_thread(self._pubsub.publish, "sourceevents", message.attributes, message.data)

    async def break_connections(self) -> None:
        await self.stop()
        await self.start()

    async def stop(self) -> None:
        await self._resources.aclose()
        self._pubsub.cut()
        await waiting.until(lambda: not self._pubsub.is_up, what="the outage")

    async def start(self) -> None:
        self._pubsub.restore()
        await waiting.until(lambda: self._pubsub.is_up, what="the end of the outage")
        await self.listen()

    async def listen(self) -> None:
        client = await self._resources.enter_async_context(connection.connect(self._endpoint, client_id="maestro"))
        listening = asyncio.ensure_future(self._listen(client))
        self._resources.push_async_callback(asyncio.wait, [listening])
        self._resources.callback(listening.cancel)

    async def _listen(self, client: connection.PubsubClient) -> None:
        with contextlib.suppress(port.Disconnected):
            async for incoming in client.messages():
                self.received.append(pubsub_binding.decode(incoming.message))
                incoming.acknowledge()

    async def close(self) -> None:
        await self._resources.aclose()

    def rejected_update(self) -> event.CloudEvent:
        return status_update("never", data=b"x" * pubsub_binding.MESSAGE_MAX_BYTES)


@pytest.mark.parametrize("case", TRANSPORT_CASES.values(), ids=TRANSPORT_CASES.keys())
async def test_transport(case: transport_cases.Case, pubsub: Emulator) -> None:
    rig = TransportRig(pubsub)
    await rig.listen()
    try:
        await case(rig)
    finally:
        await rig.close()


class BrokerRig:
    """The backend of the server, and agents behind the emulator."""

    def __init__(self, pubsub: Emulator) -> None:
        self._pubsub = pubsub
        self.messages = broker_rigs.Messages()
        self.broker = PubsubBroker(
            broker_rigs.context(io.BytesIO()),
            server_endpoint(pubsub),
            client_id="maestro",
            delays=lambda: itertools.repeat(0.01),
        )

    @contextlib.asynccontextmanager
    async def agent(self, consumer: str) -> AsyncIterator[list[event.CloudEvent]]:
        received: list[event.CloudEvent] = []
        async with connection.connect(agent_endpoint(self._pubsub, consumer), client_id=consumer) as client:

            async def read() -> None:
                async for incoming in client.messages():
                    received.append(pubsub_binding.decode(incoming.message))
                    incoming.acknowledge()

            reading = asyncio.create_task(read(), name="agent")
            try:
                yield received
            finally:
                reading.cancel()
                await asyncio.wait([reading])

    def unsendable(self) -> event.CloudEvent:
        return broker_cases.spec("bad", metadata="a" * 1025)


@pytest.mark.parametrize("case", BROKER_CASES.values(), ids=BROKER_CASES.keys())
async def test_broker(case: broker_cases.Case, pubsub: Emulator) -> None:
    rig = BrokerRig(pubsub)
    running = asyncio.create_task(rig.broker.run(rig.messages), name="broker")
    try:
        await waiting.until(lambda: rig.broker.is_online, what="a connection")
        await case(rig)
    finally:
        rig.broker.stop()
        await running


async def publish(pubsub: Emulator, *names: str) -> None:
    for name in names:
        message = pubsub_binding.encode(status_update(name))
        await asyncio.to_thread(pubsub.publish, "agentevents", message.attributes, message.data)


async def take(client: connection.PubsubClient, *, seconds: float = 15.0) -> connection.Incoming:
    async with asyncio.timeout(seconds):
        return await anext(client.messages())


async def test_message_that_is_not_acknowledged_is_delivered_again_at_once(pubsub: Emulator) -> None:
    endpoint = server_endpoint(pubsub)
    async with connection.connect(endpoint, client_id="first") as client:
        await publish(pubsub, "w1", "w2")
        (await take(client)).acknowledge()
        left = await take(client)
    # Long before the deadline of a minute.
    async with connection.connect(endpoint, client_id="second") as client:
        assert (await take(client, seconds=5)).message == left.message
        with pytest.raises(TimeoutError):
            await take(client, seconds=1)


async def test_message_that_takes_long_is_not_delivered_again(pubsub: Emulator) -> None:
    endpoint = replace(server_endpoint(pubsub), receive=ReceiveLimits(lease_seconds=2))
    async with connection.connect(endpoint, client_id="slow") as client:
        await publish(pubsub, "w1")
        incoming = await take(client)
        with pytest.raises(TimeoutError):
            await take(client, seconds=5)
        incoming.acknowledge()


async def test_message_beyond_its_longest_lease_is_delivered_again(pubsub: Emulator) -> None:
    endpoint = replace(server_endpoint(pubsub), receive=ReceiveLimits(lease_seconds=2, max_lease_seconds=0.1))
    async with connection.connect(endpoint, client_id="stuck") as client:
        await publish(pubsub, "w1")
        first = await take(client)
        assert (await take(client)).message == first.message


async def test_no_more_is_received_than_the_limit(pubsub: Emulator) -> None:
    endpoint = replace(server_endpoint(pubsub), receive=ReceiveLimits(max_messages=5))
    async with connection.connect(endpoint, client_id="full") as client:
        await publish(pubsub, *(f"w{number}" for number in range(40)))
        await asyncio.sleep(1)
        held = [await take(client) for _ in range(5)]
        with pytest.raises(TimeoutError):
            await take(client, seconds=1)
        for incoming in held:
            incoming.acknowledge()
        for _ in range(35):
            (await take(client)).acknowledge()


async def test_missing_and_denied_topics(pubsub: Emulator) -> None:
    pubsub.denied.write_text(topic("agentevents"))
    config = pubsub.config(pubsub.folder / "agent.yaml", CONSUMER)
    async with pubsub_agents.transport(config, CONSUMER).connect() as connected:
        with pytest.raises(port.Misconfigured, match=r"topics/agentevents is denied \(.*grant roles/pubsub.publisher"):
            await connected.publish(status_update("w1"))
        pubsub.denied.write_text("")
        pubsub.call("Publisher/DeleteTopic", topic=topic("agentevents"))
        with pytest.raises(port.Misconfigured, match="topics/agentevents does not exist; create it, or correct"):
            await connected.publish(status_update("w1"))


async def test_denied_subscription(pubsub: Emulator) -> None:
    name = subscription(f"sourceevents-{CONSUMER}")
    pubsub.denied.write_text(name)
    with pytest.raises(port.Misconfigured, match=f"access to {name} is denied .*grant roles/pubsub.subscriber on it"):
        async with connection.connect(agent_endpoint(pubsub), client_id="agent"):
            pass


async def test_subscription_that_is_deleted_ends_the_connection(pubsub: Emulator) -> None:
    name = subscription("agentevents-maestro")
    async with connection.connect(server_endpoint(pubsub), client_id="maestro") as client:
        pubsub.call("Subscriber/DeleteSubscription", subscription=name)
        await asyncio.to_thread(pubsub.cut)
        pubsub.restore()
        with pytest.raises(port.Disconnected):
            await take(client)
    with pytest.raises(port.Misconfigured, match=f"{name} does not exist"):
        async with connection.connect(server_endpoint(pubsub), client_id="maestro"):
            pass


async def test_stream_that_the_service_ends_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real service ends each after some time; that is no outage, and nobody resyncs."""
    monkeypatch.setattr(connection, "_STREAM_WORKS_SECONDS", 0.5)
    with emulator(tmp_path / "pubsub", stream_seconds=1.0) as pubsub:
        async with connection.connect(server_endpoint(pubsub), client_id="maestro") as client:
            for number in range(4):
                await publish(pubsub, f"w{number}")
                (await take(client)).acknowledge()
                await asyncio.sleep(0.7)


async def test_stream_that_ends_at_once_is_a_failure(tmp_path: Path) -> None:
    with emulator(tmp_path / "pubsub", stream_seconds=0.1) as pubsub:
        async with connection.connect(server_endpoint(pubsub), client_id="maestro") as client:
            with pytest.raises(port.Disconnected, match="the stream has ended"):
                await take(client)
