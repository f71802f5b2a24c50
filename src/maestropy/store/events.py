"""Spec events: the queue between those who accept wishes and those who deliver them."""

from collections.abc import Collection
from datetime import datetime

from maestropy.store import locks, pool, rows, sql

_QUERIES = sql.load("events")


async def read_events(connection: pool.Connection, ids: Collection[str]) -> list[rows.Pending]:
    """Return those of the events that exist."""
    found = await connection.fetch(_QUERIES["read_events"], list(ids))
    return [
        rows.Pending(row["id"], row["source_id"], row["event_type"], row["consumer_name"], row["reconciled"])
        for row in found
    ]


async def pending_events(
    connection: pool.Connection, consumers: Collection[str], *, per_consumer: int, limit: int
) -> list[rows.Pending]:
    """Return pending events of the consumers, at most `per_consumer` of each."""
    found = await connection.fetch(_QUERIES["pending_events"], list(consumers), per_consumer, limit)
    return [rows.Pending(row["id"], row["source_id"], row["event_type"], row["consumer_name"]) for row in found]


async def pending_everywhere(connection: pool.Connection, *, per_consumer: int, limit: int) -> list[rows.Pending]:
    """Return pending events of all consumers, at most `per_consumer` of each."""
    found = await connection.fetch(_QUERIES["pending_everywhere"], per_consumer, limit)
    return [rows.Pending(row["id"], row["source_id"], row["event_type"], row["consumer_name"]) for row in found]


async def claim(connection: pool.Connection, ids: Collection[str]) -> set[str]:
    """Take events for the rest of the transaction; returns those that are still pending and that nobody else has."""
    found = await connection.fetch(_QUERIES["claim_events"], list(ids))
    if not found:
        return set()
    locked = await connection.fetch(
        _QUERIES["try_lock_events"],
        [row["id"] for row in found],
        [locks.fnv1a(row["id"]) for row in found],
        [locks.fnv1a(row["source_id"]) for row in found],
        locks.EVENTS,
        locks.SENDING,
    )
    return {row["id"] for row in locked}


async def reconcile(connection: pool.Connection, ids: Collection[str], *, now: datetime) -> None:
    """Mark events as done."""
    await connection.execute(_QUERIES["reconcile"], list(ids), now)


async def pending_of_consumers(connection: pool.Connection, consumers: Collection[str]) -> dict[str, list[str]]:
    """Return the ids of all pending events of each consumer."""
    found: dict[str, list[str]] = {consumer: [] for consumer in consumers}
    for row in await connection.fetch(_QUERIES["pending_of_consumers"], list(consumers)):
        found[row["consumer_name"]].append(row["id"])
    return found


async def retire_orphans(connection: pool.Connection, *, now: datetime, limit: int) -> int:
    """Mark events of bundles that are gone as done; return how many."""
    return _count(await connection.execute(_QUERIES["retire_orphans"], now, limit))


async def purge_events(connection: pool.Connection, *, done_before: datetime, limit: int) -> int:
    """Remove events that have been done for long enough; return how many."""
    return _count(await connection.execute(_QUERIES["purge_events"], done_before, limit))


async def purge_status_events(
    connection: pool.Connection, *, told_before: datetime, ended_before: datetime, created_before: datetime, limit: int
) -> int:
    """Remove status events everybody has passed on, and those older than `created_before`; return how many.

    Those that tell the end of a bundle stay until `ended_before`.
    """
    given = (told_before, created_before, limit, ended_before)
    return _count(await connection.execute(_QUERIES["purge_status_events"], *given))


async def retire_stale_deletes(connection: pool.Connection, *, marked_before: datetime, now: datetime) -> int:
    """Give up on deletions that no agent has taken; return how many."""
    return len(await connection.fetch(_QUERIES["retire_stale_deletes"], marked_before, now))


async def republish_undelivered(
    connection: pool.Connection, *, silent_since: datetime, now: datetime
) -> list[rows.Republished]:
    """Queue bundles again that nobody has answered for since `silent_since`."""
    found = await connection.fetch(_QUERIES["republish_undelivered"], silent_since, now)
    return [
        rows.Republished(
            id=row["id"], consumer=row["consumer_name"], source=row["source"] or "", created_at=row["created_at"]
        )
        for row in found
    ]


async def oldest_pending_age(connection: pool.Connection, *, now: datetime) -> float:
    """Return the age of the oldest pending event in seconds, 0 if there is none."""
    age: float | None = await connection.fetchval(_QUERIES["oldest_pending_age"], now)
    return max(0.0, age) if age is not None else 0.0


async def notification_queue_usage(connection: pool.Connection) -> float:
    """Return how full PostgreSQL's notification queue is, from 0 to 1."""
    return float(await connection.fetchval(_QUERIES["notification_queue_usage"]))


def _count(tag: str) -> int:
    """Read the row count from a command tag such as `DELETE 5`."""
    return int(tag.rpartition(" ")[2])
