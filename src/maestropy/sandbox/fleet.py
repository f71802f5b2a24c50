"""Run a fleet on one computer: PostgreSQL, a server process, clusters, and an agent on each of them."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.sandbox.cluster_agent import run_agent
from maestropy.sandbox.errors import SandboxError
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.sandbox.mosquitto import Mosquitto
from maestropy.sandbox.postgres import EmbeddedPostgres
from maestropy.sandbox.server_process import Ports, ServerProcess
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.errors import AlreadyExists
from maestropy.store.dsn import Dsn
from maestropy.telemetry import tracing


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """Options of a fleet."""

    folder: Path
    """The folder of data and logs; data of an earlier run is used again."""
    consumers: tuple[str, ...] = ("cluster1",)
    """The consumers; each gets one cluster and one agent."""
    kubeconfig: Path | None = None
    """An existing cluster for the first consumer, in place of a sandbox cluster."""
    ports: Ports | None = None
    """The ports of the server; free ports if None."""
    source: str = "local"
    """The source ID of the client."""
    broker: Literal["grpc", "mqtt"] = "grpc"
    """The message broker: the gRPC broker of the server, or a Mosquitto that is started too."""
    is_ephemeral: bool = False
    """Whether the data may be lost: PostgreSQL starts faster and does not fsync."""
    agent_tracer: tracing.Tracer = tracing.OFF
    """What takes the spans of the agents, which run in this process."""
    progress: Callable[[str], None] = field(default=lambda _: None)
    """Called with the name of each component that starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A running fleet."""

    server: ServerProcess
    client: AsyncMaestro
    kubeconfigs: Mapping[str, Path]
    """The kubeconfig of each cluster, by consumer."""
    dsn: Dsn
    """The database."""
    folder: Path
    mqtt_url: str = ""
    """The MQTT broker, if there is one."""

    @property
    def api_url(self) -> str:
        """The REST endpoint."""
        return f"http://127.0.0.1:{self.server.ports.rest}"

    @property
    def grpc_url(self) -> str:
        """The gRPC endpoint for sources."""
        return f"127.0.0.1:{self.server.ports.sources}"

    @property
    def broker_url(self) -> str:
        """The gRPC endpoint for agents."""
        return f"127.0.0.1:{self.server.ports.agents}"


@asynccontextmanager
async def fleet(options: FleetOptions) -> AsyncIterator[Fleet]:
    """Run a fleet while entered; all components are ready on entry and are stopped on exit."""
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SandboxError(
            f"{options.folder} cannot be used: {error.strerror}; choose another folder with --data-dir"
        ) from error
    async with AsyncExitStack() as stack:
        options.progress("PostgreSQL")
        dsn = await stack.enter_async_context(
            EmbeddedPostgres(options.folder / "postgres", is_ephemeral=options.is_ephemeral, report=options.progress)
        )
        flags: list[str] = []
        broker: Path | None = None
        mqtt_url = ""
        if options.broker == "mqtt":
            options.progress("Mosquitto")
            mosquitto = await stack.enter_async_context(Mosquitto(options.folder))
            broker, mqtt_url = mosquitto.config, f"127.0.0.1:{mosquitto.port}"
            flags = ["--message-broker-type=mqtt", f"--message-broker-config-file={broker}"]
        options.progress("server")
        server = ServerProcess(dsn, log=options.folder / "server.log", ports=options.ports, flags=flags)
        await stack.enter_async_context(server)
        client = AsyncMaestro(
            environ={},
            api_url=f"http://127.0.0.1:{server.ports.rest}",
            grpc_url=f"127.0.0.1:{server.ports.sources}",
            source=options.source,
        )
        await stack.enter_async_context(client)
        kubeconfigs = {}
        for number, consumer in enumerate(options.consumers):
            options.progress(f"cluster and agent of {consumer}")
            with suppress(AlreadyExists):  # from an earlier run on the same folder
                await client.consumers.create(consumer)
            kubeconfig = options.kubeconfig if number == 0 else None
            address = broker or f"127.0.0.1:{server.ports.agents}"
            kubeconfigs[consumer] = await _join(stack, options, consumer, kubeconfig_file=kubeconfig, broker=address)
        yield Fleet(
            server=server,
            client=client,
            kubeconfigs=kubeconfigs,
            dsn=dsn,
            folder=options.folder,
            mqtt_url=mqtt_url,
        )


async def _join(
    stack: AsyncExitStack, options: FleetOptions, consumer: str, *, kubeconfig_file: Path | None, broker: str | Path
) -> Path:
    """Start a cluster and its agent, and return the kubeconfig."""
    kubeconfig = kubeconfig_file
    if kubeconfig is None:
        cluster = SandboxCluster(directory=options.folder / "clusters" / consumer)
        kubeconfig = (await stack.enter_async_context(cluster)).kubeconfig
    log = stack.enter_context((options.folder / f"agent-{consumer}.log").open("ab", buffering=0))
    journal = Journal(log, clock=clocks.Clock().epoch, verbosity=2)
    tracer = options.agent_tracer
    agent = run_agent(kubeconfig, consumer=consumer, broker=broker, journal=journal, tracer=tracer)
    await stack.enter_async_context(agent)
    return kubeconfig
