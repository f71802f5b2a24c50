"""The rig of the medium's cases for MQTT brokers: the other end is a client that listens as a server does."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from conformance.transport_cases import CONSUMER, Rig, report

from maestropy.transport import base, mqtt, mqtt_config
from maestropy.transport.mqtt_agent import MqttMedium
from maestropy.wire import event, topics
from maestropy.wire import mqtt as binding

LIMIT = 900_000
"""The packet size to which the broker is limited."""


@dataclass(frozen=True, kw_only=True)
class Broker:
    """A broker that can be stopped and started again at the same address; it runs already."""

    config: Path
    start: Callable[[], Awaitable[None]]
    stop: Callable[[], Awaitable[None]]


class MqttRig:
    """A broker with something that listens like a server behind it."""

    def __init__(self, broker: Broker) -> None:
        self.heard: list[event.Event] = []
        self._broker = broker
        self._endpoint = mqtt_config.read(broker.config, flag="--x").endpoint
        self._life = contextlib.AsyncExitStack()
        self._client: mqtt.Client | None = None

    @property
    def medium(self) -> base.Medium:
        endpoint = replace(self._endpoint, dial_seconds=2.0)
        return MqttMedium(endpoint, consumer=CONSUMER, client_id="agent", on_problem=pytest.fail)

    async def send(self, sent: event.Event) -> None:
        assert self._client is not None
        topic = topics.source_events(self._endpoint.topics, source="maestro", consumer=CONSUMER)
        await self._client.publish(topic, binding.encode(sent))

    async def hang_up(self) -> None:
        await self.vanish()
        await self.come_back()

    async def vanish(self) -> None:
        await self._broker.stop()
        await self._life.aclose()

    async def come_back(self) -> None:
        await self._broker.start()
        await self.listen()

    async def listen(self) -> None:
        self._client = await self._life.enter_async_context(
            mqtt.connect(self._endpoint, client_id="maestro", on_relief=pytest.fail)
        )
        await self._client.subscribe([self._endpoint.topics.agent_events])
        listening = asyncio.ensure_future(self._listen(self._client))
        self._life.push_async_callback(asyncio.wait, [listening])
        self._life.callback(listening.cancel)

    async def _listen(self, client: mqtt.Client) -> None:
        with contextlib.suppress(base.Disconnected):
            async for incoming in client.messages():
                message = incoming.message
                self.heard.append(
                    binding.decode(message.content_type, properties=message.properties, payload=message.payload)
                )
                incoming.acknowledge()

    async def end(self) -> None:
        await self._life.aclose()

    def unacceptable(self) -> event.Event:
        return report("never", data=b"x" * LIMIT)


@contextlib.asynccontextmanager
async def rigged(broker: Broker) -> AsyncIterator[Rig]:
    """Play with a broker that runs."""
    rig = MqttRig(broker)
    await rig.listen()
    try:
        yield rig
    finally:
        await rig.end()
