"""What the statements of `maestropy.store.actions` do, said in Python; `memory_statements` finds them by name."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tests.simulation import memory_rows

if TYPE_CHECKING:
    from tests.simulation.memory_postgres import Row, Transaction

_NOTED_AGAIN = timedelta(seconds=30)


async def pause(tx: "Transaction", consumer: str, paused_at: datetime, paused_by: str, reason: str) -> "list[Row]":
    await tx.lock("maestropy_pauses", consumer)
    if tx.get("maestropy_pauses", consumer) is not None:
        return []
    row = {"consumer_name": consumer, "paused_at": paused_at, "paused_by": paused_by, "reason": reason}
    await tx.put("maestropy_pauses", consumer, row)
    return [row]


async def resume(tx: "Transaction", consumer: str) -> "list[Row]":
    row = tx.get("maestropy_pauses", consumer)
    if row is None:
        return []
    await tx.put("maestropy_pauses", consumer, None)
    return [row]


async def paused_among(tx: "Transaction", consumers: Iterable[str]) -> "list[Row]":
    return [{"consumer_name": consumer} for consumer in consumers if memory_rows.is_paused(tx, consumer)]


async def count_pauses(tx: "Transaction", now: datetime) -> "list[Row]":
    ages = [(now - row["paused_at"]).total_seconds() for row in tx.rows("maestropy_pauses")]
    return [{"consumers": len(ages), "oldest": max(ages, default=None)}]


async def note_seen(tx: "Transaction", consumers: Iterable[str], now: datetime) -> "list[Row]":
    known = {row["name"] for row in tx.rows("consumers")} | {row["consumer_name"] for row in tx.rows("holds")}
    for name in sorted(known.intersection(consumers)):
        seen = tx.get("maestropy_agents", name)
        if seen is None or seen["seen_at"] < now - _NOTED_AGAIN:
            await tx.put("maestropy_agents", name, {"consumer_name": name, "seen_at": now})
    return []


async def queue_works(tx: "Transaction", consumer: str, work_id: str | None, now: datetime) -> "list[Row]":
    chosen = [row for row in memory_rows.of_consumers(tx, [consumer]) if work_id in {None, row["id"]}]
    ids = {row["id"] for row in chosen}
    waiting = [row for row in tx.rows("events") if row["source_id"] in ids and row["reconciled_date"] is None]
    tx.notices.extend(("events", row["id"]) for row in sorted(waiting, key=memory_rows.age))
    queued = [row for row in chosen if row["id"] not in {event["source_id"] for event in waiting}]
    for row in queued:
        await memory_rows.announce(tx, tx.engine.new_id(), row["id"], "Delete" if row["deleted_at"] else "Update", now)
    return [{"works": len(waiting) + len(queued)}]
