"""An agent as tests of the broker use it: it speaks the protocol over MQTT and knows nothing else of the server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from maestropy.transport import port
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt import connection as mqtt
from maestropy.transport.mqtt.agent import MqttTransport
from maestropy.wire import resync
from maestropy.wire.events import event
from tests.peers.peer_build import Programs
from tests.peers.peer_clients import Agent, Lines
from tests.stack import clients

PATIENCE = 60.0


class GoMqttAgent(Agent):
    """The agent of the Go SDK, behind the broker."""

    def __init__(self, programs: Programs, config: Path, *, cluster: str, log: Path) -> None:
        Lines.__init__(self, [programs.fakeagent, "-mqtt-config", config, "-cluster", cluster], log=log)
        self.wait_event("sent", type_ends="spec.resync_request")


class MqttAgent:
    """One agent for one consumer, connected; what it receives is kept until somebody takes it."""

    def __init__(self, connection: port.AgentConnection, consumer: str) -> None:
        self._connection = connection
        self.consumer = consumer
        self.received: list[event.CloudEvent] = []
        self.seen = 0
        """How many specs arrived; questions of the server do not count."""
        self._news = asyncio.Condition()
        # Only its way of writing reports is used, so it needs no server.
        self._pen = clients.Agent.__new__(clients.Agent)
        self._pen.consumer, self._pen.last_sequence = consumer, 0

    async def read(self) -> None:
        with contextlib.suppress(port.Disconnected):
            async for got in self._connection.events():
                async with self._news:
                    self.received.append(got)
                    self.seen += got.type != event.STATUS_RESYNC_REQUEST
                    self._news.notify_all()

    async def take(
        self, match: Callable[[event.CloudEvent], bool] = lambda _: True, *, seconds: float = PATIENCE
    ) -> event.CloudEvent:
        """Wait for an event that matches, and take it; others stay."""
        async with asyncio.timeout(seconds), self._news:
            while True:
                for found in self.received:
                    if match(found):
                        self.received.remove(found)
                        return found
                await self._news.wait()

    async def spec_of(self, resource_id: str, *, version: int | None = None) -> event.CloudEvent:
        return await self.take(lambda e: clients.is_about(e, resource_id, version=version))

    async def tell(self, resource_id: str, version: int, *kinds: str, **changes: Any) -> None:
        """Publish a status."""
        await self._connection.publish(self.report(resource_id, version, *kinds, **changes))

    def report(self, resource_id: str, version: int, *kinds: str, **changes: Any) -> event.CloudEvent:
        """Return a status with the named conditions."""
        return self._pen.report(resource_id, version, *kinds, **changes)

    async def obey(self) -> None:
        """Report every spec as done, and what a server asks for once more; come what may."""
        done: dict[str, int] = {}
        while True:
            got = await self.take(seconds=3600)
            if got.type == event.STATUS_RESYNC_REQUEST:
                known = resync.decode_hashes(got.data)
                lacking = resync.status_resync_response([(each, f"done-{each}") for each in done], known)
            else:
                resource_id = got.text(event.RESOURCE_ID)
                done[resource_id] = got.integer(event.RESOURCE_VERSION)
                lacking = [resource_id]
            for each in lacking:
                with contextlib.suppress(port.Disconnected):  # nobody listens now; who comes back will ask
                    await self.tell(each, done[each], hash=f"done-{each}")

    async def is_resync_answered(self) -> bool:
        """Whether a server answers what was asked last."""
        return await self._connection.is_resync_answered(within=PATIENCE)

    async def resync(self, versions: Mapping[str, int]) -> None:
        """Say what this agent has."""
        await self._connection.publish(question(self.consumer, versions))


def question(consumer: str, versions: Mapping[str, int]) -> event.CloudEvent:
    """Return how the agent of a consumer says what it has."""
    return event.CloudEvent(
        id=clients.new_id(),
        source=f"{consumer}-work-agent",
        type=event.SPEC_RESYNC_REQUEST,
        time=clients.now(),
        extensions={event.CLUSTER_NAME: consumer, event.ORIGINAL_SOURCE: ""},
        data=resync.encode_versions(versions),
    )


@contextlib.asynccontextmanager
async def agent(config: Any, consumer: str, *, problems: list[str] | None = None) -> AsyncIterator[MqttAgent]:
    """Connect an agent by a configuration file."""
    endpoint = mqtt_config.read(config, flag="--workload-source-config").endpoint
    told = problems if problems is not None else []
    transport = MqttTransport(endpoint, consumer=consumer, client_id=f"{consumer}-work-agent", on_problem=told.append)
    async with transport.connect() as connection:
        running = MqttAgent(connection, consumer)
        reader = asyncio.ensure_future(running.read())
        try:
            yield running
        finally:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader


@contextlib.asynccontextmanager
async def raw_client(config: Any) -> AsyncIterator[mqtt.MqttClient]:
    """Connect without any manners of our own."""
    endpoint = mqtt_config.read(config, flag="--workload-source-config").endpoint
    async with mqtt.connect(
        endpoint, client_id="stranger", on_messages_lost=lambda _: pytest.fail("messages were lost")
    ) as client:
        yield client
