"""The history in the double: entries are rows without partitions, of which there is one for ever."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.memory_postgres import Row, Transaction

TABLE = "maestropy_history"
_CONNECTIONS = ("agent.connected", "agent.disconnected")


async def record_change(
    tx: "Transaction", kind: str, resource: "Row | None", record: Sequence[Any], now: datetime
) -> None:
    """Add the entry of a changed resource, if it has one."""
    actor, address, operation_id, detail = record
    if resource is None or detail is None:
        return
    await _put(
        tx,
        {
            "at": now,
            "kind": kind,
            "subject_id": resource["id"],
            "consumer_name": resource["consumer_name"],
            "source": resource["source"] or "",
            "version": resource["version"],
            "actor": actor,
            "address": address,
            "operation_id": operation_id,
            "result": "",
            "detail": detail,
        },
    )


async def record(tx: "Transaction", *columns: Any) -> "list[Row]":
    """Add entries that belong to no change."""
    names = ("at", "kind", "subject_id", "consumer_name", "source", "version", "actor", "address", "operation_id")
    for values in zip(*columns, strict=True):
        await _put(tx, dict(zip((*names, "result", "detail"), values, strict=True)))
    return []


async def consumers_named(tx: "Transaction", keys: Sequence[str]) -> "list[Row]":
    """Return nothing: requests of the simulation name consumers by name."""
    del tx, keys
    return []


async def consumers_of_works(tx: "Transaction", ids: Sequence[str]) -> "list[Row]":
    """Return the consumers of works that exist; the simulation reads no history of deleted ones."""
    found = {work_id: tx.get("resources", work_id) for work_id in ids}
    return [{"id": work_id, "name": row["consumer_name"]} for work_id, row in found.items() if row is not None]


async def end_lost_connections(
    tx: "Transaction", after: datetime | None, seen_before: datetime, now: datetime
) -> "list[Row]":
    """Record the end of connections whose agents nobody has seen since, and which have none."""
    lost = []
    for name in sorted(row["name"] for row in tx.rows("consumers")):
        noted = tx.get("maestropy_agents", name)
        seen = noted["seen_at"] if noted is not None else None
        is_looked_at = after is not None and (seen is None or seen <= after)
        if is_looked_at or (seen is not None and seen > seen_before):
            continue
        entries = [row for row in tx.rows(TABLE) if row["consumer_name"] == name and row["kind"] in _CONNECTIONS]
        last = max(entries, key=lambda row: (row["at"], row["id"]), default=None)
        if last is None or last["kind"] == "agent.disconnected" or last["at"] > seen_before:
            continue
        at = max(last["at"], seen or last["at"])
        detail = {
            "instance": json.loads(last["detail"]).get("instance"),
            "last_seen": at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        }
        entry = {
            "at": now, "kind": "agent.disconnected", "subject_id": "", "consumer_name": name, "source": "",
            "version": 0, "actor": "", "address": last["address"], "operation_id": "", "result": "",
            "detail": json.dumps(detail),
        }  # fmt: skip
        await _put(tx, entry)
        lost.append({"consumer_name": name})
    return lost


async def partitions(_tx: "Transaction") -> "list[Row]":
    """Return the default partition, and one for all time."""
    names = ("maestropy_history_default", "maestropy_history_p1970010100_2970010100")
    return [{"name": name, "bytes": 0} for name in names]


async def purge_default(_tx: "Transaction", _before: datetime, _limit: int) -> "list[Row]":
    """Remove nothing: the default partition is empty."""
    return []


async def _put(tx: "Transaction", row: "Row") -> None:
    tx.engine.recorded += 1
    await tx.put(TABLE, tx.engine.recorded, {"id": tx.engine.recorded, **row})
