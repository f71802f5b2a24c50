"""Results of the history: entries of a work or a consumer, and what changed between versions. Pure."""

from collections.abc import Sequence
from typing import Any

from maestropy.mcp.answers import Result, ToolError
from maestropy.mcp.definitions import Diff, History
from maestropy.mcp.texts import Ours
from maestropy.sdk.history import HistoryEntry
from maestropy.trace.work.model import TracedResource

Entries = Sequence[tuple[str, HistoryEntry]]
"""Entries with their evidence IDs, the newest first."""


def only_work(asked: History, rows: Sequence[TracedResource]) -> str:
    """Return the resource ID of the work that is asked for, also of one that is gone; raise ToolError for several."""
    if not asked.work or any(row.id == asked.work for row in rows):
        return asked.work
    found = [row for row in rows if row.work_name == asked.work and asked.consumer in {"", row.consumer}]
    if len(found) > 1:
        names = ", ".join(f"{row.id} of {row.consumer}" for row in found[:10])
        raise ToolError(f"{asked.work} stands for several works: {names}", remedy="Give one of these resource IDs.")
    return found[0].id if found else asked.work


def of_entries(entries: Entries, asked: History, *, resource_id: str) -> Result:
    """Return the entries that are asked for."""
    chosen = [
        (key, entry)
        for key, entry in entries
        if resource_id in {"", entry.resource_id}
        and (not asked.consumer or entry.consumer == asked.consumer)
        and entry.kind.startswith(asked.kind)
        and entry.time >= asked.since
    ]
    if resource_id and not chosen:
        raise ToolError(
            f"there is no entry of {asked.work} that matches",
            remedy="Give the resource ID of a work (find returns it), and fewer filters.",
        )
    return Result(head={"entries": len(chosen)}, items=[_item(key, entry) for key, entry in chosen])


def _item(key: str, entry: HistoryEntry) -> dict[str, Any]:
    item: dict[str, Any] = {
        "time": entry.time,
        "kind": entry.kind,
        "work": entry.resource_id,
        "consumer": entry.consumer,
        "version": entry.version,
        "source": entry.source,
        "user": entry.user,
        "address": entry.address,
        "operationId": entry.operation_id,
        "result": entry.result,
        "detail": dict(entry.detail),
    }
    return {**{name: value for name, value in item.items() if value}, "evidence": key}


def of_versions(entries: Entries, asked: Diff, *, resource_id: str) -> Result:
    """Return what the requests between two versions of a work changed: names of paths, as the history has no values."""
    own = [
        (key, entry)
        for key, entry in entries
        if entry.resource_id == resource_id and entry.kind in {"work.created", "work.updated"}
    ]
    if not own:
        raise ToolError(
            f"the history has no versions of {asked.work}",
            remedy="Give the resource ID of a work; only servers of maestropy keep a history, for a limited time.",
        )
    newest = asked.to_version or max(entry.version for _, entry in own)
    oldest = asked.from_version or min(entry.version for _, entry in own)
    between = [(key, entry) for key, entry in own if oldest < entry.version <= newest]
    items = [
        {
            "version": entry.version,
            "time": entry.time,
            "source": entry.source,
            "user": entry.user,
            "changes": entry.detail.get("changes") or [],
            "objects": entry.detail.get("objects") or [],
            "isTruncated": bool(entry.detail.get("truncated")),
            "evidence": key,
        }
        for key, entry in between
    ]
    head: dict[str, Any] = {"id": resource_id, "fromVersion": oldest, "toVersion": newest, "versions": len(items)}
    if not items:
        head["summary"] = Ours("The history knows no change between these versions.")
    return Result(head=head, items=items)
