"""Read and write the schedule by which unconfirmed deletions are sent again.

Go servers on the same database work on the same rows: the schedule (one row, locked for a round), a queue of consumers,
and for each deletion when it is sent again and its delay in nanoseconds. Rules are in `server.decide.delete_recovery`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from maestropy.store import rows, sql
from maestropy.store.postgres import pool

_QUERIES = sql.load("delete_recovery")


async def claim_round(connection: pool.Connection, *, now: datetime) -> bool | None:
    """Lock the schedule until the transaction ends; return whether the last round still owes its pause.

    None: no round is due, another server has it, or it would have nothing to do.
    """
    row = await connection.fetchrow(_QUERIES["claim_round"], now)
    return None if row is None else bool(row["cooldown_pending"])


async def start_pause(connection: pool.Connection, *, until: datetime) -> None:
    """Let no round begin before `until`."""
    await connection.execute(_QUERIES["start_pause"], until)


async def owe_pause(connection: pool.Connection) -> None:
    """Note that the pause begins when this transaction has been committed."""
    await connection.execute(_QUERIES["owe_pause"])


async def lock_unscheduled(connection: pool.Connection, *, limit: int) -> list[rows.UnconfirmedDeletion]:
    """Return and lock the oldest deletions without a schedule."""
    return [_deletion(row) for row in await connection.fetch(_QUERIES["lock_unscheduled"], limit)]


async def set_retries(connection: pool.Connection, retries: Mapping[str, rows.Retry]) -> None:
    """Set when deletions are sent again, by resource ID."""
    times = [retry.at for retry in retries.values()]
    delays = [retry.delay_ns for retry in retries.values()]
    await connection.execute(_QUERIES["set_retries"], list(retries), times, delays)


async def queue_consumers(connection: pool.Connection, next_at: Mapping[str, datetime]) -> None:
    """Give consumers a turn, or an earlier one."""
    await connection.execute(_QUERIES["queue_consumers"], list(next_at), list(next_at.values()))


async def due_consumers(connection: pool.Connection, *, now: datetime, limit: int) -> list[str]:
    """Return the consumers whose turn it is, those that wait longest first."""
    return [row["consumer_name"] for row in await connection.fetch(_QUERIES["due_consumers"], now, limit)]


async def lock_due(
    connection: pool.Connection, consumers: Sequence[str], *, now: datetime, per_consumer: int
) -> list[rows.UnconfirmedDeletion]:
    """Return and lock the deletions of each consumer that are due for the longest time."""
    due = await connection.fetch(_QUERIES["due_deletions"], list(consumers), now, per_consumer)
    locked = await connection.fetch(_QUERIES["lock_deletions"], [row["id"] for row in due])
    return [_deletion(row) for row in locked]


async def announce_again(connection: pool.Connection, event_ids: Mapping[str, str], *, now: datetime) -> set[str]:
    """Queue locked deletions again, by resource ID; return those that had no pending delete event."""
    records = await connection.fetch(_QUERIES["announce_again"], list(event_ids), list(event_ids.values()), now)
    return {row["source_id"] for row in records}


async def advance_consumers(connection: pool.Connection, consumers: Sequence[str], *, now: datetime) -> None:
    """Give consumers their next turn; those without a deletion leave the queue."""
    await connection.execute(_QUERIES["advance_consumers"], list(consumers), now)


async def backlog(connection: pool.Connection) -> rows.DeletionBacklog:
    """Return how many deletions, consumers and events wait, and for how long."""
    row = await connection.fetchrow(_QUERIES["backlog"])
    return rows.DeletionBacklog(**dict(row))


def _deletion(row: pool.Connection) -> rows.UnconfirmedDeletion:
    return rows.UnconfirmedDeletion(
        id=row["id"],
        consumer=row["consumer_name"],
        source=row["source"] or "",
        deleted_at=row["deleted_at"],
        delay_ns=row["delete_retry_delay"],
    )
