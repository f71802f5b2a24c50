"""A replica of the Go server, as far as delete recovery goes: a connection with the statements that it runs.

They are those of Go Maestro of September 2026, one by one, with its first delays; its source cannot be built here.
"""

import contextlib
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from maestropy.store.dsn import Dsn


@contextlib.asynccontextmanager
async def go_replica(database: Dsn) -> AsyncIterator[Any]:
    """Connect as a Go server does."""
    connection = await asyncpg.connect(**database.connect_kwargs())
    try:
        yield connection
    finally:
        await connection.close()


GO_CLAIM = """SELECT cooldown_pending FROM delete_recovery_schedule
              WHERE id = 1 AND (cooldown_pending OR next_at <= clock_timestamp()) FOR UPDATE SKIP LOCKED"""


async def go_round(go: Any, *, batch: int = 25, initial: timedelta = timedelta(seconds=60)) -> list[str] | None:
    """Do what a replica of the Go server does in one call: work, the start of the pause, or nothing (None)."""
    async with go.transaction():
        claimed = await go.fetchrow(GO_CLAIM)
        if claimed is None:
            return None
        if claimed["cooldown_pending"]:
            await go.execute(
                "UPDATE delete_recovery_schedule SET cooldown_pending = false, "
                "next_at = clock_timestamp() + interval '1 second' WHERE id = 1"
            )
            return []
        now = await go.fetchval("SELECT clock_timestamp()")
        await go_initialize(go, now, batch=batch, initial=initial)
        due = await go.fetch(
            "SELECT consumer_name FROM delete_recovery_consumers WHERE next_at <= $1 ORDER BY next_at, consumer_name "
            "LIMIT $2",
            now,
            batch,
        )
        queued = [id_ for row in due for id_ in await go_recover(go, row["consumer_name"], now, initial=initial)]
        await go.execute("UPDATE delete_recovery_schedule SET cooldown_pending = true WHERE id = 1")
        return queued


async def go_initialize(go: Any, now: datetime, *, batch: int, initial: timedelta) -> None:
    oldest = await go.fetch(
        "SELECT id FROM resources WHERE deleted_at IS NOT NULL AND delete_retry_at IS NULL "
        "ORDER BY deleted_at, id LIMIT $1",
        batch,
    )
    for candidate in oldest:
        row = await go.fetchrow(
            "SELECT consumer_name, deleted_at FROM resources WHERE id = $1 AND deleted_at IS NOT NULL "
            "AND delete_retry_at IS NULL FOR UPDATE SKIP LOCKED",
            candidate["id"],
        )
        if row is None:
            continue
        due, nanoseconds = row["deleted_at"] + initial, int(initial.total_seconds()) * 10**9
        await go.execute(
            "UPDATE resources SET delete_retry_at = $2, delete_retry_delay = $3 WHERE id = $1",
            candidate["id"],
            due,
            nanoseconds,
        )
        await go.execute(
            "INSERT INTO delete_recovery_consumers VALUES ($1, GREATEST($2::timestamptz, $3::timestamptz)) "
            "ON CONFLICT (consumer_name) DO UPDATE "
            "SET next_at = LEAST(delete_recovery_consumers.next_at, EXCLUDED.next_at)",
            row["consumer_name"],
            due,
            now,
        )


async def go_recover(go: Any, consumer: str, now: datetime, *, initial: timedelta) -> list[str]:
    queued = []
    first = (
        "SELECT id, delete_retry_at FROM resources WHERE consumer_name = $1 AND deleted_at IS NOT NULL "
        "AND delete_retry_at IS NOT NULL AND delete_retry_at <= $2 ORDER BY delete_retry_at, id LIMIT 1"
    )
    due = await go.fetchrow(first, consumer, now)
    if due is not None and await go.fetchrow(
        "SELECT id FROM resources WHERE id = $1 AND deleted_at IS NOT NULL FOR UPDATE SKIP LOCKED", due["id"]
    ):
        pending = await go.fetchval(
            "SELECT count(*) FROM events WHERE source = 'Resources' AND source_id = $1 AND event_type = 'Delete' "
            "AND reconciled_date IS NULL",
            due["id"],
        )
        if not pending:
            queued.append(due["id"])
            event_id = await go.fetchval(
                "INSERT INTO events (id, created_at, updated_at, source, source_id, event_type) "
                "VALUES (gen_random_uuid()::text, now(), now(), 'Resources', $1, 'Delete') RETURNING id",
                due["id"],
            )
            await go.execute("SELECT pg_notify('events', $1)", event_id)
        await go.execute(
            "UPDATE resources SET delete_retry_at = $2, delete_retry_delay = 120000000000 WHERE id = $1",
            due["id"],
            now + 2 * initial,
        )
    row = await go.fetchrow(first, consumer, datetime.max.replace(tzinfo=now.tzinfo))
    if row is None:
        await go.execute("DELETE FROM delete_recovery_consumers WHERE consumer_name = $1", consumer)
    else:
        next_at = max(row["delete_retry_at"], now)
        await go.execute(
            "UPDATE delete_recovery_consumers SET next_at = $2 WHERE consumer_name = $1", consumer, next_at
        )
    return queued
