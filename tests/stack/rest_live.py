"""The REST API on a loopback port over an embedded PostgreSQL: what the tests of this folder talk to.

The server runs in a thread with a loop of its own; tests are plain HTTP clients, and write rows by SQL as the other
stages would.
"""

import asyncio
import contextlib
import io
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import uvicorn
from prometheus_client import CollectorRegistry

from maestropy.aio import clock
from maestropy.journal import Journal
from maestropy.sandbox.postgres import PostgresCluster
from maestropy.server.api.rest.app import create_app
from maestropy.server.api.rest.dependencies import RestDependencies
from maestropy.server.context import Context
from maestropy.server.controllers.operator_actions import OperatorActions
from maestropy.server.decide.rejection import Rejection
from maestropy.server.telemetry.metrics import Metrics
from maestropy.store import dsn, rows
from maestropy.store.migrations import migrate
from maestropy.store.postgres import pool

BASE = "/api/maestro/v1"
DATA = Path(__file__).parent.parent / "data"
CREATED = datetime(2026, 8, 20, 10, 0, 0, tzinfo=UTC)


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[dsn.Dsn]:
    """Run a PostgreSQL with our schema."""
    cluster = PostgresCluster(folder, max_connections=100, is_ephemeral=True)
    try:
        address = cluster.start()
        asyncio.run(migrate.migrate(address))
        yield address
    finally:
        cluster.stop()


@dataclass
class Counted:
    """Metrics that remember."""

    requests: list[tuple[str, str, int]] = field(default_factory=list)

    def request_finished(self, *, method: str, path: str, code: int, seconds: float) -> None:
        assert seconds >= 0
        self.requests.append((method, path, code))


@dataclass
class Live:
    """A running API and everything around it that a test looks at."""

    address: dsn.Dsn
    url: str
    metrics: Counted
    log: io.BytesIO
    deleted: list[tuple[str, str]]
    stop_database: Callable[[], None]

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=20, **options)

    def sql(self, statement: str, *params: object) -> list[asyncpg.Record]:
        """Run one statement on a connection of the test's own."""

        async def run() -> list[asyncpg.Record]:
            connection = await asyncpg.connect(**self.address.connect_kwargs())
            try:
                found: list[asyncpg.Record] = await connection.fetch(statement, *params)
                return found
            finally:
                await connection.close()

        return asyncio.run(run())

    def clear(self) -> None:
        self.sql("TRUNCATE resources, consumers, renditions CASCADE")

    def lines(self) -> list[dict[str, Any]]:
        """Return the journal so far."""
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    def add_consumer(self, name: str = "cluster1") -> None:
        self.sql(
            "INSERT INTO consumers (id, name, created_at) VALUES ($1, $1, $2) ON CONFLICT DO NOTHING", name, CREATED
        )

    def add_bundles(self, count: int, **changes: Any) -> list[str]:
        """Insert `count` bundles in the way a Go server does, the jsonb columns only; return their ids in order."""
        self.add_consumer()
        ids = [f"{changes.get('prefix', 'bundle')}-{number:05d}" for number in range(count)]
        spec = payload(**changes)
        stamps = [CREATED + timedelta(milliseconds=number // 3) for number in range(count)]
        self.sql(
            """INSERT INTO resources
                (id, name, source, consumer_name, version, type, payload, status, created_at, updated_at)
            SELECT id, id, $2, 'cluster1', $3, '', $4::jsonb, $5::jsonb, stamp, stamp
            FROM unnest($1::text[], $6::timestamptz[]) AS new (id, stamp)""",
            ids,
            changes.get("source", "mw-client-example"),
            changes.get("version", 1),
            json.dumps(spec),
            json.dumps(changes.get("status")),
            stamps,
        )
        return ids


def payload(**changes: Any) -> dict[str, Any]:
    """Return a stored spec event."""
    spec: dict[str, Any] = json.loads((DATA / "rest_spec_event.json").read_text())
    if "labels" in changes:
        spec["metadata"]["labels"] = changes["labels"]
    if "filler" in changes:
        spec["data"]["manifests"][0]["data"] = {"filler": changes["filler"]}
    return spec


def status() -> dict[str, Any]:
    """Return a stored status event."""
    found: dict[str, Any] = json.loads((DATA / "rest_status_event.json").read_text())
    return found


@contextlib.contextmanager
def live(address: dsn.Dsn, **options: Any) -> Iterator[Live]:
    """Serve the API until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    running = _Running(address, listener, options)
    thread = threading.Thread(target=lambda: asyncio.run(running.main()), name="rest-api")
    thread.start()
    try:
        assert running.ready.wait(60), "the API did not start"
        yield Live(
            address=address,
            url=f"http://127.0.0.1:{listener.getsockname()[1]}",
            metrics=running.metrics,
            log=running.log,
            deleted=running.deleted,
            stop_database=running.stop_database,
        )
    finally:
        running.server.should_exit = True
        thread.join(20)
        listener.close()


class _Running:
    def __init__(self, address: dsn.Dsn, listener: socket.socket, options: Mapping[str, Any]) -> None:
        self._address = address
        self._listener = listener
        self._options = dict(options)
        self._pool_size = self._options.pop("pool_size", 5)
        self.ready = threading.Event()
        self.metrics = Counted()
        self.log = io.BytesIO()
        self.deleted: list[tuple[str, str]] = []
        self.server: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._database: pool.Database | None = None

    async def main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._database = await pool.connect(self._address, max_connections=self._pool_size)
        now = clock.Clock()
        journal = Journal(self.log, clock=now.epoch, verbosity=4, format="json")
        context = Context(
            database=self._database,
            journal=journal,
            metrics=Metrics(CollectorRegistry()),
            instance_id="rest",
            clock=now,
        )
        deps = RestDependencies(
            database=self._database,
            journal=journal,
            actions=OperatorActions(context, keeps_history=True, sees_agents=True),
            metrics=self.metrics,
            mark_deleting=self._mark_deleting,
            clock=now,
            new_id=clock.new_id,
            **self._options,
        )
        config = uvicorn.Config(create_app(deps), log_level="critical", lifespan="on", http="httptools", loop="none")
        self.server = uvicorn.Server(config)
        starting = asyncio.ensure_future(self.server.serve(sockets=[self._listener]))
        while not self.server.started and not starting.done():
            await asyncio.sleep(0.01)
        self.ready.set()
        await starting
        await self._database.close()

    def stop_database(self) -> None:
        """Close the pool under the server's feet."""
        assert self._loop is not None
        assert self._database is not None
        asyncio.run_coroutine_threadsafe(self._database.close(), self._loop).result(10)

    async def _mark_deleting(
        self,
        resource_id: str,
        operation_id: str,
        *,
        sources: frozenset[str] | None = None,
        requester: rows.Requester = rows.UNKNOWN_REQUESTER,
    ) -> Rejection | None:
        del requester
        assert self._database is not None
        assert sources is None
        self.deleted.append((resource_id, operation_id))
        async with self._database.connection() as connection:
            statement = "UPDATE resources SET deleted_at = now() WHERE id = $1 AND deleted_at IS NULL"
            await connection.execute(statement, resource_id)
        return None
