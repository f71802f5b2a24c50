"""What each named statement of `maestropy.store` does, said in Python: one function per statement, under its name.

A function gets the transaction it runs in and the statement's parameters, and returns rows (and, where it matters, how
many rows the command tag would count). `renditions` are kept inside the rows of `resources`, since every writer here
writes both.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import asyncpg

from maestropy.store import sql
from tests.simulation import memory_history, memory_rows
from tests.simulation.memory_actions import (  # noqa: F401 - found by name
    count_pauses,
    note_seen,
    pause,
    paused_among,
    queue_works,
    resume,
)
from tests.simulation.memory_data_safety import (  # noqa: F401 - found by name
    adopted,
    held,
    held_consumers,
    identity,
    remove_hold,
    write_hold,
)
from tests.simulation.memory_delete_recovery import (  # noqa: F401 - found by name
    advance_consumers,
    announce_again,
    backlog,
    claim_round,
    due_consumers,
    due_deletions,
    lock_deletions,
    lock_unscheduled,
    owe_pause,
    queue_consumers,
    set_retries,
    start_pause,
)
from tests.simulation.memory_history import (  # noqa: F401 - found by name
    consumers_named,
    consumers_of_works,
    end_lost_connections,
    partitions,
    purge_default,
    record,
)
from tests.simulation.virtual_loop import EPOCH

if TYPE_CHECKING:
    from tests.simulation.memory_postgres import Row, Transaction

FAMILIES = (
    *("resources", "statuses", "events", "delete_recovery", "instances", "consumers"),
    *("data_safety", "history", "actions"),
)
_Statement = Callable[..., Awaitable[Any]]
_LEFT_OUT = {
    # What only REST asks; the simulation does not speak REST.
    "consumers": {"get", "set_labels", "delete", "count", "page"},
    "data_safety": {"holds", "hold_of", "adopt"},
    "history": {"page", "consumer_name", "size", "lock", "default_has_rows"},
    "actions": {
        *("consumer_facts", "works_of_consumer", "work", "lock_works", "versions_of_works", "request_resync", "pauses"),
        *("remove_consumer", "mark_released", "orphans", "agent_side", "remove_orphan_holds", "remove_orphan_pauses"),
        *("remove_orphan_agents", "remove_orphan_events", "remove_orphan_status_events"),
    },
}


def find(statement: str) -> _Statement:
    """Return what `statement` does."""
    if statement.startswith("SET LOCAL"):
        return _set_local(statement)
    if statement not in _BY_TEXT:
        raise NotImplementedError(f"the double of PostgreSQL does not know this statement; tell it here: {statement}")
    return _BY_TEXT[statement]


def _set_local(statement: str) -> _Statement:
    name, value = statement.removeprefix("SET LOCAL ").split(" TO ")

    async def change(tx: "Transaction") -> "list[Row]":
        if name == "lock_timeout":
            tx.lock_seconds = int(value) / 1000
        return []

    return change


async def insert_new(tx: "Transaction", *columns: Any) -> "list[Row]":
    now = columns[9]
    consumers = {row["name"] for row in tx.rows("consumers")}
    inserted = []
    for (id_, source, consumer, version, envelope, metadata, data, event_id, created_by), noted in zip(
        zip(*columns[:9], strict=True), zip(*columns[10:], strict=True), strict=True
    ):
        if consumer not in consumers or _is_removed(tx, id_, created_by):
            continue
        await tx.lock("resources", id_)
        if tx.get("resources", id_) is not None:
            continue
        row = {
            "id": id_,
            "created_at": now,
            "updated_at": now,
            "deleted_at": None,
            "source": source,
            "consumer_name": consumer,
            "version": version,
            "payload": memory_rows.payload_of(envelope, metadata, data),
            "envelope": envelope,
            "metadata": metadata,
            "data": data,
            "status": None,
            "created_by": created_by or None,
            "delete_retry_at": None,
            "delete_retry_delay": None,
        }
        await tx.put("resources", id_, row)
        await memory_rows.announce(tx, event_id, id_, "Create", now)
        await memory_history.record_change(tx, "work.created", row, noted, now)
        inserted.append({"id": id_})
    return inserted


async def removed_creations(tx: "Transaction", ids: Sequence[str], events: Sequence[str]) -> "list[Row]":
    return [{"id": id_} for id_, created_by in zip(ids, events, strict=True) if _is_removed(tx, id_, created_by)]


def _is_removed(tx: "Transaction", id_: str, created_by: str) -> bool:
    rows = tx.rows("status_events")
    return any(row["resource_id"] == id_ and row.get("maestropy_created_by") == created_by for row in rows)


async def lock_ids(tx: "Transaction", keys: Sequence[int], kind: int) -> "list[Row]":
    for key in sorted(set(keys)):
        await tx.lock_advisory((key, kind))
    return []


async def read_for_change(tx: "Transaction", ids: Iterable[str]) -> "list[Row]":
    return [
        {**row, "is_deleting": row["deleted_at"] is not None, "is_held_back": _is_held_back(row)}
        for row in await memory_rows.locked(tx, "resources", ids)
    ]


def _is_held_back(row: "Row") -> bool:
    conditions = (json.loads(row["status"] or "{}").get("data") or {}).get("conditions") or ()
    hold = {"type": "DataSafetyHold", "status": "True", "reason": "OlderVersion"}
    return any(hold.items() <= condition.items() for condition in conditions)


async def write_updates(tx: "Transaction", *columns: Any) -> "list[Row]":
    now = columns[6]
    await memory_rows.supersede(tx, columns[0], now)
    for (id_, version, envelope, metadata, data, event_id), noted in zip(
        zip(*columns[:6], strict=True), zip(*columns[7:], strict=True), strict=True
    ):
        payload = memory_rows.payload_of(envelope, metadata, data)
        changed = {"version": version, "payload": payload, "updated_at": now}
        contents = {"envelope": envelope, "metadata": metadata, "data": data}
        await memory_rows.amend(tx, "resources", id_, {**changed, **contents})
        await memory_rows.announce(tx, event_id, id_, "Update", now)
        await memory_history.record_change(tx, "work.updated", tx.get("resources", id_), noted, now)
    return []


async def mark_deleting(
    tx: "Transaction", ids: Sequence[str], event_ids: Sequence[str], now: datetime, *records: Any
) -> "list[Row]":
    await memory_rows.supersede(tx, ids, now)
    for id_, event_id, noted in zip(ids, event_ids, zip(*records, strict=True), strict=True):
        await memory_rows.amend(tx, "resources", id_, {"deleted_at": now})
        await memory_rows.announce(tx, event_id, id_, "Delete", now)
        await memory_history.record_change(tx, "work.deletion-requested", tx.get("resources", id_), noted, now)
    return []


async def existing_consumers(tx: "Transaction", names: Iterable[str]) -> "list[Row]":
    wanted = set(names)
    return [{"name": row["name"]} for row in tx.rows("consumers") if row["name"] in wanted]


async def read_specs(tx: "Transaction", ids: Iterable[str]) -> "list[Row]":
    return [
        {
            **row,
            "database_id": tx.engine.database_id,
            "is_paused": memory_rows.is_paused(tx, row["consumer_name"]),
        }
        for row in memory_rows.found(tx, "resources", ids)
    ]


async def versions_of_consumers(tx: "Transaction", consumers: Iterable[str], with_event_ids: bool) -> "list[Row]":
    return [
        {
            **row,
            "is_deleting": row["deleted_at"] is not None,
            "event_id": json.loads(row["envelope"]).get("id") if with_event_ids else None,
        }
        for row in memory_rows.of_consumers(tx, consumers)
    ]


async def unconfirmed_of_consumer(tx: "Transaction", consumer: str) -> "list[Row]":
    return [
        row
        for row in memory_rows.of_consumers(tx, [consumer])
        if row["deleted_at"] is not None or memory_rows.said(row, "resourceversion") != str(row["version"])
    ]


async def changed_since(tx: "Transaction", consumers: Iterable[str], since: datetime) -> "list[Row]":
    wanted = set(consumers)
    rows = [row for row in tx.rows("resources") if row["consumer_name"] in wanted]
    changed = [row for row in rows if row["updated_at"] > since or (row["deleted_at"] and row["deleted_at"] > since)]
    return sorted(changed, key=memory_rows.age)


async def status_hashes_of_consumers(tx: "Transaction", consumers: Iterable[str]) -> "list[Row]":
    return [
        {
            **row,
            "status_hash": memory_rows.said(row, "statushash"),
            "sequence_id": memory_rows.said(row, "sequenceid"),
        }
        for row in memory_rows.of_consumers(tx, consumers)
    ]


async def status_hashes_of_resources(tx: "Transaction", ids: Iterable[str], consumer: str) -> "list[Row]":
    wanted = set(ids)
    return [row for row in await status_hashes_of_consumers(tx, [consumer]) if row["id"] in wanted]


async def status_hashes_of_source(tx: "Transaction", source: str) -> "list[Row]":
    rows = [row for row in tx.rows("resources") if row["source"] == source and memory_rows.has_status(row)]
    return [
        {"id": row["id"], "status_hash": memory_rows.said(row, "statushash")}
        for row in sorted(rows, key=memory_rows.age)
    ]


async def read_for_status_update(tx: "Transaction", ids: Iterable[str]) -> "list[Row]":
    return [
        {
            **row,
            "sequence_id": memory_rows.said(row, "sequenceid"),
            "status_hash": memory_rows.said(row, "statushash"),
            "observed_version": memory_rows.said(row, "resourceversion"),
        }
        for row in await memory_rows.locked(tx, "resources", ids)
    ]


async def read_status_data(tx: "Transaction", ids: Iterable[str]) -> "list[Row]":
    rows = [
        (row["id"], json.loads(row["status"] or "{}").get("data")) for row in memory_rows.found(tx, "resources", ids)
    ]
    return [{"id": id_, "data": None if data is None else json.dumps(data).encode()} for id_, data in rows]


async def write_statuses(tx: "Transaction", *columns: Any) -> "list[Row]":
    now = columns[4]
    for (id_, status, event_id, source), noted in zip(
        zip(*columns[:4], strict=True), zip(*columns[5:], strict=True), strict=True
    ):
        await memory_rows.amend(tx, "resources", id_, {"status": status, "updated_at": now})
        await memory_history.record_change(tx, "work.status", tx.get("resources", id_), noted, now)
        recorded = {"resource_source": source, "payload": None, "status": None, "status_event_type": "StatusUpdate"}
        await memory_rows.announce_status(tx, event_id, id_, recorded, now)
    return []


async def remove(tx: "Transaction", *columns: Any) -> "list[Row]":
    now = columns[3]
    await memory_rows.supersede(tx, columns[0], now)
    for (id_, status, event_id), noted in zip(
        zip(*columns[:3], strict=True), zip(*columns[4:], strict=True), strict=True
    ):
        row = tx.get("resources", id_)
        await memory_history.record_change(tx, "work.deleted", row, noted, now)
        if row is not None:
            recorded = {
                "resource_source": row["source"],
                "payload": row["payload"],
                "status": status,
                "status_event_type": "StatusDelete",
                "maestropy_created_by": row["created_by"],
            }
            await memory_rows.announce_status(tx, event_id, id_, recorded, now)
            await tx.put("resources", id_, None)
    return []


async def redeliver(tx: "Transaction", ids: Sequence[str], event_ids: Sequence[str], now: datetime) -> "list[Row]":
    pending = {row["source_id"] for row in tx.rows("events") if row["reconciled_date"] is None}
    for id_, event_id in zip(ids, event_ids, strict=True):
        row = tx.get("resources", id_)
        if id_ not in pending and row is not None:
            await memory_rows.announce(tx, event_id, id_, "Delete" if row["deleted_at"] else "Update", now)
    return []


async def read_status_events(tx: "Transaction", ids: Iterable[str]) -> "list[Row]":
    rows = []
    for row in memory_rows.found(tx, "status_events", ids):
        bundle = tx.get("resources", row["resource_id"])
        source = row["resource_source"] or (bundle["source"] if bundle else None)
        rows.append({**row, "source": source, "consumer_name": bundle["consumer_name"] if bundle else None})
    return rows


async def last_sequence_ids(tx: "Transaction", ids: Sequence[str]) -> "list[Row]":
    latest = {}
    for row in sorted(tx.rows("status_events"), key=memory_rows.age):
        if row["resource_id"] in ids and row["status_event_type"] == "StatusDelete":
            latest[row["resource_id"]] = memory_rows.said(row, "sequenceid")
    return [{"id": id_, "sequence_id": latest[id_]} for id_ in sorted(latest)]


async def removed_versions(
    tx: "Transaction", ids: Sequence[str], since: datetime | None, consumers: Sequence[str]
) -> "list[Row]":
    rows = []
    for row in sorted(tx.rows("status_events"), key=memory_rows.age):
        is_wanted = row["resource_id"] in ids or (since is not None and row["created_at"] > since)
        consumer = memory_rows.said(row, "clustername")
        is_released = bool(memory_rows.said(row, "released"))
        if row["status_event_type"] == "StatusDelete" and is_wanted and consumer in consumers and not is_released:
            version = memory_rows.said(row, "resourceversion")
            created = json.loads(row["status"]).get("metadata", {}).get("creationTimestamp")
            rows.append({"id": row["resource_id"], "consumer_name": consumer, "version": version, "created": created})
    return rows


async def missed_status_events(tx: "Transaction", since: datetime, instance: str, limit: int) -> "list[Row]":
    rows = [
        row
        for row in tx.rows("status_events")
        if row["created_at"] > since and tx.get("event_instances", (row["id"], instance)) is None
    ]
    return sorted(rows, key=memory_rows.age)[:limit]


async def oldest_missed_status_event(tx: "Transaction", since: datetime, instance: str, now: datetime) -> "list[Row]":
    missed = await missed_status_events(tx, since, instance, sys.maxsize)
    return [{"age": max(((now - row["created_at"]).total_seconds() for row in missed), default=None)}]


async def read_statuses(tx: "Transaction", ids: Iterable[str]) -> "list[Row]":
    return [row for row in memory_rows.found(tx, "resources", ids) if memory_rows.has_status(row)]


async def read_final_statuses(tx: "Transaction", ids: Iterable[str]) -> "list[Row]":
    return [
        {
            "id": row["resource_id"],
            "source": row["resource_source"],
            "status": row["status"],
            "data": memory_rows.data_of(row["payload"]),
        }
        for row in memory_rows.found(tx, "status_events", ids)
        if row["status"] is not None
    ]


async def record_broadcasts(tx: "Transaction", ids: Iterable[str], instance: str) -> "list[Row]":
    for row in memory_rows.found(tx, "status_events", ids):
        key = (row["id"], instance)
        if tx.get("server_instances", instance) is None:
            raise asyncpg.ForeignKeyViolationError("the instance is not known")
        if tx.get("event_instances", key) is None:
            await tx.put("event_instances", key, {"event_id": row["id"], "instance_id": instance})
    return []


async def read_events(tx: "Transaction", ids: Iterable[str]) -> "list[Row]":
    return [memory_rows.pending(tx, row) for row in memory_rows.found(tx, "events", ids)]


async def pending_events(tx: "Transaction", consumers: Iterable[str], per_consumer: int, limit: int) -> "list[Row]":
    wanted = set(consumers)
    return memory_rows.fairly(
        tx, lambda consumer: consumer in wanted and not memory_rows.is_paused(tx, consumer), per_consumer, limit
    )


async def pending_everywhere(tx: "Transaction", per_consumer: int, limit: int) -> "list[Row]":
    return memory_rows.fairly(tx, lambda consumer: not memory_rows.is_paused(tx, consumer), per_consumer, limit)


async def claim_events(tx: "Transaction", ids: Iterable[str]) -> "list[Row]":
    rows = [row for row in memory_rows.found(tx, "events", ids) if row["reconciled_date"] is None]
    return [row for row in sorted(rows, key=memory_rows.age) if tx.try_lock("events", row["id"])]


async def try_lock_events(tx: "Transaction", *columns: Any) -> "list[Row]":
    event_kind, bundle_kind = columns[-2:]
    return [
        {"id": id_}
        for id_, event_key, bundle_key in zip(*columns[:-2], strict=True)
        if tx.try_lock_advisory((bundle_key, bundle_kind)) and tx.try_lock_advisory((event_key, event_kind))
    ]


async def reconcile(tx: "Transaction", ids: Iterable[str], now: datetime) -> "list[Row]":
    for row in memory_rows.found(tx, "events", ids):
        await memory_rows.settle(tx, row, now)
    return []


async def pending_of_consumers(tx: "Transaction", consumers: Iterable[str]) -> "list[Row]":
    wanted = set(consumers)
    return [row for row in memory_rows.all_pending(tx) if row["consumer_name"] in wanted]


async def retire_orphans(tx: "Transaction", now: datetime, limit: int) -> "tuple[list[Row], int]":
    rows = [
        row
        for row in tx.rows("events")
        if row["reconciled_date"] is None and tx.get("resources", row["source_id"]) is None
    ]
    return [], sum([await memory_rows.settle(tx, row, now) for row in rows[:limit]])


async def purge_events(tx: "Transaction", done_before: datetime, limit: int) -> "tuple[list[Row], int]":
    rows = [row for row in tx.rows("events") if row["reconciled_date"] and row["reconciled_date"] <= done_before]
    return [], await memory_rows.remove(tx, "events", rows[:limit])


async def purge_status_events(
    tx: "Transaction", broadcast_before: datetime, created_before: datetime, limit: int, removed_before: datetime
) -> "tuple[list[Row], int]":
    ready = [row["id"] for row in tx.rows("server_instances") if row["ready"]]
    rows = [
        row
        for row in tx.rows("status_events")
        if row["created_at"] <= broadcast_before
        and (row["status_event_type"] != "StatusDelete" or row["created_at"] <= removed_before)
        and (
            row["created_at"] <= created_before
            or all(tx.get("event_instances", (row["id"], instance)) for instance in ready)
        )
    ]
    count = await memory_rows.remove(tx, "status_events", rows[:limit])
    for recorded in list(tx.rows("event_instances")):
        if tx.get("status_events", recorded["event_id"]) is None:
            await tx.put("event_instances", (recorded["event_id"], recorded["instance_id"]), None)
    return [], count


async def retire_stale_deletes(tx: "Transaction", deleted_before: datetime, now: datetime) -> "list[Row]":
    retired = []
    for row in list(tx.rows("events")):
        bundle = tx.get("resources", row["source_id"])
        is_stale = bundle is not None and bundle["deleted_at"] and bundle["deleted_at"] <= deleted_before
        is_stale = is_stale and row["created_at"] <= deleted_before
        is_stale = is_stale and not (bundle and memory_rows.is_paused(tx, bundle["consumer_name"]))
        if row["event_type"] == "Delete" and is_stale and await memory_rows.settle(tx, row, now):
            retired.append({"id": row["id"]})
    return retired


async def republish_undelivered(tx: "Transaction", unchanged_since: datetime, now: datetime) -> "list[Row]":
    busy = {
        row["source_id"]
        for row in tx.rows("events")
        if row["reconciled_date"] is None or row["created_at"] > unchanged_since
    }
    silent = [
        row
        for row in tx.rows("resources")
        if row["deleted_at"] is None
        and not memory_rows.has_status(row)
        and row["updated_at"] <= unchanged_since
        and row["id"] not in busy
        and not memory_rows.is_paused(tx, row["consumer_name"])
    ]
    for row in silent:
        await memory_rows.announce(
            tx, tx.engine.new_id(), row["id"], "Create" if row["version"] == 1 else "Update", now
        )
    return silent


async def oldest_pending_age(tx: "Transaction", now: datetime) -> "list[Row]":
    pending = [row for row in tx.rows("events") if row["reconciled_date"] is None]
    owners = [tx.get("resources", row["source_id"]) for row in pending]
    ages = [
        (now - row["created_at"]).total_seconds()
        for row, owner in zip(pending, owners, strict=True)
        if owner is None or not memory_rows.is_paused(tx, owner["consumer_name"])
    ]
    return [{"age": max(ages, default=None)}]


async def oldest_pending_age_of_consumers(tx: "Transaction", now: datetime, consumers: list[str]) -> "list[Row]":
    pending = [row for row in tx.rows("events") if row["reconciled_date"] is None]
    owners = [tx.get("resources", row["source_id"]) for row in pending]
    ages = [
        (now - row["created_at"]).total_seconds()
        for row, owner in zip(pending, owners, strict=True)
        if owner is not None
        and owner["consumer_name"] in consumers
        and not memory_rows.is_paused(tx, owner["consumer_name"])
    ]
    return [{"age": max(ages, default=None)}]


async def notification_queue_usage(_tx: "Transaction") -> "list[Row]":
    return [{"usage": 0.0}]


async def write_heartbeat(tx: "Transaction", instance: str, now: datetime, ready: bool) -> "list[Row]":
    await tx.lock("server_instances", instance)
    known = tx.get("server_instances", instance)
    fresh = {"id": instance, "last_heartbeat": now, "ready": ready or bool(known and known["ready"])}
    await tx.put("server_instances", instance, fresh)
    return []


async def register_own(tx: "Transaction", instance: str, now: datetime) -> "list[Row]":
    await tx.put("maestropy_instances", instance, {"id": instance, "started_at": now})
    return []


async def set_ready(tx: "Transaction", instance: str, ready: bool, _now: datetime) -> "list[Row]":
    await memory_rows.amend(tx, "server_instances", instance, {"ready": ready})
    return []


async def ready_instances(tx: "Transaction") -> "list[Row]":
    return [row for row in tx.rows("server_instances") if row["ready"]]


async def read_instance(tx: "Transaction", instance: str) -> "list[Row]":
    return memory_rows.found(tx, "server_instances", [instance])


async def update_readiness(tx: "Transaction", alive_since: datetime, _now: datetime) -> "list[Row]":
    changed = []
    for row in list(tx.rows("server_instances")):
        is_alive = row["last_heartbeat"] > alive_since
        is_ours = tx.get("maestropy_instances", row["id"]) is not None
        if row["ready"] != is_alive and (not is_alive or not is_ours):
            await memory_rows.amend(tx, "server_instances", row["id"], {"ready": is_alive})
            changed.append({"id": row["id"], "ready": is_alive})
    return changed


async def remove_instances(tx: "Transaction", unchanged_since: datetime) -> "list[Row]":
    gone = [row for row in tx.rows("server_instances") if row["last_heartbeat"] <= unchanged_since and not row["ready"]]
    for row in gone:
        await tx.put("server_instances", row["id"], None)
        await tx.put("maestropy_instances", row["id"], None)
        for recorded in list(tx.rows("event_instances")):
            if recorded["instance_id"] == row["id"]:
                await tx.put("event_instances", (recorded["event_id"], row["id"]), None)
    return gone


async def try_lock(tx: "Transaction", key: int, kind: int) -> "list[Row]":
    return [{"locked": tx.try_lock_advisory((key, kind))}]


async def database_time(_tx: "Transaction") -> "list[Row]":
    return [{"epoch": EPOCH + asyncio.get_running_loop().time()}]


async def create(tx: "Transaction", id_: str, name: str, labels: str | None, now: datetime) -> "list[Row]":
    row = {"id": id_, "name": name, "labels": labels, "created_at": now, "updated_at": now}
    await tx.put("consumers", id_, row)
    return [row]


async def count_with_works(tx: "Transaction", connected: Iterable[str]) -> "list[Row]":
    owners = {row["consumer_name"] for row in tx.rows("resources")}
    known = [row["name"] for row in tx.rows("consumers") if row["name"] in owners]
    return [{"with_works": len(known), "connected": len(set(known) & set(connected))}]


async def names(tx: "Transaction") -> "list[Row]":
    return [{"name": each} for each in sorted(row["name"] for row in tx.rows("consumers"))]


def _table() -> dict[str, _Statement]:
    here = sys.modules[__name__]
    known: dict[str, _Statement] = {}
    for family in FAMILIES:
        for name, text in sql.load(family).items():
            if name not in _LEFT_OUT.get(family, ()):
                played = getattr(here, name, None)
                known |= {text: played} if played is not None else {}
    return known


_BY_TEXT = _table()
