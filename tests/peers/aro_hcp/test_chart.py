"""ARO HCP's charts start our server, migration and agent with their flags as they are."""

import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from maestropy import AsyncMaestro, Work
from tests import certificates, waiting
from tests.faults import fault_programs
from tests.peers.aro_hcp import chart, surroundings
from tests.peers.aro_hcp.tls_front import tls_front
from tests.peers.aro_hcp.token_endpoint import ASSERTION, TokenEndpoint, token_endpoint
from tests.peers.mosquitto import Mosquitto
from tests.peers.peer_processes import free_ports
from tests.peers.peer_servers import PYTHON_CLI
from tests.peers.postgres.postgres_servers import PostgresServer

pytestmark = [pytest.mark.peers, pytest.mark.timeout(180)]
CONSUMER = "hcp-underlay-testregion-mgmt-1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@dataclass(kw_only=True)
class Region:
    """One region: its database, broker and token endpoint, and the secrets of server and agent."""

    folder: Path
    database: PostgresServer
    database_port: int
    """Where the database takes connections over TLS."""
    broker: Mosquitto
    entra: TokenEndpoint
    authority: certificates.Authority

    def __post_init__(self) -> None:
        self.environ = {**chart.SERVER_ENVIRONMENT, **self.entra.environ(self.folder, self.authority)}
        server, agent = (self.authority.issue(cn=name) for name in (surroundings.SERVER_NAME, CONSUMER))
        for name, files, topic in (("server", server, "+"), ("agent", agent, CONSUMER)):
            surroundings.write_secrets(
                self.folder / name, database_port=self.database_port, broker=self.broker, files=files, topic=topic
            )

    def migrate(self) -> subprocess.CompletedProcess[str]:
        """Run the init container of the server's chart."""
        command = chart.rendered(chart.MIGRATION, secrets=self.folder / "server", values={})
        environ = {**os.environ, **self.environ}
        return subprocess.run(
            [*PYTHON_CLI, *command], capture_output=True, text=True, env=environ, timeout=60, check=False
        )

    @contextlib.asynccontextmanager
    async def server(self) -> AsyncIterator["Server"]:
        """Run a pod of the server's chart, on loopback."""
        http, grpc, health, metrics = free_ports(4)
        values = {"pod": "maestro-0", "hostname": "127.0.0.1", "http": http, "grpc": grpc, "health": health}
        flags = chart.rendered(chart.SERVER, secrets=self.folder / "server", values=values)
        program = fault_programs.Program(
            name="server",
            # The chart leaves the port of metrics at its default, which another process may have.
            command=[*PYTHON_CLI, *flags, f"--metrics-server-bindport={metrics}"],
            log=self.folder / "server.log",
            ready=lambda: is_healthy(f"http://127.0.0.1:{health}/healthcheck"),
            env=self.environ,
        )
        async with fault_programs.programs(program):
            yield Server(rest_url=f"http://127.0.0.1:{http}", grpc_url=f"127.0.0.1:{grpc}", program=program)

    def agent(self, kubeconfig: Path) -> fault_programs.Program:
        """Return the pod of the agent's chart, for a cluster that it is not in."""
        (port,) = free_ports(1)
        flags = chart.rendered(chart.AGENT, secrets=self.folder / "agent", values={"consumer": CONSUMER})
        return fault_programs.Program(
            name="agent",
            command=[*PYTHON_CLI, *flags, f"--kubeconfig={kubeconfig}", f"--listen=127.0.0.1:{port}"],
            log=self.folder / "agent.log",
            ready=lambda: is_healthy(f"https://127.0.0.1:{port}/healthz"),
            env=self.environ,
        )


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server."""

    rest_url: str
    grpc_url: str
    program: fault_programs.Program

    def client(self) -> AsyncMaestro:
        return AsyncMaestro(environ={}, api_url=self.rest_url, grpc_url=self.grpc_url, source="cs")


async def is_healthy(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        async with httpx.AsyncClient(verify=False, timeout=5) as client:
            return (await client.get(url)).status_code == 200
    return False


@pytest.fixture
def region(tmp_path: Path, shown_logs: list[Path]) -> Iterator[Region]:
    authority = certificates.make_ca(tmp_path)
    with (
        surroundings.entra_postgres() as database,
        tls_front(authority, port=database.port) as database_port,
        surroundings.event_grid(tmp_path / "event-grid", authority) as broker,
        token_endpoint(authority, lambda token: surroundings.set_password(database, token)) as entra,
    ):
        made = Region(
            folder=tmp_path,
            database=database,
            database_port=database_port,
            broker=broker,
            entra=entra,
            authority=authority,
        )
        logs = [broker.log, tmp_path / "server.log", tmp_path / "agent.log"]
        for log in logs[1:]:
            log.touch()
        shown_logs.extend(logs)
        yield made
        for log in logs:
            shown_logs.remove(log)


def config_map(name: str, data: Mapping[str, str] | None = None) -> Work:
    meta = {"name": name, "namespace": "default"}
    return Work(name).add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": dict(data or {})})


async def test_server_migration_and_agent_start_with_the_flags_of_the_charts(region: Region) -> None:
    migrated = region.migrate()
    assert migrated.returncode == 0, migrated.stderr
    kube = fault_programs.kube(region.folder, "management")
    agent = region.agent(kube.kubeconfig)
    async with region.server() as server, fault_programs.programs(kube), server.client() as client:
        await client.consumers.create(CONSUMER)
        works = client.works(CONSUMER)
        # More than the broker would keep for an agent that is away.
        for number in range(120):
            await works.create(config_map(f"w{number}"))
        async with fault_programs.programs(agent):
            for number in range(120):
                await works.wait_for(f"w{number}", "Applied", timeout=90)
            await works.delete("w0", wait=True, timeout=60)

        # A new token, with which nobody has logged in, does not touch the connections that there are.
        before, issued = surroundings.backends(region.database), region.entra.issued
        assert region.migrate().returncode == 0
        assert region.entra.issued > issued
        assert (await works.get("w1")).version == 1
        assert before & surroundings.backends(region.database)

        # New connections log in with the newest token.
        issued = region.entra.issued
        region.database.sql(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{surroundings.USER}'"
        )
        await waiting.until(lambda: region.entra.issued > issued, what="a new token", seconds=30)
        await waiting.until(lambda: bool(surroundings.backends(region.database)), what="a login with it", seconds=30)
        await works.create(config_map("later"))
        log = server.program.log.read_text()
        assert "eyJ.token" not in log
        assert ASSERTION not in log


def test_refused_token_is_explained(region: Region) -> None:
    region.entra.is_refusing = True
    refused = region.migrate()
    assert refused.returncode == 1
    assert "AADSTS700213: no matching identity record" in refused.stderr
    assert "check the identity of the pod (AZURE_CLIENT_ID" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert ASSERTION not in refused.stderr


def test_database_that_rejects_the_token_is_explained(region: Region) -> None:
    assert region.migrate().returncode == 0
    region.database.sql(f'ALTER ROLE "{surroundings.USER}" NOLOGIN')
    rejected = region.migrate()
    assert rejected.returncode == 1
    assert "is not permitted to log in" in rejected.stderr
    assert "eyJ.token" not in rejected.stderr
