"""Run an agent in this process, on a sandbox cluster or on the cluster of a kubeconfig."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from maestropy.agent.runtime.wiring import Agent, AgentConfig, AgentDependencies
from maestropy.agent.telemetry.work_spans import WorkSpans
from maestropy.aio import backoff
from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config import load as config
from maestropy.sandbox.errors import SandboxError
from maestropy.telemetry import tracing
from maestropy.transport import port
from maestropy.transport.grpc.agent import GrpcTransport
from maestropy.transport.grpc.client import GrpcEndpoint
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt.agent import MqttTransport

_READY_SECONDS = 120.0


@asynccontextmanager
async def run_agent(
    kubeconfig: Path,
    *,
    consumer: str,
    broker: str | Path,
    journal: Journal,
    clock: clocks.Clock = clocks.Clock(),  # noqa: B008 - immutable
    tracer: tracing.Tracer = tracing.OFF,
) -> AsyncIterator[Agent]:
    """Run an agent for `consumer` on the cluster of `kubeconfig`; entered when the agent is connected to the server.

    `broker` is the address of the server's gRPC port for agents, or the config file of an MQTT broker.
    """
    settings = ClientSettings(qps=0)
    async with KubeClient(config.from_kubeconfig([kubeconfig]), settings=settings) as client:
        agent = Agent(
            AgentDependencies(
                client=client,
                transport=_transport(broker, consumer=consumer, journal=journal),
                journal=journal,
                jitter=backoff.jitter,
                clock=clock,
                new_id=clocks.new_id,
                spans=WorkSpans(tracer),
            ),
            AgentConfig(consumer=consumer, client_id=f"{consumer}-work-agent"),
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


def _transport(broker: str | Path, *, consumer: str, journal: Journal) -> port.Transport:
    if isinstance(broker, str):
        return GrpcTransport(GrpcEndpoint(url=broker, heartbeat_timeout_seconds=25), consumer=consumer)
    endpoint = mqtt_config.read(broker, flag="--broker").endpoint
    return MqttTransport(endpoint, consumer=consumer, client_id=f"{consumer}-work-agent", on_problem=journal.warning)


async def _until_ready(agent: Agent) -> None:
    while not agent.is_ready:  # noqa: ASYNC110 - readiness has several causes; polling is cheap
        await asyncio.sleep(0.02)
