"""The whole system for a soak: PostgreSQL, two servers, a broker if wanted, clusters with real and with light agents.

Every way between two parts leads through a proxy, so that the network can fail too. The doors of the servers lead to
whichever server lives, as a load balancer would.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from maestropy.transport import port as base
from maestropy.transport.grpc.agent import GrpcTransport
from maestropy.transport.grpc.client import GrpcEndpoint
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt.agent import MqttTransport
from tests.faults import fault_programs
from tests.faults.fault_ledger import Ledger
from tests.faults.fault_parties import LightAgent, Listener, SourceClient, running, source_client
from tests.faults.fault_programs import KubeProgram, MosquittoProgram, Postgres, Program, ServerProgram
from tests.faults.fault_proxy import FaultProxy, proxies
from tests.faults.fault_world import FLAGS, HEARTBEAT_TIMEOUT_SECONDS

REAL = ("real1", "real2")
LIGHT = ("light1", "light2", "light3")


@dataclass(kw_only=True)
class Rig:
    """Everything that runs."""

    folder: Path
    ledger: Ledger
    postgres: Postgres
    servers: list[ServerProgram]
    kubes: Mapping[str, KubeProgram]
    agents: Mapping[str, Program]
    light: list[LightAgent]
    broker: MosquittoProgram | None
    client: SourceClient
    listener: Listener
    to_database: FaultProxy
    to_sources: FaultProxy
    to_agents: FaultProxy
    """To the servers' port for agents, or to the broker."""

    def balance(self) -> None:
        """Let the doors lead to a server that lives."""
        alive = [server for server in self.servers if server.is_alive] or self.servers
        self.to_sources.target = _target(alive[0].sources)
        if self.broker is None:
            self.to_agents.target = _target(alive[-1].agents)

    async def objects(self) -> Mapping[str, Mapping[str, str]]:
        """Return what the clusters hold."""
        found: dict[str, Mapping[str, str]] = {agent.consumer: dict(agent.objects) for agent in self.light}
        for consumer, kube in self.kubes.items():
            found[consumer] = await kube.config_maps()
        return found

    def processes(self) -> list[Program]:
        """Return every process but PostgreSQL's."""
        broker = [self.broker] if self.broker else []
        return [*self.servers, *self.agents.values(), *self.kubes.values(), *broker]


@contextlib.asynccontextmanager
async def rig(folder: Path, postgres: Postgres, *, with_broker: bool) -> AsyncIterator[Rig]:
    """Build and run everything."""
    ledger = Ledger()
    broker = fault_programs.mosquitto(folder) if with_broker else None
    nowhere = ("127.0.0.1", 9)
    async with contextlib.AsyncExitStack() as stack:
        to_database, to_sources, to_agents = await stack.enter_async_context(
            proxies(postgres.socket, nowhere, ("127.0.0.1", broker.port) if broker else nowhere)
        )
        flags = list(FLAGS)
        if broker:
            config = fault_programs.mqtt_config(folder / "server-mqtt.yaml", to_agents.port, share="maestro")
            flags += ["--message-broker-type=mqtt", f"--message-broker-config-file={config}"]
            await stack.enter_async_context(fault_programs.programs(broker))
        dsn = postgres.behind(to_database.port)
        servers = [fault_programs.server(folder, dsn, *flags, name=name) for name in ("one", "two")]
        await stack.enter_async_context(fault_programs.programs(*servers))
        for consumer in (*REAL, *LIGHT):
            await servers[0].running().add_consumer(consumer)
        kubes = {consumer: fault_programs.kube(folder, consumer) for consumer in REAL}
        await stack.enter_async_context(fault_programs.programs(*kubes.values()))
        way = _way(folder, to_agents, is_mqtt=broker is not None)
        agents = {
            consumer: fault_programs.agent(folder, consumer, kubeconfig=kubes[consumer].kubeconfig, way=way)
            for consumer in REAL
        }
        light = [
            LightAgent(
                _transport(folder, to_agents, consumer, is_mqtt=broker is not None),
                consumer=consumer,
                ledger=ledger,
                in_order=broker is None,
            )
            for consumer in LIGHT
        ]
        built = Rig(
            folder=folder,
            ledger=ledger,
            postgres=postgres,
            servers=servers,
            kubes=kubes,
            agents=agents,
            light=light,
            broker=broker,
            client=await stack.enter_async_context(source_client(to_sources.address, ledger=ledger)),
            listener=Listener([to_sources.address], ledger),
            to_database=to_database,
            to_sources=to_sources,
            to_agents=to_agents,
        )
        built.balance()
        await stack.enter_async_context(fault_programs.programs(*agents.values()))
        await stack.enter_async_context(running(*(agent.run for agent in light), built.listener.run))
        yield built


def _target(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def _way(folder: Path, door: FaultProxy, *, is_mqtt: bool) -> list[str]:
    if is_mqtt:
        config = fault_programs.mqtt_config(folder / "agent-mqtt.yaml", door.port)
        return ["--workload-source-driver=mqtt", f"--workload-source-config={config}"]
    config = folder / "agent-grpc.yaml"
    config.write_text(f"url: {door.address}\nserverHealthinessTimeout: {HEARTBEAT_TIMEOUT_SECONDS:g}s\n")
    return [f"--workload-source-config={config}"]


def _transport(folder: Path, door: FaultProxy, consumer: str, *, is_mqtt: bool) -> base.Transport:
    if not is_mqtt:
        return GrpcTransport(
            GrpcEndpoint(url=door.address, heartbeat_timeout_seconds=HEARTBEAT_TIMEOUT_SECONDS), consumer=consumer
        )
    config = fault_programs.mqtt_config(folder / f"{consumer}-mqtt.yaml", door.port)
    endpoint = mqtt_config.read(config, flag="--workload-source-config").endpoint
    return MqttTransport(endpoint, consumer=consumer, client_id=f"{consumer}-work-agent", on_problem=print)
