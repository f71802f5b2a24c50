"""Read the identity of the database, and keep the data-safety holds of agents and their adoptions.

The identity is read again for every use: the database may be replaced under a running server.
"""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from maestropy.store import rows, sql
from maestropy.store.history import history_entries
from maestropy.store.postgres import pool
from maestropy.wire import errors, resync, timestamps

_STATEMENTS = sql.load("data_safety")


class HoldRow(NamedTuple):
    """A row of `maestropy_holds`."""

    consumer: str
    id: str
    reason: str
    message: str
    database_id: str
    work_count: int
    works: list[str]
    since: datetime
    absent_works: list[str]
    """Those of the works that this database does not have."""
    pending_count: int
    """How many works the agent evicts after its grace period."""
    pending_works: list[str]
    pending_since: datetime | None
    pending_deadline: datetime | None
    """When the first of them may be evicted."""
    digest: str
    """Of reason, database and works: it changes when the ID of the hold does not."""


async def identity(connection: pool.Connection) -> str:
    """Return the identity of the database; empty if the row is missing."""
    return await connection.fetchval(_STATEMENTS["identity"]) or ""


async def write_hold(connection: pool.Connection, consumer: str, hold: resync.ReportedHold, *, now: datetime) -> None:
    """Store the hold that the agent of a consumer reports."""
    pending = hold.pending or resync.PendingEvictions(count=0)
    await connection.execute(
        _STATEMENTS["write_hold"],
        consumer,
        hold.id,
        hold.reason,
        hold.message,
        hold.database,
        hold.count,
        list(hold.works),
        now,
        pending.count,
        list(pending.works),
        _moment(pending.since),
        _moment(pending.deadline),
    )


async def remove_hold(connection: pool.Connection, consumer: str) -> None:
    """Remove the hold of a consumer, whose agent holds nothing any more."""
    await connection.execute(_STATEMENTS["remove_hold"], consumer)


async def held_consumers(connection: pool.Connection, consumers: Collection[str]) -> frozenset[str]:
    """Return those of the consumers that have a hold."""
    records = await connection.fetch(_STATEMENTS["held_consumers"], list(consumers))
    return frozenset(row["consumer_name"] for row in records)


async def holds(database: pool.Database) -> list[HoldRow]:
    """Return all holds, without the names of the works."""
    async with database.connection() as connection:
        return [HoldRow._make(row) for row in await connection.fetch(_STATEMENTS["holds"])]


async def hold_of(database: pool.Database, consumer: str) -> HoldRow | None:
    """Return the hold of a consumer."""
    async with database.connection() as connection:
        record = await connection.fetchrow(_STATEMENTS["hold_of"], consumer)
    return None if record is None else HoldRow._make(record)


async def held(connection: pool.Connection) -> rows.HeldCounts:
    """Return how many works the holds of agents keep, and how many they are about to evict."""
    return rows.HeldCounts(**await connection.fetchrow(_STATEMENTS["held"]))


async def holds_of_sources(
    database: pool.Database, sources: Collection[str], *, consumer: str | None = None
) -> list[HoldRow]:
    """Return the holds that keep works of some sources, with the IDs of these works and without messages."""
    async with database.connection() as connection:
        records = await connection.fetch(_STATEMENTS["holds_of_sources"], list(sources), consumer)
    return [HoldRow._make(row) for row in records]


async def adopt(
    database: pool.Database, hold: HoldRow, *, by: str, now: datetime, entry: rows.HistoryEntry | None = None
) -> bool:
    """Record that an operator ends a hold; return False if it was ended before or has changed since it was read."""
    reviewed = (hold.reason, hold.database_id, hold.work_count, hold.works)
    async with database.transaction() as connection:
        is_adopted = bool(await connection.fetchval(_STATEMENTS["adopt"], hold.consumer, hold.id, by, now, *reviewed))
        if is_adopted and entry is not None:
            await history_entries.record(connection, [entry])
    return is_adopted


async def adopted(connection: pool.Connection, hold_ids: Collection[str]) -> frozenset[str]:
    """Return those of the holds that an operator has ended."""
    records = await connection.fetch(_STATEMENTS["adopted"], list(hold_ids))
    return frozenset(row["hold_id"] for row in records)


def _moment(text: str) -> datetime | None:
    """Return a time that an agent reports; None if it is none, or one that a database cannot have."""
    try:
        return timestamps.parse(text).to_datetime()
    except (errors.WireError, ValueError, OverflowError):
        return None
