"""Deletions that were sent and not confirmed: which to send again, and when to do so the next time."""

from collections.abc import Collection, Mapping
from datetime import datetime

from maestropy.store import pool, rows, sql

_QUERIES = sql.load("reminders")


async def unconfirmed_deletions(
    connection: pool.Connection,
    consumers: Collection[str] | None,
    *,
    marked_before: datetime,
    now: datetime,
    limit: int,
) -> list[rows.Unconfirmed]:
    """Return deletions of the consumers (None: of all) to remind of; nobody ends them before the transaction ends."""
    wanted = None if consumers is None else list(consumers)
    found = await connection.fetch(_QUERIES["unconfirmed_deletions"], wanted, marked_before, now, limit)
    return [
        rows.Unconfirmed(
            id=row["id"], consumer=row["consumer_name"], source=row["source"] or "", deleted_at=row["deleted_at"]
        )
        for row in found
    ]


async def remind(
    connection: pool.Connection, next_at: Mapping[str, datetime], *, event_ids: Collection[str], now: datetime
) -> None:
    """Queue deletions again; `next_at` says by id when to do so the next time."""
    await connection.execute(_QUERIES["remind"], list(next_at), list(event_ids), list(next_at.values()), now)
