"""Read what operator actions are decided on, and write what they change: pauses, queued works, retirements, orphans.

Nothing is decided here. Writes take a connection, so that an action and its history entry are one transaction.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple

from maestropy.store import rows, sql
from maestropy.store.postgres import pool

_STATEMENTS = sql.load("actions")


class PauseCounts(NamedTuple):
    """How many consumers are paused, and for how many seconds the first of them."""

    consumers: int
    oldest_seconds: float


async def consumer_facts(connection: pool.Connection, key: str) -> rows.ConsumerFacts | None:
    """Return what is known of the consumer with this ID or name."""
    row = await connection.fetchrow(_STATEMENTS["consumer_facts"], key)
    if row is None:
        return None
    pause = None
    if row["paused_at"] is not None:
        pause = rows.Pause(row["name"], row["paused_at"], row["paused_by"], row["pause_reason"])
    return rows.ConsumerFacts(
        id=row["id"],
        name=row["name"],
        pause=pause,
        seen_at=row["seen_at"],
        works=row["works"],
        deleting=row["deleting"],
        waiting=row["waiting"],
        has_go_servers=row["has_go_servers"],
        servers_since=row["servers_since"],
    )


async def works_of_consumer(connection: pool.Connection, consumer: str, *, limit: int) -> list[rows.NamedWork]:
    """Return the first works of a consumer with their names."""
    records = await connection.fetch(_STATEMENTS["works_of_consumer"], consumer, limit)
    return [rows.NamedWork._make(row) for row in records]


async def work(
    connection: pool.Connection, work_id: str, *, sources: Collection[str] | None
) -> tuple[rows.NamedWork, bool] | None:
    """Return a work, if it belongs to one of `sources` (None: any), and whether its event waits for delivery."""
    row = await connection.fetchrow(_STATEMENTS["work"], work_id, None if sources is None else list(sources))
    return None if row is None else (rows.NamedWork._make(tuple(row)[:6]), bool(row["is_waiting"]))


async def versions(connection: pool.Connection, consumer: str, *, locks: bool = False) -> list[rows.WorkVersion]:
    """Return all works of a consumer in the order of their IDs; with `locks` they stay as they are until the end."""
    records = await connection.fetch(_STATEMENTS["lock_works" if locks else "versions_of_works"], consumer)
    return [rows.WorkVersion._make(row) for row in records]


async def queue_works(connection: pool.Connection, consumer: str, *, work_id: str | None = None, now: datetime) -> int:
    """Queue a work, or all works of a consumer, to be sent again; return how many wait for delivery now."""
    row = await connection.fetchrow(_STATEMENTS["queue_works"], consumer, work_id, now)
    return int(row["works"])


async def request_resync(connection: pool.Connection, consumer: str) -> None:
    """Ask all instances to resync with the agents of a consumer, when the transaction is committed."""
    await connection.execute(_STATEMENTS["request_resync"], consumer)


async def pause(connection: pool.Connection, pause: rows.Pause) -> bool:
    """Store a pause; return False if the consumer was paused before."""
    row = await connection.fetchrow(_STATEMENTS["pause"], *pause)
    return row is not None


async def resume(connection: pool.Connection, consumer: str) -> bool:
    """Remove the pause of a consumer; return False if there was none."""
    return await connection.fetchrow(_STATEMENTS["resume"], consumer) is not None


async def paused_among(connection: pool.Connection, consumers: Collection[str]) -> frozenset[str]:
    """Return those of the consumers to which delivery is paused."""
    records = await connection.fetch(_STATEMENTS["paused_among"], list(consumers))
    return frozenset(row["consumer_name"] for row in records)


async def pauses(database: pool.Database, *, sources: Collection[str] | None) -> list[rows.Pause]:
    """Return the pauses of consumers that have works of `sources` (None: of all consumers)."""
    async with database.connection() as connection:
        records = await connection.fetch(_STATEMENTS["pauses"], None if sources is None else list(sources))
    return [rows.Pause._make(row) for row in records]


async def count_pauses(connection: pool.Connection, *, now: datetime) -> PauseCounts:
    """Return how many consumers are paused, and for how long the first of them."""
    row = await connection.fetchrow(_STATEMENTS["count_pauses"], now)
    return PauseCounts(row["consumers"], max(0.0, row["oldest"] or 0.0))


async def note_seen(connection: pool.Connection, consumers: Collection[str], *, now: datetime) -> None:
    """Note that agents of these consumers are connected, or have sent something."""
    await connection.execute(_STATEMENTS["note_seen"], sorted(consumers), now)


async def mark_released(connection: pool.Connection, ids: Collection[str], *, now: datetime) -> None:
    """Give works that are not being deleted the time of their release as the time of their deletion."""
    await connection.execute(_STATEMENTS["mark_released"], list(ids), now)


async def remove_consumer(connection: pool.Connection, consumer: str) -> None:
    """Remove a consumer that has no works any more; a new work of it fails the transaction."""
    await connection.execute(_STATEMENTS["remove_consumer"], consumer)


async def orphans(connection: pool.Connection, *, before: datetime) -> list[rows.Orphan]:
    """Return the rows that belong to nothing; events only if they were created before `before`."""
    return [rows.Orphan._make(row) for row in await connection.fetch(_STATEMENTS["orphans"], before)]


async def remove_orphans(connection: pool.Connection, subjects: Mapping[str, Collection[str]]) -> None:
    """Remove the named rows of each class, except those that belong to something by now."""
    for kind, named in subjects.items():
        await connection.execute(_STATEMENTS[f"remove_orphan_{kind.replace('-', '_')}s"], list(named))


async def agent_side(connection: pool.Connection) -> list[rows.AgentSide]:
    """Return the works that agents keep although the database does not ask for them."""
    return [rows.AgentSide._make(row) for row in await connection.fetch(_STATEMENTS["agent_side"])]
