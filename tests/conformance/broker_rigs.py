"""The two backends of the broker port with agents that a test holds."""

import asyncio
import contextlib
import io
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from maestropy.journal.emit import Journal
from maestropy.server.brokers.grpc_streams import GrpcStreams
from maestropy.server.brokers.mqtt import MqttBroker
from maestropy.server.brokers.subscribers import ServerStopping, Subscriber, Subscribers
from maestropy.server.context import Context
from maestropy.server.telemetry.metrics import Metrics
from maestropy.store.postgres import pool
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt import connection
from maestropy.wire.events import event, grpc_binding, mqtt_binding, mqtt_topics
from tests import waiting
from tests.conformance.broker_cases import spec


def context(log: io.BytesIO | None = None) -> Context:
    """Return a context without a database."""
    return Context(
        database=pool.Database(None),
        journal=Journal(log or io.BytesIO(), clock=lambda: 0.0, verbosity=4),
        metrics=Metrics(CollectorRegistry()),
        instance_id="maestro",
    )


class GrpcRig:
    """Agents subscribed to this instance."""

    def __init__(self, *, max_items: int = 1000, max_bytes: int = 2**20) -> None:
        self.subscribers = Subscribers(max_items=max_items, max_bytes=max_bytes)
        self.broker = GrpcStreams(self.subscribers)
        self._numbers = itertools.count()

    def subscribe(self, consumer: str, **more: Callable[[], object]) -> Subscriber:
        """Subscribe as an agent that does not read."""
        disconnect = more.get("disconnect", lambda: None)
        return self.subscribers.open(consumer, subscription_id=f"s{next(self._numbers)}", disconnect=disconnect)

    @contextlib.asynccontextmanager
    async def agent(self, consumer: str) -> AsyncIterator[list[event.CloudEvent]]:
        subscriber = self.subscribe(consumer)
        received: list[event.CloudEvent] = []

        async def read() -> None:
            with contextlib.suppress(ServerStopping):
                while True:
                    received.extend(map(grpc_binding.decode_event, await subscriber.box.take()))

        reading = asyncio.create_task(read(), name="agent")
        try:
            yield received
        finally:
            self.subscribers.close(subscriber)
            await reading

    def unsendable(self) -> event.CloudEvent:
        return spec("bad", number=2**40)


class Messages:
    """A receiver that keeps what it gets."""

    def __init__(self) -> None:
        self.received: list[event.CloudEvent] = []
        self.times_online = 0
        self.handle: Callable[[event.CloudEvent, Callable[[], None]], Awaitable[None]] = self._acknowledge
        self.fail_online: list[Exception] = []

    async def on_online(self) -> None:
        self.times_online += 1
        if self.fail_online:
            raise self.fail_online.pop()

    async def on_messages_lost(self) -> None:
        pytest.fail("no messages were lost")

    async def receive(self, received: event.CloudEvent, acknowledge: Callable[[], None]) -> None:
        self.received.append(received)
        await self.handle(received, acknowledge)

    async def _acknowledge(self, _: event.CloudEvent, acknowledge: Callable[[], None]) -> None:
        acknowledge()


class MqttRig:
    """Agents behind an MQTT broker."""

    def __init__(self, config: Path) -> None:
        self.messages = Messages()
        self.log = io.BytesIO()
        self.endpoint = mqtt_config.read(config, flag="--x").endpoint
        self.broker = MqttBroker(
            context(self.log), self.endpoint, client_id="maestro", delays=lambda: itertools.repeat(0.01)
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["MqttRig"]:
        """Connect the server to the broker."""
        running = asyncio.create_task(self.broker.run(self.messages), name="broker")
        try:
            await waiting.until(lambda: self.broker.is_online, what="a connection")
            yield self
        finally:
            self.broker.stop()
            await running

    @contextlib.asynccontextmanager
    async def client(self, name: str) -> AsyncIterator[connection.MqttClient]:
        """Connect as an agent."""
        async with connection.connect(self.endpoint, client_id=name, on_messages_lost=lambda _: None) as client:
            yield client

    @contextlib.asynccontextmanager
    async def agent(self, consumer: str) -> AsyncIterator[list[event.CloudEvent]]:
        received: list[event.CloudEvent] = []
        async with self.client(consumer) as client:
            topic = mqtt_topics.source_events(self.endpoint.topics, source="maestro", consumer=consumer)
            await client.subscribe([topic])

            async def read() -> None:
                async for incoming in client.messages():
                    message = incoming.message
                    received.append(
                        mqtt_binding.decode(
                            message.content_type, properties=message.properties, payload=message.payload
                        )
                    )
                    incoming.acknowledge()

            reading = asyncio.create_task(read(), name="agent")
            try:
                yield received
            finally:
                reading.cancel()
                await asyncio.wait([reading])

    def unsendable(self) -> event.CloudEvent:
        return spec("bad", text="a" * 70_000)
