"""Rows of the double, as several of its statements find, lock, change and announce them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from maestropy.wire.events import stored_event

if TYPE_CHECKING:
    from tests.simulation.memory_postgres import Row, Transaction


def found(tx: "Transaction", table: str, ids: Iterable[str]) -> "list[Row]":
    rows = [tx.get(table, fromkey) for fromkey in dict.fromkeys(ids)]
    return [row for row in rows if row is not None]


def is_paused(tx: "Transaction", consumer: str) -> bool:
    return tx.get("maestropy_pauses", consumer) is not None


async def locked(tx: "Transaction", table: str, ids: Iterable[str]) -> "list[Row]":
    rows = []
    for id_ in sorted(set(ids)):
        if tx.get(table, id_) is not None:
            await tx.lock(table, id_)
            row = tx.get(table, id_)
            if row is not None:
                rows.append(row)
    return rows


async def amend(tx: "Transaction", table: str, key: str, changes: "Row") -> None:
    await tx.lock(table, key)
    row = tx.get(table, key)
    if row is not None:
        await tx.put(table, key, {**row, **changes})


async def remove(tx: "Transaction", table: str, rows: "Sequence[Row]") -> int:
    free = [row for row in rows if tx.try_lock(table, row["id"])]
    for row in free:
        await tx.put(table, row["id"], None)
    return len(free)


async def settle(tx: "Transaction", row: "Row", now: datetime) -> bool:
    """Mark an event as done, unless it is or somebody has it."""
    if not tx.try_lock("events", row["id"]):
        return False
    current = tx.get("events", row["id"])
    if current is None or current["reconciled_date"] is not None:
        return False
    await tx.put("events", row["id"], {**current, "reconciled_date": now})
    return True


async def supersede(tx: "Transaction", ids: Iterable[str], now: datetime) -> None:
    wanted = set(ids)
    for row in list(tx.rows("events")):
        if row["source_id"] in wanted and row["reconciled_date"] is None:
            await settle(tx, row, now)


async def announce(tx: "Transaction", event_id: str, resource_id: str, event_type: str, now: datetime) -> None:
    row = {
        "id": event_id,
        "created_at": now,
        "source_id": resource_id,
        "event_type": event_type,
        "reconciled_date": None,
    }
    await tx.put("events", event_id, row)
    tx.notices.append(("events", event_id))


async def announce_status(tx: "Transaction", event_id: str, resource_id: str, fields: "Row", now: datetime) -> None:
    row = {"id": event_id, "created_at": now, "resource_id": resource_id, **fields}
    await tx.put("status_events", event_id, row)
    tx.notices.append(("status_events", event_id))


def pending(tx: "Transaction", row: "Row") -> "Row":
    bundle = tx.get("resources", row["source_id"])
    consumer = bundle["consumer_name"] if bundle else None
    deleted_at = bundle["deleted_at"] if bundle else None
    is_later = deleted_at is not None and row["created_at"] > deleted_at + timedelta(seconds=1)
    return {
        **row,
        "is_reconciled": row["reconciled_date"] is not None,
        "is_repeated": row["event_type"] == "Delete" and is_later,
        "consumer_name": consumer,
    }


def all_pending(tx: "Transaction") -> "list[Row]":
    rows = [pending(tx, row) for row in tx.rows("events") if row["reconciled_date"] is None]
    return [row for row in rows if row["consumer_name"] is not None]


def fairly(tx: "Transaction", wanted: Callable[[str], bool], per_consumer: int, limit: int) -> "list[Row]":
    places: dict[str, int] = defaultdict(int)
    ranked = []
    for row in sorted(all_pending(tx), key=age):
        if wanted(row["consumer_name"]):
            places[row["consumer_name"]] += 1
            ranked.append((places[row["consumer_name"]], row["id"], row))
    chosen = sorted((each for each in ranked if each[0] <= per_consumer), key=lambda each: each[:2])
    return [row for _, _, row in chosen[:limit]]


def of_consumers(tx: "Transaction", consumers: Iterable[str]) -> "list[Row]":
    wanted = set(consumers)
    return sorted((row for row in tx.rows("resources") if row["consumer_name"] in wanted), key=age)


def age(row: "Row") -> tuple[datetime, str]:
    return row["created_at"], row["id"]


def has_status(row: "Row") -> bool:
    status = msgspec.json.decode(row["status"]) if row["status"] else None
    return isinstance(status, dict) and bool(status)


def said(row: "Row", name: str) -> str:
    status = msgspec.json.decode(row["status"]) if row["status"] else None
    found = status.get(name) if isinstance(status, dict) else None
    return "" if found is None else str(found)


def payload_of(envelope: bytes, metadata: bytes | None, data: bytes | None) -> str:
    return stored_event.StoredParts(envelope=envelope, metadata=metadata or b"", data=data or b"").document()


def data_of(payload: str | None) -> bytes | None:
    document = msgspec.json.decode(payload) if payload else {}
    return msgspec.json.encode(document["data"]) if document.get("data") is not None else None


def content(row: "Row | None") -> "Row | None":
    """Return a row without the schedule of its deletion, which belongs to a cell and not to the resource."""
    return row and {name: value for name, value in row.items() if not name.startswith("delete_retry_")}
