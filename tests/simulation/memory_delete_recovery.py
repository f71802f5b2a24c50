"""The statements of delete recovery, said in Python: one function per statement, under its name."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.simulation import memory_rows

if TYPE_CHECKING:
    from tests.simulation.memory_postgres import Row, Transaction

_ROUND = 1
_NEW = {"id": _ROUND, "next_at": datetime(1970, 1, 1, tzinfo=UTC), "cooldown_pending": False}


async def claim_round(tx: "Transaction", now: datetime) -> "list[Row]":
    schedule = _schedule(tx)
    has_work = bool(_due(tx, now)) or bool(_unscheduled(tx))
    if not schedule["cooldown_pending"] and (schedule["next_at"] > now or not has_work):
        return []
    return [schedule] if tx.try_lock("delete_recovery_schedule", _ROUND) else []


async def start_pause(tx: "Transaction", until: datetime) -> "list[Row]":
    await tx.put("delete_recovery_schedule", _ROUND, {"id": _ROUND, "next_at": until, "cooldown_pending": False})
    return []


async def owe_pause(tx: "Transaction") -> "list[Row]":
    await tx.put("delete_recovery_schedule", _ROUND, {**_schedule(tx), "cooldown_pending": True})
    return []


async def lock_unscheduled(tx: "Transaction", limit: int) -> "list[Row]":
    oldest = sorted(_unscheduled(tx), key=lambda row: (row["deleted_at"], row["id"]))[:limit]
    return [row for row in oldest if tx.try_lock("resources", row["id"])]


async def set_retries(
    tx: "Transaction", ids: Sequence[str], times: Sequence[datetime], delays: Sequence[int]
) -> "list[Row]":
    for id_, moment, delay in zip(ids, times, delays, strict=True):
        await memory_rows.amend(tx, "resources", id_, {"delete_retry_at": moment, "delete_retry_delay": delay})
    return []


async def queue_consumers(tx: "Transaction", names: Sequence[str], times: Sequence[datetime]) -> "list[Row]":
    for name, moment in zip(names, times, strict=True):
        known = tx.get("delete_recovery_consumers", name)
        next_at = min(moment, known["next_at"]) if known else moment
        await tx.put("delete_recovery_consumers", name, {"consumer_name": name, "next_at": next_at})
    return []


async def due_consumers(tx: "Transaction", now: datetime, limit: int) -> "list[Row]":
    return sorted(_due(tx, now), key=lambda row: (row["next_at"], row["consumer_name"]))[:limit]


async def due_deletions(tx: "Transaction", names: Sequence[str], now: datetime, limit: int) -> "list[Row]":
    return [
        row for name in names for row in [one for one in _scheduled(tx, name) if one["delete_retry_at"] <= now][:limit]
    ]


async def lock_deletions(tx: "Transaction", ids: Sequence[str]) -> "list[Row]":
    deleting = [row for row in memory_rows.found(tx, "resources", ids) if row["deleted_at"] is not None]
    return [row for row in deleting if tx.try_lock("resources", row["id"])]


async def announce_again(tx: "Transaction", ids: Sequence[str], event_ids: Sequence[str], now: datetime) -> "list[Row]":
    pending = {
        row["source_id"]
        for row in tx.rows("events")
        if row["event_type"] == "Delete" and row["reconciled_date"] is None
    }
    announced = [(id_, event_id) for id_, event_id in zip(ids, event_ids, strict=True) if id_ not in pending]
    for id_, event_id in announced:
        await memory_rows.announce(tx, event_id, id_, "Delete", now)
    return [{"source_id": id_} for id_, _ in announced]


async def advance_consumers(tx: "Transaction", names: Sequence[str], now: datetime) -> "list[Row]":
    for name in names:
        due = [row["delete_retry_at"] for row in _scheduled(tx, name)]
        row = {"consumer_name": name, "next_at": max(now, due[0])} if due else None
        await tx.put("delete_recovery_consumers", name, row)
    return []


async def backlog(tx: "Transaction") -> "list[Row]":
    """Only counts that need no clock; the simulation does not look at gauges."""
    empty = dict.fromkeys(("due", "delayed", "oldest_unscheduled", "oldest_due", "oldest_delayed"), 0)
    empty |= dict.fromkeys(("due_consumers", "scheduled_consumers", "pending_events", "oldest_pending_event"), 0)
    return [{**empty, "unscheduled": len(_unscheduled(tx))}]


def _schedule(tx: "Transaction") -> "Row":
    return tx.get("delete_recovery_schedule", _ROUND) or _NEW


def _due(tx: "Transaction", now: datetime) -> "list[Row]":
    waiting = [row for row in tx.rows("delete_recovery_consumers") if row["next_at"] <= now]
    return [row for row in waiting if not memory_rows.is_paused(tx, row["consumer_name"])]


def _unscheduled(tx: "Transaction") -> "list[Row]":
    return [row for row in tx.rows("resources") if row["deleted_at"] is not None and row["delete_retry_at"] is None]


def _scheduled(tx: "Transaction", consumer: str) -> "list[Row]":
    deleting = [row for row in memory_rows.of_consumers(tx, [consumer]) if row["deleted_at"] is not None]
    return sorted(
        (row for row in deleting if row["delete_retry_at"] is not None),
        key=lambda row: (row["delete_retry_at"], row["id"]),
    )
