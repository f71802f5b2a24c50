"""A whole server on a real PostgreSQL, and clients that speak its protocol: what the tests of this folder play with.

One PostgreSQL serves a test run; every test gets a database of its own, cloned from a migrated template. A server runs
in the test's event loop, where a test can reach into it, or as a process, where it can be killed. Nothing here sleeps
for a fixed time: `tests.waiting` waits for a state.
"""

import asyncio
import contextlib
import io
import itertools
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import asyncpg
import httpx
from prometheus_client import CollectorRegistry

from maestropy.aio import clock as clocks
from maestropy.journal import emit
from maestropy.sandbox import ports
from maestropy.sandbox.postgres import PostgresCluster
from maestropy.server import settings as configuration
from maestropy.server.context import Context
from maestropy.server.main import Server
from maestropy.server.runtime.database import open_replica
from maestropy.server.runtime.wiring import Controllers
from maestropy.server.telemetry.metrics import Metrics
from maestropy.store import dsn as dsns
from maestropy.store.migrations import migrate
from maestropy.store.postgres import pool
from tests import waiting

BASE = "/api/maestro/v1"
LISTENERS = """SELECT pid FROM pg_stat_activity WHERE datname = current_database()
               AND application_name = 'maestropy-listener'"""
"""The connections on which servers listen."""

_TEMPLATE = "template_of_tests"
_numbers = itertools.count(1)
_EVERY_PORT = (
    "--http-server-bindport",
    "--metrics-server-bindport",
    "--health-check-server-bindport",
    "--grpc-server-bindport",
    "--grpc-broker-bindport",
)


class Postgres:
    """The PostgreSQL of a test run."""

    def __init__(self, folder: Path) -> None:
        self._cluster = PostgresCluster(folder, max_connections=300, is_ephemeral=True)
        self._address = self._cluster.start()
        template = replace(self._address, database=_TEMPLATE)
        asyncio.run(self._run(f"CREATE DATABASE {_TEMPLATE}"))
        asyncio.run(migrate.migrate(template))

    def fresh(self) -> dsns.Dsn:
        """Return a migrated, empty database."""
        name = f"test_{next(_numbers)}"
        asyncio.run(self._run(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE} STRATEGY wal_log"))
        return replace(self._address, database=name)

    @contextlib.contextmanager
    def temporary(self) -> Iterator[dsns.Dsn]:
        """Give one for a block. All tests make 12 GB of them; what is removed at once never gets to the disk."""
        address = self.fresh()
        try:
            yield address
        finally:
            asyncio.run(self._run(f"DROP DATABASE IF EXISTS {address.database} WITH (FORCE)"))

    def stop(self) -> None:
        self._cluster.stop()

    @contextlib.asynccontextmanager
    async def outage(self, address: dsns.Dsn) -> AsyncIterator[None]:
        """Take one database away from everybody, and give it back."""
        await self._run(f"ALTER DATABASE {address.database} ALLOW_CONNECTIONS false")
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'"
        await self._run(cut.format(address.database))
        try:
            yield
        finally:
            await self._run(f"ALTER DATABASE {address.database} ALLOW_CONNECTIONS true")

    async def _run(self, statement: str) -> None:
        connection = await asyncpg.connect(**self._address.connect_kwargs())
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[Postgres]:
    """Run a PostgreSQL."""
    server = Postgres(folder)
    try:
        yield server
    finally:
        server.stop()


async def sql(address: dsns.Dsn, statement: str, *params: object) -> list[asyncpg.Record]:
    """Run one statement on a connection of the test's own."""
    connection = await asyncpg.connect(**address.connect_kwargs())
    try:
        found: list[asyncpg.Record] = await connection.fetch(statement, *params)
        return found
    finally:
        await connection.close()


async def value(address: dsns.Dsn, statement: str, *params: object) -> Any:
    """Return the one value a statement yields."""
    return (await sql(address, statement, *params))[0][0]


@dataclass(kw_only=True)
class Running:
    """A server, wherever it runs, as its clients see it."""

    rest: str
    health: str
    sources: str
    agents: str

    @contextlib.asynccontextmanager
    async def http(self) -> AsyncIterator[httpx.AsyncClient]:
        # Nothing here is encrypted; reading all the authorities of this host for every client would take longest.
        async with httpx.AsyncClient(base_url=self.rest + BASE, timeout=waiting.TIMEOUT, verify=False) as client:
            yield client

    async def add_consumer(self, name: str) -> str:
        """Create a consumer over REST and return its id."""
        async with self.http() as client:
            answer = await client.post("/consumers", json={"name": name})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def bundle(self, bundle_id: str) -> dict[str, Any] | None:
        """Return a bundle as REST shows it."""
        async with self.http() as client:
            answer = await client.get(f"/resource-bundles/{bundle_id}")
        if answer.status_code == 404:
            return None
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def bundles(self) -> dict[str, dict[str, Any]]:
        """Return all bundles by their ids."""
        async with self.http() as client:
            answer = await client.get("/resource-bundles", params={"size": 10_000})
        assert answer.status_code == 200, answer.text
        return {item["id"]: item for item in answer.json()["items"]}

    async def probe(self, path: str = "/healthcheck") -> int:
        """Return what a probe gets; 0 when nobody answers."""
        try:
            async with httpx.AsyncClient(timeout=5, verify=False) as client:
                return (await client.get(self.health + path)).status_code
        except httpx.TransportError:
            return 0


@dataclass(kw_only=True)
class InProcess(Running):
    """A server in this event loop."""

    address: dsns.Dsn
    server: Controllers
    context: Context
    log: io.BytesIO
    _stop: Callable[[], Coroutine[Any, Any, None]]

    async def stop(self) -> None:
        """Stop in good order, as after SIGTERM."""
        await self._stop()

    async def sql(self, statement: str, *params: object) -> list[asyncpg.Record]:
        return await sql(self.address, statement, *params)

    async def value(self, statement: str, *params: object) -> Any:
        return await value(self.address, statement, *params)

    async def has_nothing_pending(self) -> bool:
        """Say whether every spec event is dealt with; the mark follows the delivery."""
        return bool(await self.value("SELECT count(*) FROM events WHERE reconciled_date IS NULL") == 0)

    def lines(self, phrase: str) -> list[dict[str, Any]]:
        """Return the journal's records whose message is `phrase`."""
        self.context.journal.flush()
        found = [json.loads(line) for line in self.log.getvalue().splitlines()]
        return [line for line in found if phrase in line.get("msg", line.get("message", ""))]


@contextlib.asynccontextmanager
async def in_process(
    address: dsns.Dsn, change: Callable[[Context], Context] = lambda context: context, /, **flags: str
) -> AsyncIterator[InProcess]:
    """Run a server on free ports until the block ends; underscores in `flags` stand for hyphens."""
    given = {"--server-hostname": "127.0.0.1", "--db-max-open-connections": "8", **dict.fromkeys(_EVERY_PORT, "0")}
    given |= {f"--{name.replace('_', '-')}": text for name, text in flags.items()}
    settings = configuration.load(given, {})
    log = io.BytesIO()
    clock = clocks.Clock()
    async with contextlib.AsyncExitStack() as stack:
        database = await pool.connect(address, max_connections=settings.database.max_open_connections)
        stack.push_async_callback(database.close)
        context = Context(
            database=database,
            journal=emit.Journal(log, clock=clock.epoch, verbosity=2, format="json"),
            metrics=Metrics(CollectorRegistry()),
            instance_id=settings.instance.instance_id,
            clock=clock,
        )
        context = change(context)
        replica = await open_replica(settings, context, dsn=address)
        if replica is not None:
            stack.push_async_callback(replica.close)
        server = Server(settings, context, dsn=address, replica=replica)
        own = await stack.enter_async_context(contextlib.AsyncExitStack())
        own.push_async_callback(server.stop)
        await server.start(own)
        assert server._listeners is not None
        where = server._listeners.addresses()
        watch = asyncio.ensure_future(server.wait())
        try:
            yield InProcess(
                rest=where["rest"],
                health=where["health"],
                sources=where["gRPC for sources"],
                agents=where.get("gRPC for agents", ""),
                address=address,
                server=server.controllers,
                context=context,
                log=log,
                _stop=own.aclose,
            )
            assert not watch.done() or server._task_owner._tasks == {}, "a part of the server has ended"
        finally:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError, ValueError):
                await watch


@dataclass(kw_only=True)
class Process(Running):
    """A server as a process of its own."""

    process: asyncio.subprocess.Process
    log: Path

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)

    async def terminate(self) -> int:
        """Ask it to end and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.wait_for(self.process.wait(), waiting.TIMEOUT)


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on now."""
    return ports.free(count)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a process keeps its data and listens; one started again in the same place is the same server."""

    folder: Path
    ports: list[int] = field(default_factory=lambda: free_ports(len(_EVERY_PORT)))

    @contextlib.asynccontextmanager
    async def run(self, *flags: str) -> AsyncIterator[Process]:
        """Start the server and wait until it is ready; at the end of the block it is ended, if it still runs."""
        log = self.folder / "server.log"
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "maestropy.cli.main",
                "server",
                "--server-hostname=127.0.0.1",
                f"--data-dir={self.folder / 'data'}",
                *(f"{flag}={port}" for flag, port in zip(_EVERY_PORT, self.ports, strict=True)),
                *flags,
                stdout=output,
                stderr=output,
                env={**os.environ, "MAESTRO_DB_DSN": ""},
            )
        host = "127.0.0.1"
        running = Process(
            rest=f"http://{host}:{self.ports[0]}",
            health=f"http://{host}:{self.ports[2]}",
            sources=f"{host}:{self.ports[3]}",
            agents=f"{host}:{self.ports[4]}",
            process=process,
            log=log,
        )
        try:
            await waiting.until(lambda: _is_ready(running), seconds=120, what="readiness")
            yield running
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGTERM)
                await process.wait()


async def _is_ready(running: Process) -> bool:
    assert running.process.returncode is None, running.log.read_text()[-3000:]
    return await running.probe() == 200
