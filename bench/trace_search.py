"""Measure the database time of the searches of `maestro trace work` among a million works.

    python -m bench.trace_search [works] [--keep FOLDER]

Uses a real PostgreSQL with generated works: a payload of about 1 KB, every fifth of 5 KB (stored out of line), 200
consumers, 4 sources, labels with 5,000 values and one that every hundredth work has. Each search runs on the schema
that this server migrates, and on the Go server's, which lacks the indexes on labels and creation time. The figure is
the database time of all statements of a search, the worst of three runs after one to warm the cache, measured at the
client. The goal is one second. `--keep` uses the database of an earlier run again.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncpg

from maestropy.sandbox.postgres import EmbeddedPostgres
from maestropy.store.dsn import Dsn
from maestropy.store.migrations import migrate
from maestropy.trace.database import DsnDatabase
from maestropy.trace.work.query import WorkIdentifier, from_identifier
from maestropy.trace.work.readers import SqlDatabaseReader

CONSUMERS, SOURCES = 200, 4
FILL = """
INSERT INTO resources (id, name, source, consumer_name, version, type, payload, status, created_at, updated_at)
SELECT id, id, source, consumer, 1, '',
  jsonb_build_object('specversion', '1.0', 'clustername', consumer, 'source', source, 'logtracing',
    '{"logging.open-cluster-management.io/op-id":"op-' || g || '"}',
    'metadata', jsonb_build_object('name', work, 'namespace', consumer, 'uid', id,
      'labels', jsonb_build_object('team', 't' || g % 5000,
        'tier', CASE WHEN g % 100 = 0 THEN 'gold' ELSE 'plain' END)),
    'data', jsonb_build_object('manifests', jsonb_build_array(
      jsonb_build_object('apiVersion', 'v1', 'kind', 'ConfigMap',
        'metadata', jsonb_build_object('name', 'cm-' || g, 'namespace', 'default'),
        'data', jsonb_build_object('text', repeat(md5(g::text), CASE WHEN g % 5 = 0 THEN 130 ELSE 8 END))),
      jsonb_build_object('apiVersion', 'apps/v1', 'kind', 'Deployment',
        'metadata', jsonb_build_object('name', 'app-' || g, 'namespace', 'default'))))),
  jsonb_build_object('ObservedVersion', 1), now() - ($1::int - g) * interval '1 second', now()
FROM (SELECT g, 'work-' || g AS work, 'consumer-' || g % 200 AS consumer, 'source-' || g % 4 AS source,
  CASE WHEN g % 50 = 1 THEN 'chosen-' || g ELSE md5(g::text) END AS id
  FROM generate_series($2::int, $3::int) g) works"""
CONSUMER_ROWS = """
INSERT INTO consumers (id, name, created_at, updated_at)
SELECT 'c' || g, 'consumer-' || g, now(), now() FROM generate_series(0, 199) g"""
GO_SCHEMA = ("idx_resources_payload_labels", "maestropy_resources_order")
STEP = 50_000


class TimedDatabase(DsnDatabase):
    """Adds up the time that statements take."""

    seconds = 0.0
    statements = 0

    async def documents(self, sql: str, parameters: Sequence[str]) -> Sequence[dict[str, Any]]:
        async with asyncpg.create_pool(self.dsn, min_size=1, max_size=1) as pool, pool.acquire() as connection:
            # The connection itself is not database time of the search.
            await connection.fetch("SELECT 1")
            started = time.perf_counter()
            rows = await connection.fetch(sql, *parameters)
            TimedDatabase.seconds += time.perf_counter() - started
        TimedDatabase.statements += 1
        import orjson  # noqa: PLC0415

        return [orjson.loads(row[0]) for row in rows]


def searches(works: int) -> dict[str, WorkIdentifier]:
    """Return the searches: for a new and an old work, for what exists and for what does not."""
    new, old = works - 2, 12
    return {
        "by name, computed ID, new": {"work_name": f"work-{new}"},
        "by name, computed ID, old": {"work_name": f"work-{old}"},
        "by name, chosen ID, new": {"work_name": f"work-{works - works % 50 - 49}"},
        "by name, chosen ID, old": {"work_name": "work-51"},
        "by name, none": {"work_name": "nobody"},
        "by label, 200 works": {"label": "team=t7"},
        "by label, 10,000 works": {"label": "tier=gold"},
        "by label, none": {"label": "team=none"},
        "by part of a name, new": {"name_like": f"ORK-{new}"},
        "by part of a name, old": {"name_like": "ork-12345"},
        "by part of a name, none": {"name_like": "nobody"},
        "by manifest, new": {"manifest": f"configmap/default/cm-{new}"},
        "by manifest, old": {"manifest": "deployment.apps/default/app-12"},
        "by op-id, old": {"op_id": "op-12"},
    }


async def fill(dsn: Dsn, works: int) -> None:
    """Create the works; their IDs become those that a work client computes."""
    await migrate.migrate(dsn)
    connection = await asyncpg.connect(**dsn.connect_kwargs())
    try:
        if await connection.fetchval("SELECT count(*) FROM consumers"):
            return
        await connection.execute(CONSUMER_ROWS)
        await connection.execute("SET synchronous_commit = off")
        for first in range(1, works + 1, STEP):
            await connection.execute(FILL, works, first, min(first + STEP - 1, works))
            print(f"  {min(first + STEP - 1, works):,} works", flush=True)
        await computed_ids(connection, searches(works))
        await connection.execute("VACUUM ANALYZE resources")
    finally:
        await connection.close()


async def computed_ids(connection: Any, wanted: dict[str, WorkIdentifier]) -> None:
    """Give the works that are searched by a computed ID that ID; computing a million of them would take minutes."""
    from maestropy.wire.works.resource_id import resource_id  # noqa: PLC0415

    for title, identifier in wanted.items():
        number = identifier.get("work_name", "").removeprefix("work-")
        if "computed" in title:
            source, consumer = f"source-{int(number) % SOURCES}", f"consumer-{int(number) % CONSUMERS}"
            computed = resource_id(source, namespace=consumer, name=f"work-{number}")
            row = await connection.fetchval(
                "SELECT id FROM resources WHERE payload->'metadata'->>'name' = $1", f"work-{number}"
            )
            await connection.execute("UPDATE resources SET id = $1, name = $1 WHERE id = $2", computed, row)


async def measure(dsn: str, works: int) -> None:
    reader = SqlDatabaseReader(TimedDatabase(dsn=dsn, timeout_seconds=60))
    print(f"{'':32}{'seconds':>8}{'statements':>12}{'rows':>7}{'matches':>9}  searched")
    for title, identifier in searches(works).items():
        taken = []
        for _ in range(4):
            TimedDatabase.seconds, TimedDatabase.statements = 0.0, 0
            resources = await reader.find(from_identifier(**identifier))
            taken.append(TimedDatabase.seconds)
        coverage = resources.coverage
        searched = f"{coverage.searched:,} works" if coverage and coverage.searched is not None else "all works"
        count = f"{coverage.matches:,}" if coverage else ""
        figures = f"{max(taken[1:]):8.3f}{TimedDatabase.statements:12}{len(resources.rows):7}{count:>9}"
        print(f"{title:32}{figures}  {searched}", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("works", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="maestro-bench-") as temporary:
        async with EmbeddedPostgres(given.keep or Path(temporary), is_ephemeral=given.keep is None) as dsn:
            await fill(dsn, given.works)
            connection = await asyncpg.connect(**dsn.connect_kwargs())
            try:
                print(f"{given.works:,} works; the schema of this server")
                await measure(str(dsn), given.works)
                for index in GO_SCHEMA:
                    await connection.execute(f"DROP INDEX IF EXISTS {index}")
                print("the schema of the Go server")
                await measure(str(dsn), given.works)
            finally:
                for line in (await asyncio.to_thread(migration_text)).split(";"):
                    if any(index in line for index in GO_SCHEMA):
                        await connection.execute(line)
                await connection.close()


def migration_text() -> str:
    from importlib.resources import files  # noqa: PLC0415

    return files("maestropy.store").joinpath("migrations/maestropy_0002_indexes.sql").read_text(encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
