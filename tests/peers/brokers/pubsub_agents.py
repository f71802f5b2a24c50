"""An agent as tests of Pub/Sub use it: it speaks the protocol over Pub/Sub and knows nothing else of the server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from maestropy.transport.pubsub import config as pubsub_config
from maestropy.transport.pubsub.agent import PubsubTransport
from tests.peers.brokers.mqtt_agents import MqttAgent


def transport(config: Path, consumer: str, *, problems: list[str] | None = None) -> PubsubTransport:
    """Return the transport of an agent, by a configuration file."""
    read = pubsub_config.read(config, flag="--workload-source-config", role="agent", environ={})
    told = problems if problems is not None else []
    return PubsubTransport(read.endpoint, consumer=consumer, client_id=f"{consumer}-work-agent", on_problem=told.append)


@contextlib.asynccontextmanager
async def agent(config: Path, consumer: str, *, problems: list[str] | None = None) -> AsyncIterator[MqttAgent]:
    """Connect an agent by a configuration file."""
    async with transport(config, consumer, problems=problems).connect() as connection:
        running = MqttAgent(connection, consumer)
        reader = asyncio.create_task(running.read(), name=f"agent {consumer}")
        try:
            yield running
        finally:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader
