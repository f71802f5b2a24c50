"""Statuses and their events: what agents reported, and who has been told."""

from collections.abc import Collection, Sequence
from datetime import datetime

from maestropy.store import pool, rows, sql

_QUERIES = sql.load("statuses")


async def read_for_report(connection: pool.Connection, ids: Collection[str]) -> dict[str, rows.Observed]:
    """Return those of the bundles that exist, their rows locked until the transaction ends."""
    found = await connection.fetch(_QUERIES["read_for_report"], list(ids))
    return {
        row["id"]: rows.Observed(
            id=row["id"],
            version=row["version"],
            source=row["source"] or "",
            consumer=row["consumer_name"],
            created_at=row["created_at"],
            deleted_at=row["deleted_at"],
            sequence_id=row["sequence_id"],
            status_hash=row["status_hash"],
            observed_version=row["observed_version"],
            metadata=row["metadata"] or b"",
        )
        for row in found
    }


async def write_statuses(connection: pool.Connection, statuses: Sequence[rows.NewStatus], *, now: datetime) -> None:
    """Store new statuses of bundles that `read_for_report` has locked."""
    await connection.execute(
        _QUERIES["write_statuses"],
        [status.id for status in statuses],
        [status.document for status in statuses],
        [status.event_id for status in statuses],
        [status.source for status in statuses],
        now,
    )


async def finish(connection: pool.Connection, statuses: Sequence[rows.NewStatus], *, now: datetime) -> None:
    """Remove bundles that `read_for_report` has locked, and keep their last status in its event."""
    await connection.execute(
        _QUERIES["finish"],
        [status.id for status in statuses],
        [status.document for status in statuses],
        [status.event_id for status in statuses],
        now,
    )


async def redeliver(
    connection: pool.Connection, ids: Sequence[str], *, event_ids: Sequence[str], now: datetime
) -> None:
    """Queue bundles for another delivery, unless one is pending."""
    await connection.execute(_QUERIES["redeliver"], list(ids), list(event_ids), now)


async def read_status_events(connection: pool.Connection, ids: Collection[str]) -> list[rows.StatusEvent]:
    """Return those of the status events that exist and whose source is known."""
    found = await connection.fetch(_QUERIES["read_status_events"], list(ids))
    return [
        rows.StatusEvent(
            id=row["id"],
            resource_id=row["resource_id"],
            source=row["source"],
            final=row["status_event_type"] == "StatusDelete",
            created_at=row["created_at"],
            consumer=row["consumer_name"] or "",
        )
        for row in found
        if row["source"] is not None
    ]


async def last_words(connection: pool.Connection, ids: Collection[str]) -> dict[str, str]:
    """Return the sequence of the report that ended the latest earlier bundle of each id."""
    found = await connection.fetch(_QUERIES["last_words"], list(ids))
    return {row["id"]: row["sequence_id"] for row in found}


async def ended(
    connection: pool.Connection, consumers: Collection[str], *, ids: Collection[str] = (), since: datetime | None = None
) -> dict[str, dict[str, int]]:
    """Return which bundles of each consumer have ended, and in which version: those named, and all after `since`."""
    found: dict[str, dict[str, int]] = {}
    for row in await connection.fetch(_QUERIES["ended"], list(ids), since, list(consumers)):
        version = row["version"] or ""
        # Whoever wrote that, an agent forgets a bundle in any version.
        found.setdefault(row["consumer_name"], {})[row["id"]] = int(version) if version.isdecimal() else 0
    return found


async def missed_status_events(connection: pool.Connection, *, instance: str, since: datetime, limit: int) -> list[str]:
    """Return the ids of the status events created after `since` that `instance` has not recorded."""
    found = await connection.fetch(_QUERIES["missed_status_events"], since, instance, limit)
    return [row["id"] for row in found]


async def read_statuses(connection: pool.Connection, ids: Collection[str]) -> list[rows.Told]:
    """Return the bundles that exist and have a status."""
    found = await connection.fetch(_QUERIES["read_statuses"], list(ids))
    return [
        rows.Told(
            id=row["id"],
            source=row["source"] or "",
            status=row["status"],
            data=row["data"] or b"",
            created_at=row["created_at"],
            deleted_at=row["deleted_at"],
        )
        for row in found
    ]


async def read_final_statuses(connection: pool.Connection, event_ids: Collection[str]) -> list[rows.Told]:
    """Return the last words of removed bundles."""
    found = await connection.fetch(_QUERIES["read_final_statuses"], list(event_ids))
    return [
        rows.Told(id=row["id"], source=row["source"] or "", status=row["status"], data=row["data"] or b"")
        for row in found
    ]


async def record_broadcasts(connection: pool.Connection, event_ids: Collection[str], *, instance: str) -> None:
    """Note that `instance` has passed these status events on."""
    await connection.execute(_QUERIES["record_broadcasts"], list(event_ids), instance)
