"""A cluster with an agent on it, for laptops: a sandbox Kubernetes or one of yours, and an agent in this process."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from maestropy.agent.agent import Agent, Character, Surroundings
from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.kube import config
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.sandbox.errors import SandboxError
from maestropy.transport import base, mqtt_config
from maestropy.transport.grpc_agent import GrpcMedium
from maestropy.transport.grpc_client import Endpoint
from maestropy.transport.mqtt_agent import MqttMedium

_READY_SECONDS = 120.0


@asynccontextmanager
async def agent_on(kubeconfig: Path, *, consumer: str, broker: str | Path, journal: Journal) -> AsyncIterator[Agent]:
    """Run an agent for `consumer` on the cluster of `kubeconfig`; entered when it hears the server.

    `broker` is the address of the server's gRPC port for agents, or the config file of an MQTT broker.
    """
    settings = ClientSettings(qps=0)
    async with KubeClient(config.from_kubeconfig([kubeconfig]), settings=settings) as client:
        agent = Agent(
            Surroundings(
                client=client,
                medium=_medium(broker, consumer=consumer, journal=journal),
                journal=journal,
                jitter=random.random,
                clock=clocks.Clock(),
                new_id=clocks.new_id,
            ),
            Character(consumer=consumer, client_id=f"{consumer}-work-agent"),
        )
        async with asyncio.TaskGroup() as group:
            running = group.create_task(agent.run(), name=f"agent {consumer}")
            try:
                async with asyncio.timeout(_READY_SECONDS):
                    await _until_ready(agent)
                yield agent
            except TimeoutError as error:
                raise SandboxError(f"the agent of {consumer} did not reach the server at {broker}") from error
            finally:
                running.cancel()


def _medium(broker: str | Path, *, consumer: str, journal: Journal) -> base.Medium:
    if isinstance(broker, str):
        return GrpcMedium(Endpoint(url=broker, silence_seconds=25), consumer=consumer)
    endpoint = mqtt_config.read(broker, flag="--broker").endpoint
    return MqttMedium(endpoint, consumer=consumer, client_id=f"{consumer}-work-agent", on_problem=journal.warning)


async def _until_ready(agent: Agent) -> None:
    while not agent.is_ready:  # noqa: ASYNC110 - readiness has several causes; looking costs nothing
        await asyncio.sleep(0.02)
