"""Read, claim and finish spec events: the queue between the spec writer and the spec dispatcher."""

from collections.abc import Collection
from datetime import datetime

from maestropy.store import rows, sql
from maestropy.store.postgres import locks, pool

_QUERIES = sql.load("events")


async def read_events(connection: pool.Connection, ids: Collection[str]) -> list[rows.PendingEvent]:
    """Return the events that exist."""
    records = await connection.fetch(_QUERIES["read_events"], list(ids))
    return [_pending_event(row, is_reconciled=row["is_reconciled"]) for row in records]


async def pending_events(
    connection: pool.Connection, consumers: Collection[str] | None, *, per_consumer: int, limit: int
) -> list[rows.PendingEvent]:
    """Return pending events of the consumers (None: of all), at most `per_consumer` of each."""
    if consumers is None:
        records = await connection.fetch(_QUERIES["pending_everywhere"], per_consumer, limit)
    else:
        records = await connection.fetch(_QUERIES["pending_events"], list(consumers), per_consumer, limit)
    return [_pending_event(row, is_reconciled=False) for row in records]


async def claim(connection: pool.Connection, ids: Collection[str]) -> set[str]:
    """Lock events until the transaction ends; return those that are pending and that no other instance holds."""
    records = await connection.fetch(_QUERIES["claim_events"], list(ids))
    if not records:
        return set()
    locked = await connection.fetch(
        _QUERIES["try_lock_events"],
        [row["id"] for row in records],
        [locks.fnv1a(row["id"]) for row in records],
        [locks.fnv1a(row["source_id"]) for row in records],
        locks.EVENTS,
        locks.SENDING,
    )
    return {row["id"] for row in locked}


async def reconcile(connection: pool.Connection, ids: Collection[str], *, now: datetime) -> None:
    """Mark events as reconciled."""
    await connection.execute(_QUERIES["reconcile"], list(ids), now)


async def pending_of_consumers(connection: pool.Connection, consumers: Collection[str]) -> dict[str, list[str]]:
    """Return the IDs of all pending events of each consumer."""
    event_ids: dict[str, list[str]] = {consumer: [] for consumer in consumers}
    for row in await connection.fetch(_QUERIES["pending_of_consumers"], list(consumers)):
        event_ids[row["consumer_name"]].append(row["id"])
    return event_ids


async def retire_orphans(connection: pool.Connection, *, now: datetime, limit: int) -> int:
    """Mark pending events of removed resources as reconciled; return how many."""
    return _count(await connection.execute(_QUERIES["retire_orphans"], now, limit))


async def purge_events(connection: pool.Connection, *, done_before: datetime, limit: int) -> int:
    """Remove events that were reconciled before `done_before`; return how many."""
    return _count(await connection.execute(_QUERIES["purge_events"], done_before, limit))


async def purge_status_events(
    connection: pool.Connection,
    *,
    broadcast_before: datetime,
    removed_before: datetime,
    created_before: datetime,
    limit: int,
) -> int:
    """Remove status events that all instances have broadcast, and those older than `created_before`.

    Events of removed resources stay until `removed_before`. Returns how many were removed.
    """
    limits = (broadcast_before, created_before, limit, removed_before)
    return _count(await connection.execute(_QUERIES["purge_status_events"], *limits))


async def retire_stale_deletes(connection: pool.Connection, *, deleted_before: datetime, now: datetime) -> int:
    """Mark pending delete events as reconciled older, like the deletion, than `deleted_before`; return how many."""
    return len(await connection.fetch(_QUERIES["retire_stale_deletes"], deleted_before, now))


async def republish_undelivered(
    connection: pool.Connection, *, unchanged_since: datetime, now: datetime
) -> list[rows.RepublishedResource]:
    """Queue resources again that have no status and have not changed since `unchanged_since`."""
    records = await connection.fetch(_QUERIES["republish_undelivered"], unchanged_since, now)
    return [
        rows.RepublishedResource(
            id=row["id"], consumer=row["consumer_name"], source=row["source"] or "", created_at=row["created_at"]
        )
        for row in records
    ]


async def oldest_pending_age(connection: pool.Connection, *, now: datetime) -> float:
    """Return the age of the oldest pending event in seconds, 0 if there is none."""
    age: float | None = await connection.fetchval(_QUERIES["oldest_pending_age"], now)
    return max(0.0, age) if age is not None else 0.0


async def oldest_pending_age_of(connection: pool.Connection, consumers: Collection[str], *, now: datetime) -> float:
    """Return the age of the oldest pending event for these consumers in seconds, 0 if there is none."""
    age: float | None = await connection.fetchval(_QUERIES["oldest_pending_age_of_consumers"], now, list(consumers))
    return max(0.0, age) if age is not None else 0.0


async def notification_queue_usage(connection: pool.Connection) -> float:
    """Return how full PostgreSQL's notification queue is, from 0 to 1."""
    return float(await connection.fetchval(_QUERIES["notification_queue_usage"]))


def _count(tag: str) -> int:
    """Read the row count from a command tag such as `DELETE 5`."""
    return int(tag.rpartition(" ")[2])


def _pending_event(row: pool.Connection, *, is_reconciled: bool) -> rows.PendingEvent:
    return rows.PendingEvent(
        row["id"],
        row["source_id"],
        row["event_type"],
        row["consumer_name"],
        is_reconciled=is_reconciled,
        is_repeated=row["is_repeated"],
    )
