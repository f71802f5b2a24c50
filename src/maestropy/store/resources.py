"""Read and write the specs of resources.

Every write includes its spec event and its notification in the same transaction. Nothing is decided here.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from maestropy.store import rows, sql
from maestropy.store.history import history_entries
from maestropy.store.postgres import locks, pool
from maestropy.wire import resync
from maestropy.wire.events import stored_event

_QUERIES = sql.load("resources")


async def insert_new(connection: pool.Connection, specs: Sequence[rows.NewSpec], *, now: datetime) -> set[str]:
    """Insert the specs whose ID is free and whose consumer exists; return the inserted IDs.

    A spec whose event created the resource before, which was removed since, is not inserted.
    """
    records = await connection.fetch(
        _QUERIES["insert_new"],
        [spec.id for spec in specs],
        [spec.source for spec in specs],
        [spec.consumer for spec in specs],
        [spec.version for spec in specs],
        *_contents(specs),
        [spec.event_id for spec in specs],
        [spec.created_by for spec in specs],
        now,
        *history_entries.columns([spec.history for spec in specs]),
    )
    return {row["id"] for row in records}


async def removed_creations(connection: pool.Connection, specs: Sequence[rows.NewSpec]) -> set[str]:
    """Return the IDs of those specs whose event created a resource that was removed since."""
    ids, events = [spec.id for spec in specs], [spec.created_by for spec in specs]
    return {row["id"] for row in await connection.fetch(_QUERIES["removed_creations"], ids, events)}


async def lock(connection: pool.Connection, ids: Collection[str], *, kind: int) -> None:
    """Take the advisory locks of `ids`, the same as a Go server, until the transaction ends."""
    await connection.execute(_QUERIES["lock_ids"], [locks.fnv1a(resource_id) for resource_id in ids], kind)


async def read_for_change(connection: pool.Connection, ids: Collection[str]) -> dict[str, rows.StoredSpec]:
    """Return the resources that exist; their rows stay locked until the transaction ends."""
    records = await connection.fetch(_QUERIES["read_for_change"], list(ids))
    return {
        row["id"]: rows.StoredSpec(
            id=row["id"],
            version=row["version"],
            source=row["source"] or "",
            consumer=row["consumer_name"],
            is_deleting=row["is_deleting"],
            parts=_parts(row),
            is_held_back=row["is_held_back"],
        )
        for row in records
    }


async def write_updates(connection: pool.Connection, specs: Sequence[rows.NewSpec], *, now: datetime) -> None:
    """Replace the specs of resources that `read_for_change` has locked."""
    await connection.execute(
        _QUERIES["write_updates"],
        [spec.id for spec in specs],
        [spec.version for spec in specs],
        *_contents(specs),
        [spec.event_id for spec in specs],
        now,
        *history_entries.columns([spec.history for spec in specs]),
    )


async def mark_deleting(
    connection: pool.Connection,
    ids: Sequence[str],
    *,
    event_ids: Sequence[str],
    now: datetime,
    records: Sequence[rows.Record | None] = (),
) -> None:
    """Mark resources that `read_for_change` has locked for deletion; `records` are those of the IDs, if any."""
    columns = history_entries.columns(records or [None] * len(ids))
    await connection.execute(_QUERIES["mark_deleting"], list(ids), list(event_ids), now, *columns)


async def existing_consumers(connection: pool.Connection, names: Collection[str]) -> set[str]:
    """Return the names that are consumers."""
    records = await connection.fetch(_QUERIES["existing_consumers"], list(names))
    return {row["name"] for row in records}


async def read_specs(connection: pool.Connection, ids: Collection[str]) -> list[rows.ResourceSpec]:
    """Return the resources that exist, with their specs, in no particular order."""
    records = await connection.fetch(_QUERIES["read_specs"], list(ids))
    return [
        rows.ResourceSpec(
            id=row["id"],
            version=row["version"],
            source=row["source"] or "",
            consumer=row["consumer_name"],
            created_at=row["created_at"],
            updated_at=row["updated_at"],
            deleted_at=row["deleted_at"],
            parts=_parts(row),
            database_id=row["database_id"] or "",
            is_paused=row["is_paused"],
        )
        for row in records
    ]


async def versions_of_consumers(
    connection: pool.Connection, consumers: Collection[str], *, with_event_ids: bool
) -> dict[str, list[resync.StoredVersion]]:
    """Return ID, version and deletion mark of every resource of each consumer, and its event ID if wanted."""
    versions: dict[str, list[resync.StoredVersion]] = {consumer: [] for consumer in consumers}
    for row in await connection.fetch(_QUERIES["versions_of_consumers"], list(consumers), with_event_ids):
        version = resync.StoredVersion(row["id"], row["version"], row["is_deleting"], row["event_id"] or "")
        versions[row["consumer_name"]].append(version)
    return versions


async def unconfirmed_of_consumer(connection: pool.Connection, consumer: str) -> list[str]:
    """Return the IDs of resources whose current version the agent has not confirmed, oldest first."""
    return [row["id"] for row in await connection.fetch(_QUERIES["unconfirmed_of_consumer"], consumer)]


async def changed_since(connection: pool.Connection, consumers: Collection[str], since: datetime) -> list[str]:
    """Return the IDs of resources of the consumers that changed after `since`, oldest first."""
    records = await connection.fetch(_QUERIES["changed_since"], list(consumers), since)
    return [row["id"] for row in records]


async def status_hashes_of_consumers(
    connection: pool.Connection, consumers: Collection[str]
) -> dict[str, list[resync.StatusMark]]:
    """Return hash and sequence ID of the status of every resource of each consumer; empty if it has no status."""
    marks: dict[str, list[resync.StatusMark]] = {consumer: [] for consumer in consumers}
    for row in await connection.fetch(_QUERIES["status_hashes_of_consumers"], list(consumers)):
        marks[row["consumer_name"]].append(resync.StatusMark(row["id"], row["status_hash"], row["sequence_id"]))
    return marks


async def status_hashes_of_resources(
    connection: pool.Connection, ids: Collection[str], *, consumer: str
) -> list[resync.StatusMark]:
    """Return hash and sequence ID of the statuses of those `ids` that are resources of `consumer`."""
    records = await connection.fetch(_QUERIES["status_hashes_of_resources"], list(ids), consumer)
    return [resync.StatusMark(row["id"], row["status_hash"], row["sequence_id"]) for row in records]


async def status_hashes_of_source(connection: pool.Connection, source: str) -> dict[str, str]:
    """Return the status hash of every resource of a source that has a status."""
    records = await connection.fetch(_QUERIES["status_hashes_of_source"], source)
    return {row["id"]: row["status_hash"] for row in records}


def _contents(specs: Sequence[rows.NewSpec]) -> tuple[list[bytes], list[bytes | None], list[bytes | None]]:
    return (
        [spec.parts.envelope for spec in specs],
        [spec.parts.metadata or None for spec in specs],
        [spec.parts.data or None for spec in specs],
    )


def _parts(row: pool.Connection) -> stored_event.StoredParts:
    return stored_event.StoredParts(
        envelope=row["envelope"] or b"", metadata=row["metadata"] or b"", data=row["data"] or b""
    )
