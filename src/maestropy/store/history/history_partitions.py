"""Create, drop and empty the partitions of the history, without ever holding a lock for long.

Each change is a transaction of its own that waits a fifth of a second for its locks at most, then raises `RowLocked`;
the caller tries again later. Writers are never in need of a partition: without one the default partition takes the row.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final, NamedTuple

from maestropy.store import rows, sql
from maestropy.store.postgres import locks, pool

DEFAULT: Final = "maestropy_history_default"
_STATEMENTS = sql.load("history")
_NAME = re.compile(r"maestropy_history_p(\d{10})_(\d{10})")
_HOUR = "%Y%m%d%H"
_LOCK_MS = 200
# Attaching a partition reads the default partition, which is empty or small, while writers of that one wait.
_STATEMENT_MS = 1000


class Partition(NamedTuple):
    """A partition of the history for a period; the default one has none."""

    name: str
    bytes: int
    period: rows.Period | None


async def read(connection: pool.Connection) -> list[Partition]:
    """Return the partitions of the history."""
    records = await connection.fetch(_STATEMENTS["partitions"])
    return [Partition(row["name"], row["bytes"], _period(row["name"])) for row in records]


async def create(database: pool.Database, period: rows.Period) -> bool:
    """Create the partition of a period; return False if the default partition has taken rows of it."""
    name = f"maestropy_history_p{period.start:{_HOUR}}_{period.end:{_HOUR}}"
    async with _short_locks(database) as connection:
        # Writers wait for these milliseconds. One that had chosen the default partition before, and then found that the
        # new one takes its row, would fail.
        await connection.execute("LOCK TABLE maestropy_history IN SHARE ROW EXCLUSIVE MODE")
        if await connection.fetchval(_STATEMENTS["size"], name) is not None:
            return True  # another instance was faster
        if await connection.fetchval(_STATEMENTS["default_has_rows"], period.start, period.end):
            return False
        # Attached afterwards: CREATE TABLE … PARTITION OF would lock the whole history against readers too.
        await connection.execute(f"CREATE TABLE {name} (LIKE maestropy_history INCLUDING ALL)")
        await connection.execute(
            f"ALTER TABLE maestropy_history ATTACH PARTITION {name} "
            f"FOR VALUES FROM ('{period.start.isoformat()}') TO ('{period.end.isoformat()}')"
        )
    return True


async def ensure_default(database: pool.Database) -> None:
    """Create the default partition if it is gone: without it a missing partition would fail writes."""
    async with _short_locks(database) as connection:
        await connection.execute(f"CREATE TABLE IF NOT EXISTS {DEFAULT} PARTITION OF maestropy_history DEFAULT")


async def drop(database: pool.Database, partition: Partition) -> bool:
    """Drop the partition of a period with all its entries; return False if another instance has done it."""
    if partition.period is None:
        raise ValueError(f"{partition.name} has no period")
    async with _short_locks(database) as connection:
        if await connection.fetchval(_STATEMENTS["size"], partition.name) is None:
            return False
        await connection.execute(f"DROP TABLE {partition.name}")
    return True


async def empty(database: pool.Database, partition: Partition) -> bool:
    """Remove all entries of a partition that is in use; return False if it has become smaller meanwhile."""
    if partition.period is None and partition.name != DEFAULT:
        raise ValueError(f"{partition.name} is no partition of ours")
    async with _short_locks(database) as connection:
        size = await connection.fetchval(_STATEMENTS["size"], partition.name)
        if size is None or size < partition.bytes:
            return False
        await connection.execute(f"TRUNCATE {partition.name}")
    return True


async def purge_default(database: pool.Database, *, before: datetime, limit: int) -> None:
    """Remove the oldest entries of the default partition that are older than `before`."""
    async with database.transaction(durable=False) as connection:
        await connection.execute(_STATEMENTS["purge_default"], before, limit)


@asynccontextmanager
async def _short_locks(database: pool.Database) -> AsyncIterator[pool.Connection]:
    async with database.transaction() as connection:
        await connection.execute(f"SET LOCAL lock_timeout TO {_LOCK_MS}")
        await connection.execute(f"SET LOCAL statement_timeout TO {_STATEMENT_MS}")
        await connection.execute(_STATEMENTS["lock"], *locks.HISTORY)
        yield connection


def _period(name: str) -> rows.Period | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        start, end = (datetime.strptime(text, _HOUR).replace(tzinfo=UTC) for text in match.groups())
    except ValueError:
        return None
    return rows.Period(start, end)
