"""Who owns which field after a write? Server-side apply and the book-keeping of ordinary writes.

Pure: objects, managers and the time go in, an object with its `managedFields` comes out, or `Conflicts` is raised.
Answers nothing about validity or storage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from maestropy.sandbox.kubeapi import fieldsets, merging
from maestropy.sandbox.kubeapi.fieldsets import EMPTY, Path, Paths
from maestropy.sandbox.kubeapi.schema import Schema

Json = dict[str, Any]

# Set by the API or part of the address: nobody owns these.
_NEVER_OWNED = frozenset(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",)]
    + [
        ("f:metadata", f"f:{name}")
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """Who writes and how; entries of one manager are told apart by operation and subresource."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What makes two entries one: an applier stays the same across API versions."""
        version = "" if self.operation == "Apply" else self.api_version
        return self.name, self.operation, self.subresource, version

    def describe(self) -> str:
        """Return the manager as conflict messages name it."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What one manager owns, and since when."""

    manager: Manager
    time: str
    paths: Paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """The circumstances of one write."""

    manager: Manager
    schema: Schema
    now: str
    blank: Json = field(default_factory=dict)
    """An object of the kind in which nothing is set."""
    force: bool = False


class Conflicts(Exception):
    """The apply wants fields that others own with another value."""

    def __init__(self, found: Sequence[tuple[Manager, Path]]) -> None:
        super().__init__(_message(found))
        self.found = found


def _message(found: Sequence[tuple[Manager, Path]]) -> str:
    if len(found) == 1:
        manager, path = found[0]
        return f"Apply failed with 1 conflict: conflict with {manager.describe()}: {fieldsets.show(path)}"
    lines = []
    for name in dict.fromkeys(manager.describe() for manager, _ in found):
        lines.append(f"conflicts with {name}:")
        lines.extend(f"- {fieldsets.show(path)}" for manager, path in found if manager.describe() == name)
    return f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)


def read_entries(obj: Mapping[str, Any]) -> list[Entry]:
    """Return the `managedFields` of an object as values."""
    return [
        Entry(
            manager=Manager(
                name=entry.get("manager", ""),
                operation=entry.get("operation", "Update"),
                api_version=entry.get("apiVersion", ""),
                subresource=entry.get("subresource", ""),
            ),
            time=entry.get("time", ""),
            paths=fieldsets.decode(entry.get("fieldsV1") or {}),
        )
        for entry in obj.get("metadata", {}).get("managedFields") or []
        if entry
    ]


def _write_entries(obj: Json, entries: Sequence[Entry]) -> Json:
    written = []
    for entry in sorted(entries, key=lambda each: (each.manager.operation, each.time, each.manager.name)):
        item = {
            "manager": entry.manager.name,
            "operation": entry.manager.operation,
            "apiVersion": entry.manager.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": fieldsets.encode(entry.paths),
        }
        item |= {"time": entry.time} if entry.time else {}
        written.append(item | ({"subresource": entry.manager.subresource} if entry.manager.subresource else {}))
    metadata = {**obj["metadata"], "managedFields": written}
    if not written:
        del metadata["managedFields"]
    return {**obj, "metadata": metadata}


def _content(obj: Mapping[str, Any]) -> Json:
    metadata = {name: value for name, value in obj.get("metadata", {}).items() if name != "managedFields"}
    return {**obj, "metadata": metadata}


def _owned(paths: Paths | set[Path]) -> Paths:
    return frozenset(paths) - _NEVER_OWNED - {()}


def record_new(blank: Json, new: Json, write: Write) -> Json:
    """Return a new object with everything in it that is not `blank` owned by the writer."""
    return _record(blank, [], new, write)


def record_update(old: Json, new: Json, write: Write) -> Json:
    """Return `new` with the fields that differ from `old` owned by the writer and taken from everyone else.

    An object of which nobody owns anything stays so: ownership begins with the first apply.
    """
    entries = read_entries(old)
    return _record(old, entries, new, write) if entries else _write_entries(new, [])


def _record(old: Json, entries: Sequence[Entry], new: Json, write: Write) -> Json:
    try:
        difference = merging.compare(_content(old), _content(new), write.schema)
    except merging.NotMergeable:
        # Ownership is a service, not a rule: an ordinary write is not refused because it cannot be told.
        return _write_entries(new, entries)
    touched = _owned(difference.added | difference.modified)
    removed = frozenset(difference.removed)
    if not touched and not removed:
        return _write_entries(new, entries)
    kept = []
    mine: Entry | None = None
    for entry in entries:
        if entry.manager.identity == write.manager.identity:
            mine = entry
        else:
            kept.append(replace(entry, paths=entry.paths - touched - removed))
    owned = ((mine.paths if mine else EMPTY) - removed) | touched
    time = write.now if touched or mine is None else mine.time
    kept.append(Entry(manager=write.manager, time=time, paths=owned))
    return _write_entries(new, [entry for entry in kept if entry.paths])


def apply(live: Json, wish: Json, write: Write) -> Json:
    """Return `live` after `wish` is applied: merged, no longer wished fields removed, ownership written down."""
    entries = read_entries(live) or _before_first_apply(live, write)
    content = _content(live)
    named = merging.fields_of(wish, write.schema)
    wished = _owned(named)
    last = next((entry for entry in entries if entry.manager.identity == write.manager.identity), None)
    others = [entry for entry in entries if entry is not last]
    merged = merging.merge(content, wish, write.schema)
    if last is not None:
        merged = _prune(merged, last.paths, [entry.paths for entry in others] + [named], write.schema)
    difference = merging.compare(content, merged, write.schema)
    changed = frozenset(difference.added | difference.modified)
    found = [(entry.manager, path) for entry in others for path in sorted(entry.paths & changed)]
    if found and not write.force:
        raise Conflicts(found)
    removed = frozenset(difference.removed)
    kept = [replace(entry, paths=entry.paths - changed - removed) for entry in others]
    # The time says when a manager last changed something, not when it last asked.
    time = write.now if changed or removed else last.time if last else ""
    kept.append(Entry(manager=write.manager, time=time, paths=wished))
    return _write_entries(merged, [entry for entry in kept if entry.paths])


def _before_first_apply(live: Json, write: Write) -> list[Entry]:
    """Return who owns what was there before anyone asked: a manager that stands for all earlier writers."""
    difference = merging.compare(write.blank, _content(live), write.schema)
    owned = _owned(difference.added | difference.modified)
    manager = Manager(name="before-first-apply", operation="Update", api_version=write.manager.api_version)
    return [Entry(manager=manager, time=write.now, paths=owned)] if owned else []


def _prune(merged: Json, last: Paths, owners: Sequence[Paths], schema: Schema) -> Json:
    """Remove what the manager applied last time, does not apply now, and nobody else owns."""
    lost = merging.with_parents(last, schema)
    pruned = merging.remove(merged, lost, schema)
    present = merging.with_parents(merging.fields_of(merged, schema), schema)
    survivors = merging.with_parents(merging.fields_of(pruned, schema), schema)
    owned = merging.with_parents(frozenset().union(*owners), schema)
    result: Json = merging.remove(merged, (present - survivors - owned) & lost, schema)
    return result
