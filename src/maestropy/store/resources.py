"""Bundles: read what admission must know, write what it decided.

Every write carries its event and its wake-up in the same transaction; nothing here decides anything.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from maestropy.store import locks, pool, rows, sql
from maestropy.wire import record, resync

_QUERIES = sql.load("resources")


async def insert_new(connection: pool.Connection, specs: Sequence[rows.NewSpec], *, now: datetime) -> set[str]:
    """Insert the specs whose id is free and whose consumer exists; return the ids that went in."""
    found = await connection.fetch(
        _QUERIES["insert_new"],
        [spec.id for spec in specs],
        [spec.source for spec in specs],
        [spec.consumer for spec in specs],
        [spec.version for spec in specs],
        *_contents(specs),
        [spec.event_id for spec in specs],
        now,
    )
    return {row["id"] for row in found}


async def lock(connection: pool.Connection, ids: Collection[str], *, kind: int) -> None:
    """Wait for the advisory locks of `ids`, the same that a Go server takes; held until the transaction ends."""
    await connection.execute(_QUERIES["lock_ids"], [locks.fnv1a(each) for each in ids], kind)


async def read_for_change(connection: pool.Connection, ids: Collection[str]) -> dict[str, rows.Held]:
    """Return those of the bundles that exist, their rows locked until the transaction ends."""
    found = await connection.fetch(_QUERIES["read_for_change"], list(ids))
    return {
        row["id"]: rows.Held(
            id=row["id"],
            version=row["version"],
            source=row["source"] or "",
            consumer=row["consumer_name"],
            deleting=row["deleting"],
            parts=_parts(row),
        )
        for row in found
    }


async def write_updates(connection: pool.Connection, specs: Sequence[rows.NewSpec], *, now: datetime) -> None:
    """Replace the specs of bundles that `read_for_change` has locked."""
    await connection.execute(
        _QUERIES["write_updates"],
        [spec.id for spec in specs],
        [spec.version for spec in specs],
        *_contents(specs),
        [spec.event_id for spec in specs],
        now,
    )


async def mark_deleting(
    connection: pool.Connection, ids: Sequence[str], *, event_ids: Sequence[str], now: datetime
) -> None:
    """Mark bundles that `read_for_change` has locked for deletion."""
    await connection.execute(_QUERIES["mark_deleting"], list(ids), list(event_ids), now)


async def existing_consumers(connection: pool.Connection, names: Collection[str]) -> set[str]:
    """Return those of the names that are consumers."""
    found = await connection.fetch(_QUERIES["existing_consumers"], list(names))
    return {row["name"] for row in found}


async def read_specs(connection: pool.Connection, ids: Collection[str]) -> list[rows.Spec]:
    """Return those of the bundles that exist, complete, in no particular order."""
    found = await connection.fetch(_QUERIES["read_specs"], list(ids))
    return [
        rows.Spec(
            id=row["id"],
            version=row["version"],
            source=row["source"] or "",
            consumer=row["consumer_name"],
            created_at=row["created_at"],
            updated_at=row["updated_at"],
            deleted_at=row["deleted_at"],
            parts=_parts(row),
        )
        for row in found
    ]


async def versions_of_consumers(connection: pool.Connection, consumers: Collection[str]) -> dict[str, list[resync.Row]]:
    """Return id, version and deletion mark of every bundle of each consumer."""
    found: dict[str, list[resync.Row]] = {consumer: [] for consumer in consumers}
    for row in await connection.fetch(_QUERIES["versions_of_consumers"], list(consumers)):
        found[row["consumer_name"]].append(resync.Row(row["id"], row["version"], row["deleting"]))
    return found


async def unanswered_of_consumer(connection: pool.Connection, consumer: str) -> list[str]:
    """Return the ids of the consumer's bundles that its agent may not have got as they are, the oldest first."""
    return [row["id"] for row in await connection.fetch(_QUERIES["unanswered_of_consumer"], consumer)]


async def changed_since(connection: pool.Connection, consumers: Collection[str], since: datetime) -> list[str]:
    """Return the ids of the consumers' bundles whose row changed after `since`, the oldest bundle first."""
    found = await connection.fetch(_QUERIES["changed_since"], list(consumers), since)
    return [row["id"] for row in found]


async def status_hashes_of_consumers(
    connection: pool.Connection, consumers: Collection[str]
) -> dict[str, dict[str, str]]:
    """Return the status hash of every bundle of each consumer; empty where there is no status yet."""
    found: dict[str, dict[str, str]] = {consumer: {} for consumer in consumers}
    for row in await connection.fetch(_QUERIES["status_hashes_of_consumers"], list(consumers)):
        found[row["consumer_name"]][row["id"]] = row["status_hash"]
    return found


async def status_hashes_of_source(connection: pool.Connection, source: str) -> dict[str, str]:
    """Return the status hash of every bundle of a source that has a status."""
    found = await connection.fetch(_QUERIES["status_hashes_of_source"], source)
    return {row["id"]: row["status_hash"] for row in found}


def _contents(specs: Sequence[rows.NewSpec]) -> tuple[list[bytes], list[bytes | None], list[bytes | None]]:
    return (
        [spec.parts.envelope for spec in specs],
        [spec.parts.metadata or None for spec in specs],
        [spec.parts.data or None for spec in specs],
    )


def _parts(row: pool.Connection) -> record.Parts:
    return record.Parts(envelope=row["envelope"] or b"", metadata=row["metadata"] or b"", data=row["data"] or b"")
