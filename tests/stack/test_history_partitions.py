"""Partitions of the history on a real PostgreSQL: created ahead, dropped by age and size, and never a failed write."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from maestropy.server.controllers.history.history_retention import HistoryRetention
from maestropy.server.decide.history import retention
from maestropy.store import errors, rows
from maestropy.store.dsn import Dsn
from maestropy.store.history import history_entries, history_partitions
from maestropy.store.postgres import pool
from tests.stack import harness

NOW = datetime.now(UTC).replace(minute=30, second=0, microsecond=0)
HOUR = timedelta(hours=1)


@contextlib.asynccontextmanager
async def opened(address: Dsn) -> AsyncIterator[pool.Database]:
    database = await pool.connect(address, max_connections=4)
    try:
        yield database
    finally:
        await database.close()


async def write(database: pool.Database, *moments: datetime, detail: str = "{}") -> None:
    entries = [rows.HistoryEntry(kind="work.created", at=moment, subject_id="w", detail=detail) for moment in moments]
    async with database.connection() as connection:
        await history_entries.record(connection, entries)


async def placed(address: Dsn) -> dict[str, int]:
    """Return how many entries each partition has."""
    found = await harness.sql(
        address, "SELECT tableoid::regclass::text AS name, count(*) FROM maestropy_history GROUP BY 1"
    )
    return {row["name"]: row["count"] for row in found}


async def partitions(database: pool.Database) -> list[history_partitions.Partition]:
    async with database.connection() as connection:
        return await history_partitions.read(connection)


async def run_round(address: Dsn, *, age: timedelta = timedelta(days=3), size: int = 2**30) -> harness.InProcess:
    """Run one round of retention with these limits on a server of its own."""
    async with harness.in_process(address, enable_history="false") as server:
        limits = retention.Limits(age=age, bytes=size)
        await HistoryRetention(server.context, limits, record=lambda _entry: None).run_round()
        return server


async def test_entry_without_a_partition_goes_into_the_default_one(database: Dsn) -> None:
    async with opened(database) as store:
        await write(store, NOW - timedelta(days=900), NOW, NOW + timedelta(days=900))
        assert await placed(database) == {history_partitions.DEFAULT: 3}


async def test_partition_of_now_is_created_and_used(database: Dsn) -> None:
    await run_round(database)
    async with opened(database) as store:
        await write(store, datetime.now(UTC))
        names = [partition.name for partition in await partitions(store) if partition.period]
        assert await placed(database) == {names[0]: 1}
        indexes = await harness.sql(database, "SELECT 1 FROM pg_indexes WHERE tablename = $1", names[0])
        assert len(indexes) == 3
        await run_round(database)
        assert names == [partition.name for partition in await partitions(store) if partition.period]


async def test_period_whose_entries_are_in_the_default_partition_stays_there(database: Dsn) -> None:
    async with opened(database) as store:
        await write(store, datetime.now(UTC))
        await run_round(database)
        await write(store, datetime.now(UTC))
        assert await placed(database) == {history_partitions.DEFAULT: 2}
        period = rows.Period(NOW.replace(minute=0) + 48 * HOUR, NOW.replace(minute=0) + 72 * HOUR)
        assert await history_partitions.create(store, period)


async def test_old_partitions_are_dropped_and_old_entries_of_the_default_one_deleted(database: Dsn) -> None:
    async with opened(database) as store:
        hour = NOW.replace(minute=0)
        for days in (9, 5, 1):
            start = hour - timedelta(days=days)
            assert await history_partitions.create(store, rows.Period(start, start + HOUR))
            await write(store, start)
        await write(store, NOW - timedelta(days=20), NOW - timedelta(days=2, minutes=5))
        await run_round(database, age=timedelta(days=3))
        kept = await harness.sql(database, "SELECT at FROM maestropy_history ORDER BY at")
        assert [row["at"] for row in kept] == [NOW - timedelta(days=2, minutes=5), hour - timedelta(days=1)]


async def test_oldest_partitions_are_dropped_by_size(database: Dsn) -> None:
    async with opened(database) as store:
        hour = NOW.replace(minute=0)
        starts = [hour - timedelta(hours=hours) for hours in (40, 30, 20)]
        for start in starts:
            assert await history_partitions.create(store, rows.Period(start, start + HOUR))
            await write(store, *[start] * 2000, detail="x" * 900)
        sizes = {each.period.start: each.bytes for each in await partitions(store) if each.period}
        await run_round(database, size=sizes[starts[1]] + sizes[starts[2]] + 2**17)
        left = {each.period.start for each in await partitions(store) if each.period}
        assert starts[0] not in left
        assert {starts[1], starts[2]} <= left


async def test_partition_in_use_is_emptied_at_twice_the_size(database: Dsn) -> None:
    async with opened(database) as store:
        await write(store, *[datetime.now(UTC)] * 3000, detail="x" * 900)
        (default,) = [each for each in await partitions(store) if each.period is None]
        await run_round(database, size=default.bytes // 3)
        assert await harness.value(database, "SELECT count(*) FROM maestropy_history") == 0


async def test_locked_partition_is_left_for_later_and_writers_go_on(database: Dsn) -> None:
    start = NOW.replace(minute=0) - timedelta(days=9)
    async with opened(database) as store:
        assert await history_partitions.create(store, rows.Period(start, start + HOUR))
        (old,) = [each for each in await partitions(store) if each.period]
        reader = await asyncpg.connect(**database.connect_kwargs())
        try:
            await reader.execute("BEGIN")
            await reader.fetch("SELECT * FROM maestropy_history")
            server = await run_round(database)
            assert server.lines("a partition of the history could not be changed")
            with pytest.raises(errors.RowLocked):
                await history_partitions.drop(store, old)
            # While the reader still has its lock.
            await asyncio.wait_for(write(store, datetime.now(UTC)), 30)
            await reader.execute("COMMIT")
        finally:
            await reader.close()
        await run_round(database)
        assert old.name not in {each.name for each in await partitions(store)}


async def waiting(address: Dsn, mode: str) -> int:
    """Return how many sessions wait for a lock of the history."""
    query = "SELECT count(*) FROM pg_locks WHERE relation = 'maestropy_history'::regclass AND mode = $1 AND NOT granted"
    return int(await harness.value(address, query, mode))


async def test_writers_never_fail_while_partitions_are_created(database: Dsn) -> None:
    """A writer that has chosen the default partition must not find that a new partition takes its row."""
    first = NOW.replace(minute=0)
    created = 0
    async with opened(database) as store:
        blocker = await asyncpg.connect(**database.connect_kwargs())
        try:
            for number in range(1, 40):
                hour = first + number * HOUR
                # As a writer that is not done yet: creation waits for it, and the other writers wait for the creation.
                await blocker.execute("BEGIN; LOCK TABLE maestropy_history IN ROW EXCLUSIVE MODE")
                creating = asyncio.ensure_future(history_partitions.create(store, rows.Period(hour, hour + HOUR)))
                while not creating.done() and not await waiting(database, "ShareRowExclusiveLock"):
                    await asyncio.sleep(0)
                writers = [asyncio.ensure_future(write(store, hour)) for _ in range(3)]
                while not creating.done() and await waiting(database, "RowExclusiveLock") < 3:
                    await asyncio.sleep(0)
                await blocker.execute("COMMIT")
                with contextlib.suppress(errors.RowLocked):  # a busy machine took longer than creation waits
                    created += await creating
                await asyncio.gather(*writers)
                if created >= 5:
                    break
        finally:
            await blocker.close()
        assert created >= 5


async def test_default_partition_that_was_dropped_comes_back(database: Dsn) -> None:
    await harness.sql(database, f"DROP TABLE {history_partitions.DEFAULT}")
    server = await run_round(database)
    async with opened(database) as store:
        assert history_partitions.DEFAULT in {each.name for each in await partitions(store)}
        await write(store, NOW - timedelta(days=900))
    assert server is not None


async def test_role_that_may_not_create_tables_still_records(database: Dsn) -> None:
    statements: list[Any] = [
        "DROP ROLE IF EXISTS history_writer",
        "CREATE ROLE history_writer LOGIN",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO history_writer",
        "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO history_writer",
    ]
    for statement in statements:
        await harness.sql(database, statement)
    server = await run_round(database.__class__(**{**_fields(database), "user": "history_writer"}))
    assert server.lines("a partition of the history could not be changed")
    async with opened(database) as store:
        await write(store, datetime.now(UTC))
        assert await placed(database) == {history_partitions.DEFAULT: 1}


def _fields(address: Dsn) -> dict[str, Any]:
    return {name: getattr(address, name) for name in ("host", "port", "database", "sslmode")}
