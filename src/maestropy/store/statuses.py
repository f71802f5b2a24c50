"""Read and write the statuses of resources and their status events."""

from collections.abc import Collection, Sequence
from datetime import datetime

from maestropy.store import rows, sql
from maestropy.store.history import history_entries
from maestropy.store.postgres import pool
from maestropy.wire import resync

_QUERIES = sql.load("statuses")


async def read_for_status_update(connection: pool.Connection, ids: Collection[str]) -> dict[str, rows.StoredStatus]:
    """Return the resources that exist; their rows stay locked until the transaction ends."""
    records = await connection.fetch(_QUERIES["read_for_status_update"], list(ids))
    return {
        row["id"]: rows.StoredStatus(
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
        for row in records
    }


async def read_status_data(connection: pool.Connection, ids: Collection[str]) -> dict[str, bytes]:
    """Return the stored status of each resource as its agent sent it."""
    records = await connection.fetch(_QUERIES["read_status_data"], list(ids))
    return {row["id"]: row["data"] or b"" for row in records}


async def write_statuses(connection: pool.Connection, statuses: Sequence[rows.NewStatus], *, now: datetime) -> None:
    """Store new statuses of resources that `read_for_status_update` has locked."""
    await connection.execute(
        _QUERIES["write_statuses"],
        [status.id for status in statuses],
        [status.document for status in statuses],
        [status.event_id for status in statuses],
        [status.source for status in statuses],
        now,
        *history_entries.columns([status.history for status in statuses]),
    )


async def remove(connection: pool.Connection, statuses: Sequence[rows.NewStatus], *, now: datetime) -> None:
    """Remove resources that `read_for_status_update` has locked; the status event keeps the last status."""
    await connection.execute(
        _QUERIES["remove"],
        [status.id for status in statuses],
        [status.document for status in statuses],
        [status.event_id for status in statuses],
        now,
        *history_entries.columns([status.history for status in statuses]),
    )


async def redeliver(
    connection: pool.Connection, ids: Sequence[str], *, event_ids: Sequence[str], now: datetime
) -> None:
    """Queue resources to be sent again, unless an event is pending."""
    await connection.execute(_QUERIES["redeliver"], list(ids), list(event_ids), now)


async def read_status_events(connection: pool.Connection, ids: Collection[str]) -> list[rows.StatusEvent]:
    """Return the status events that exist and have a source."""
    records = await connection.fetch(_QUERIES["read_status_events"], list(ids))
    return [
        rows.StatusEvent(
            id=row["id"],
            resource_id=row["resource_id"],
            source=row["source"],
            is_final=row["status_event_type"] == "StatusDelete",
            created_at=row["created_at"],
            consumer=row["consumer_name"] or "",
        )
        for row in records
        if row["source"] is not None
    ]


async def last_sequence_ids(connection: pool.Connection, ids: Collection[str]) -> dict[str, str]:
    """Return by resource ID the sequence ID of the last status of its latest removed incarnation."""
    records = await connection.fetch(_QUERIES["last_sequence_ids"], list(ids))
    return {row["id"]: row["sequence_id"] for row in records}


async def removed_versions(
    connection: pool.Connection, consumers: Collection[str], *, ids: Collection[str] = (), since: datetime | None = None
) -> dict[str, dict[str, resync.StoredVersion]]:
    """Return the removed resources of each consumer by their ID: those in `ids`, and all after `since`."""
    removed: dict[str, dict[str, resync.StoredVersion]] = {}
    for row in await connection.fetch(_QUERIES["removed_versions"], list(ids), since, list(consumers)):
        version = row["version"] or ""
        # An unreadable version becomes 0: an agent deletes a work in any version.
        removed.setdefault(row["consumer_name"], {})[row["id"]] = resync.StoredVersion(
            row["id"],
            int(version) if version.isdecimal() else 0,
            is_deleting=True,
            created=row["created"] or "",
        )
    return removed


async def missed_status_events(connection: pool.Connection, *, instance: str, since: datetime, limit: int) -> list[str]:
    """Return the IDs of the status events created after `since` that `instance` has not broadcast."""
    records = await connection.fetch(_QUERIES["missed_status_events"], since, instance, limit)
    return [row["id"] for row in records]


async def oldest_missed_age(connection: pool.Connection, instance: str, *, since: datetime, now: datetime) -> float:
    """Return the age of the oldest status event after `since` that `instance` has not broadcast, 0 without one."""
    age: float | None = await connection.fetchval(_QUERIES["oldest_missed_status_event"], since, instance, now)
    return max(0.0, age) if age is not None else 0.0


async def read_statuses(connection: pool.Connection, ids: Collection[str]) -> list[rows.ResourceStatus]:
    """Return the resources that exist and have a status."""
    records = await connection.fetch(_QUERIES["read_statuses"], list(ids))
    return [
        rows.ResourceStatus(
            id=row["id"],
            source=row["source"] or "",
            status=row["status"],
            data=row["data"] or b"",
            created_at=row["created_at"],
            deleted_at=row["deleted_at"],
        )
        for row in records
    ]


async def read_final_statuses(connection: pool.Connection, event_ids: Collection[str]) -> list[rows.ResourceStatus]:
    """Return the last statuses of removed resources."""
    records = await connection.fetch(_QUERIES["read_final_statuses"], list(event_ids))
    return [
        rows.ResourceStatus(id=row["id"], source=row["source"] or "", status=row["status"], data=row["data"] or b"")
        for row in records
    ]


async def record_broadcasts(connection: pool.Connection, event_ids: Collection[str], *, instance: str) -> None:
    """Record that `instance` has broadcast these status events."""
    await connection.execute(_QUERIES["record_broadcasts"], list(event_ids), instance)
