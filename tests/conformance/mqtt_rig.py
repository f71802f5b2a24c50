"""The transport rig for MQTT brokers: its server side is a client that subscribes as a server does."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from maestropy.transport import port
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt import connection
from maestropy.transport.mqtt.agent import MqttTransport
from maestropy.wire.events import event, mqtt_topics
from maestropy.wire.events import mqtt_binding as binding
from tests.conformance.transport_cases import CONSUMER, Rig, status_update

LIMIT = 900_000
"""The packet size limit of the broker."""


@dataclass(frozen=True, kw_only=True)
class Broker:
    """A running broker that can be stopped and started again at the same address."""

    config: Path
    start: Callable[[], Awaitable[None]]
    stop: Callable[[], Awaitable[None]]


class MqttRig:
    """A broker and a subscriber in place of a server."""

    keeps_order = True

    def __init__(self, broker: Broker) -> None:
        self.received: list[event.CloudEvent] = []
        self._broker = broker
        self._endpoint = mqtt_config.read(broker.config, flag="--x").endpoint
        self._resources = contextlib.AsyncExitStack()
        self._client: connection.MqttClient | None = None

    @property
    def transport(self) -> port.Transport:
        endpoint = replace(self._endpoint, dial_seconds=2.0)
        return MqttTransport(endpoint, consumer=CONSUMER, client_id="agent", on_problem=pytest.fail)

    async def send(self, sent: event.CloudEvent) -> None:
        assert self._client is not None
        topic = mqtt_topics.source_events(self._endpoint.topics, source="maestro", consumer=CONSUMER)
        await self._client.publish(topic, binding.encode(sent))

    async def break_connections(self) -> None:
        await self.stop()
        await self.start()

    async def stop(self) -> None:
        await self._broker.stop()
        await self._resources.aclose()

    async def start(self) -> None:
        await self._broker.start()
        await self.listen()

    async def listen(self) -> None:
        self._client = await self._resources.enter_async_context(
            connection.connect(
                self._endpoint, client_id="maestro", on_messages_lost=lambda _: pytest.fail("messages were lost")
            )
        )
        await self._client.subscribe([self._endpoint.topics.agent_events])
        listening = asyncio.ensure_future(self._listen(self._client))
        self._resources.push_async_callback(asyncio.wait, [listening])
        self._resources.callback(listening.cancel)

    async def _listen(self, client: connection.MqttClient) -> None:
        with contextlib.suppress(port.Disconnected):
            async for incoming in client.messages():
                message = incoming.message
                self.received.append(
                    binding.decode(message.content_type, properties=message.properties, payload=message.payload)
                )
                incoming.acknowledge()

    async def close(self) -> None:
        await self._resources.aclose()

    def rejected_update(self) -> event.CloudEvent:
        return status_update("never", data=b"x" * LIMIT)


@contextlib.asynccontextmanager
async def mqtt_rig(broker: Broker) -> AsyncIterator[Rig]:
    """Run the rig on a running broker."""
    rig = MqttRig(broker)
    await rig.listen()
    try:
        yield rig
    finally:
        await rig.close()
