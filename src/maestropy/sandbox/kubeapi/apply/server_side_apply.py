"""Server-side apply, and `managedFields` after creates and updates.

Pure: objects, field managers and the time go in; an object with its `managedFields` comes out, or `Conflicts` is
raised. Validation and storage are done elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from maestropy.sandbox.kubeapi.apply import field_merge, field_sets
from maestropy.sandbox.kubeapi.apply.field_sets import EMPTY, Path, Paths
from maestropy.sandbox.kubeapi.schemas.schema import Schema

Json = dict[str, Any]

# Set by the API server or part of the object's name: never in managedFields.
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
class FieldManager:
    """A field manager with its operation and subresource: each combination has its own managedFields entry."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The key of the entry: an applier keeps its entry across API versions."""
        version = "" if self.operation == "Apply" else self.api_version
        return self.name, self.operation, self.subresource, version

    def describe(self) -> str:
        """Return the manager as conflict messages print it."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedFieldsEntry:
    """One entry of `metadata.managedFields`."""

    manager: FieldManager
    time: str
    paths: Paths


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteContext:
    """The field manager, schema, time and force option of one write."""

    manager: FieldManager
    schema: Schema
    now: str
    blank: Json = field(default_factory=dict)
    """An object of the kind with no field set."""
    force: bool = False


class Conflicts(Exception):
    """The apply configuration sets fields that other managers own with another value."""

    def __init__(self, conflicts: Sequence[tuple[FieldManager, Path]]) -> None:
        super().__init__(_message(conflicts))
        self.conflicts = conflicts


def _message(conflicts: Sequence[tuple[FieldManager, Path]]) -> str:
    if len(conflicts) == 1:
        manager, path = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {manager.describe()}: {field_sets.show(path)}"
    lines = []
    for name in dict.fromkeys(manager.describe() for manager, _ in conflicts):
        lines.append(f"conflicts with {name}:")
        lines.extend(f"- {field_sets.show(path)}" for manager, path in conflicts if manager.describe() == name)
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def read_entries(obj: Mapping[str, Any]) -> list[ManagedFieldsEntry]:
    """Return the `managedFields` of an object."""
    return [
        ManagedFieldsEntry(
            manager=FieldManager(
                name=entry.get("manager", ""),
                operation=entry.get("operation", "Update"),
                api_version=entry.get("apiVersion", ""),
                subresource=entry.get("subresource", ""),
            ),
            time=entry.get("time", ""),
            paths=field_sets.decode(entry.get("fieldsV1") or {}),
        )
        for entry in obj.get("metadata", {}).get("managedFields") or []
        if entry
    ]


def _write_entries(obj: Json, entries: Sequence[ManagedFieldsEntry]) -> Json:
    written = []
    for entry in sorted(entries, key=lambda entry: (entry.manager.operation, entry.time, entry.manager.name)):
        item = {
            "manager": entry.manager.name,
            "operation": entry.manager.operation,
            "apiVersion": entry.manager.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": field_sets.encode(entry.paths),
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


def record_new(blank: Json, new: Json, write: WriteContext) -> Json:
    """Return a new object; its manager owns every field that differs from `blank`."""
    return _record(blank, [], new, write)


def record_update(old: Json, new: Json, write: WriteContext) -> Json:
    """Return `new`; the writing manager owns the fields that differ from `old`, other managers lose them.

    An object without managedFields stays without: tracking begins with the first apply.
    """
    entries = read_entries(old)
    return _record(old, entries, new, write) if entries else _write_entries(new, [])


def _record(old: Json, entries: Sequence[ManagedFieldsEntry], new: Json, write: WriteContext) -> Json:
    try:
        comparison = field_merge.compare(_content(old), _content(new), write.schema)
    except field_merge.NotMergeable:
        # An update is not rejected because its managed fields cannot be computed.
        return _write_entries(new, entries)
    touched = _owned(comparison.added | comparison.modified)
    removed = frozenset(comparison.removed)
    if not touched and not removed:
        return _write_entries(new, entries)
    kept = []
    own_entry: ManagedFieldsEntry | None = None
    for entry in entries:
        if entry.manager.identity == write.manager.identity:
            own_entry = entry
        else:
            kept.append(replace(entry, paths=entry.paths - touched - removed))
    owned = ((own_entry.paths if own_entry else EMPTY) - removed) | touched
    time = write.now if touched or own_entry is None else own_entry.time
    kept.append(ManagedFieldsEntry(manager=write.manager, time=time, paths=owned))
    return _write_entries(new, [entry for entry in kept if entry.paths])


def apply(live: Json, config: Json, write: WriteContext) -> Json:
    """Return `live` merged with `config`, without fields the manager no longer applies, with new managedFields."""
    entries = read_entries(live) or _before_first_apply(live, write)
    content = _content(live)
    named = field_merge.fields_of(config, write.schema)
    applied = _owned(named)
    last = next((entry for entry in entries if entry.manager.identity == write.manager.identity), None)
    other_entries = [entry for entry in entries if entry is not last]
    merged = field_merge.merge(content, config, write.schema)
    if last is not None:
        merged = _prune(merged, last.paths, [entry.paths for entry in other_entries] + [named], write.schema)
    comparison = field_merge.compare(content, merged, write.schema)
    changed = frozenset(comparison.added | comparison.modified)
    conflicts = [(entry.manager, path) for entry in other_entries for path in sorted(entry.paths & changed)]
    if conflicts and not write.force:
        raise Conflicts(conflicts)
    removed = frozenset(comparison.removed)
    kept = [replace(entry, paths=entry.paths - changed - removed) for entry in other_entries]
    # The time is that of the manager's last change, not of its last request.
    time = write.now if changed or removed else last.time if last else ""
    kept.append(ManagedFieldsEntry(manager=write.manager, time=time, paths=applied))
    return _write_entries(merged, [entry for entry in kept if entry.paths])


def _before_first_apply(live: Json, write: WriteContext) -> list[ManagedFieldsEntry]:
    """Return the entry for fields written before the first apply: one manager stands for all earlier writers."""
    comparison = field_merge.compare(write.blank, _content(live), write.schema)
    owned = _owned(comparison.added | comparison.modified)
    manager = FieldManager(name="before-first-apply", operation="Update", api_version=write.manager.api_version)
    return [ManagedFieldsEntry(manager=manager, time=write.now, paths=owned)] if owned else []


def _prune(merged: Json, last: Paths, owners: Sequence[Paths], schema: Schema) -> Json:
    """Remove fields that the manager applied last time, does not apply now, and that no other manager owns."""
    lost = field_merge.with_parents(last, schema)
    pruned = field_merge.remove(merged, lost, schema)
    present = field_merge.with_parents(field_merge.fields_of(merged, schema), schema)
    survivors = field_merge.with_parents(field_merge.fields_of(pruned, schema), schema)
    owned = field_merge.with_parents(frozenset().union(*owners), schema)
    result: Json = field_merge.remove(merged, (present - survivors - owned) & lost, schema)
    return result
