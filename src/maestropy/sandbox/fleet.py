"""The whole system on one computer: PostgreSQL, a server, clusters, and an agent on each of them."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.sandbox.cluster_agent import agent_on
from maestropy.sandbox.errors import SandboxError
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.sandbox.mosquitto import Mosquitto
from maestropy.sandbox.postgres import EmbeddedPostgres
from maestropy.sandbox.process import Ports, ServerProcess
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.errors import AlreadyExists
from maestropy.store.dsn import Dsn


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to start."""

    folder: Path
    """Where everything is kept; what is there already is taken up again."""
    consumers: tuple[str, ...] = ("cluster1",)
    """One cluster and one agent for each."""
    kubeconfig: Path | None = None
    """A cluster of yours for the first consumer, in place of a sandbox."""
    ports: Ports | None = None
    """Where the server listens; free ports if not given."""
    source: str = "local"
    """The source id of the client."""
    broker: Literal["grpc", "mqtt"] = "grpc"
    """What carries events between server and agents: the server itself, or a Mosquitto that is started too."""
    is_ephemeral: bool = False
    """Whether nobody will miss the data: the database starts sooner and forces nothing to the disk."""
    progress: Callable[[str], None] = field(default=lambda _: None)
    """Told what is being started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A running system."""

    server: ServerProcess
    client: AsyncMaestro
    kubeconfigs: Mapping[str, Path]
    """The way to each cluster, by consumer."""
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
async def fleet(wanted: Wanted) -> AsyncIterator[Fleet]:
    """Run a fleet while entered; everything is ready then, and stopped in good order afterwards."""
    try:
        wanted.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SandboxError(
            f"{wanted.folder} cannot be used: {error.strerror}; choose another folder with --data-dir"
        ) from error
    async with AsyncExitStack() as stack:
        wanted.progress("PostgreSQL")
        dsn = await stack.enter_async_context(
            EmbeddedPostgres(wanted.folder / "postgres", is_ephemeral=wanted.is_ephemeral, report=wanted.progress)
        )
        flags: list[str] = []
        broker: Path | None = None
        mqtt_url = ""
        if wanted.broker == "mqtt":
            wanted.progress("Mosquitto")
            mosquitto = await stack.enter_async_context(Mosquitto(wanted.folder))
            broker, mqtt_url = mosquitto.config, f"127.0.0.1:{mosquitto.port}"
            flags = ["--message-broker-type=mqtt", f"--message-broker-config-file={broker}"]
        wanted.progress("server")
        server = ServerProcess(dsn, log=wanted.folder / "server.log", ports=wanted.ports, flags=flags)
        await stack.enter_async_context(server)
        client = AsyncMaestro(
            environ={},
            api_url=f"http://127.0.0.1:{server.ports.rest}",
            grpc_url=f"127.0.0.1:{server.ports.sources}",
            source=wanted.source,
        )
        await stack.enter_async_context(client)
        kubeconfigs = {}
        for number, consumer in enumerate(wanted.consumers):
            wanted.progress(f"cluster and agent of {consumer}")
            with suppress(AlreadyExists):  # from an earlier run on the same folder
                await client.consumers.create(consumer)
            given = wanted.kubeconfig if number == 0 else None
            way = broker or f"127.0.0.1:{server.ports.agents}"
            kubeconfigs[consumer] = await _join(stack, wanted, consumer, given=given, broker=way)
        yield Fleet(
            server=server,
            client=client,
            kubeconfigs=kubeconfigs,
            dsn=dsn,
            folder=wanted.folder,
            mqtt_url=mqtt_url,
        )


async def _join(
    stack: AsyncExitStack, wanted: Wanted, consumer: str, *, given: Path | None, broker: str | Path
) -> Path:
    """Add one cluster with its agent."""
    kubeconfig = given
    if kubeconfig is None:
        cluster = SandboxCluster(directory=wanted.folder / "clusters" / consumer)
        kubeconfig = (await stack.enter_async_context(cluster)).kubeconfig
    log = stack.enter_context((wanted.folder / f"agent-{consumer}.log").open("ab", buffering=0))
    journal = Journal(log, clock=clocks.Clock().epoch, verbosity=2)
    await stack.enter_async_context(agent_on(kubeconfig, consumer=consumer, broker=broker, journal=journal))
    return kubeconfig
