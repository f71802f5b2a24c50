"""The cases of every medium, over a real Mosquitto; the other end is a client that listens as a server does."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from conformance import transport_cases
from conformance.transport_cases import CONSUMER, Case, Rig, report
from mosquitto import Mosquitto, mosquitto
from stack import harness

from pymaestro.transport import base, mqtt, mqtt_config
from pymaestro.transport.mqtt_agent import MqttMedium
from pymaestro.wire import event, topics
from pymaestro.wire import mqtt as binding

pytestmark = [pytest.mark.peers, pytest.mark.timeout(60)]
LIMIT = 900_000


class MqttRig:
    """A broker with something that listens like a server behind it."""

    def __init__(self, broker: Mosquitto) -> None:
        self.heard: list[event.Event] = []
        self._broker = broker
        self._endpoint = mqtt_config.read(broker.config(), flag="--x").endpoint
        self._life: contextlib.AsyncExitStack | None = None
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
        assert self._life is not None
        self._broker.stop()
        await self._life.aclose()

    async def come_back(self) -> None:
        if self._broker.process is None:
            self._broker.start()
        self._life = contextlib.AsyncExitStack()
        self._client = await self._life.enter_async_context(mqtt.connect(self._endpoint, client_id="maestro"))
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

    def unacceptable(self) -> event.Event:
        return report("never", data=b"x" * LIMIT)


@contextlib.asynccontextmanager
async def rigged(broker: Mosquitto) -> AsyncIterator[Rig]:
    rig = MqttRig(broker)
    await rig.come_back()
    try:
        yield rig
    finally:
        assert rig._life is not None
        await rig._life.aclose()


@pytest.mark.parametrize("case", transport_cases.CASES.values(), ids=transport_cases.CASES.keys())
def test_mosquitto(case: Case, tmp_path: Path) -> None:
    async def scenario(broker: Mosquitto) -> None:
        async with rigged(broker) as rig:
            await case(rig)

    with mosquitto(tmp_path / "mosquitto", settings=f"max_packet_size {LIMIT}") as broker:
        harness.play(scenario(broker))
