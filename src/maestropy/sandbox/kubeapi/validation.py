"""Is this object acceptable? The rules every kind shares: names, labels, owners, finalizers, what may not change.

Pure: returns causes, raises nothing. Rules of single kinds are in `kindrules`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from maestropy.sandbox.kubeapi import names
from maestropy.sandbox.kubeapi.kinds import Kind
from maestropy.sandbox.kubeapi.problems import Cause

Json = dict[str, Any]

_MAX_ANNOTATIONS = 256 * 1024
_BUILTIN_FINALIZERS = {"foregroundDeletion", "orphan", "kubernetes"}


def required(field: str, why: str = "") -> Cause:
    """Return the cause for something that is missing."""
    return Cause(field=field, message=f"Required value{': ' + why if why else ''}", reason="FieldValueRequired")


def wrong(field: str, value: Any, why: str) -> Cause:
    """Return the cause for something that is not as it should be."""
    return Cause(field=field, message=f"Invalid value: {show(value)}: {why}")


def not_allowed(field: str, why: str) -> Cause:
    """Return the cause for something that must not be there."""
    return Cause(field=field, message=f"Forbidden: {why}", reason="FieldValueForbidden")


def unsupported(field: str, value: Any, allowed: list[str]) -> Cause:
    """Return the cause for a value outside of an enumeration."""
    values = ", ".join(f'"{each}"' for each in allowed)
    message = f"Unsupported value: {show(value)}: supported values: {values}"
    return Cause(field=field, message=message, reason="FieldValueNotSupported")


def show(value: Any) -> str:
    """Return a value as messages quote it."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def metadata_causes(kind: Kind, obj: Mapping[str, Any]) -> Iterator[Cause]:
    """Yield what is wrong with the metadata of a new object."""
    metadata = obj["metadata"]
    name = metadata.get("name")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif fault := names.object_name(str(name), kind.plural):
        yield wrong("metadata.name", name, fault)
    if metadata.get("namespace") and (fault := names.namespace_name(metadata["namespace"])):
        yield wrong("metadata.namespace", metadata["namespace"], fault)
    yield from _label_causes("metadata.labels", metadata.get("labels") or {})
    yield from _annotation_causes(metadata.get("annotations") or {})
    yield from _owner_causes(metadata.get("ownerReferences") or [])
    yield from _finalizer_causes(metadata.get("finalizers") or [])


def _label_causes(field: str, labels: Mapping[str, Any]) -> Iterator[Cause]:
    for key, value in labels.items():
        if fault := names.label_key(key):
            yield wrong(field, key, fault)
        if fault := names.label_value(str(value)):
            yield wrong(field, value, fault)


def _annotation_causes(annotations: Mapping[str, Any]) -> Iterator[Cause]:
    for key in annotations:
        if fault := names.label_key(key.lower()):
            yield wrong("metadata.annotations", key, fault)
    size = sum(len(key.encode()) + len(str(value).encode()) for key, value in annotations.items())
    if size > _MAX_ANNOTATIONS:
        message = f"Too long: may not be more than {_MAX_ANNOTATIONS} bytes"
        yield Cause(field="metadata.annotations", message=message, reason="FieldValueTooLong")


def _owner_causes(owners: list[Json]) -> Iterator[Cause]:
    where = "metadata.ownerReferences"
    for owner in owners:
        if not owner.get("apiVersion"):
            yield wrong(f"{where}.apiVersion", "", "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                yield wrong(f"{where}.{field}", "", "must not be empty")
    if sum(1 for owner in owners if owner.get("controller")) > 1:
        message = "Only one reference can have Controller set to true"
        yield wrong("metadata.ownerReferences", "ownerReferences", message)


def _finalizer_causes(finalizers: list[Any]) -> Iterator[Cause]:
    for index, finalizer in enumerate(finalizers):
        where = f"metadata.finalizers[{index}]"
        if fault := names.label_key(str(finalizer)):
            yield wrong(where, finalizer, fault)
        elif "/" not in str(finalizer) and finalizer not in _BUILTIN_FINALIZERS:
            yield wrong(where, finalizer, "name is neither a standard finalizer name nor is it fully qualified")
    if {"foregroundDeletion", "orphan"} <= set(finalizers):
        yield wrong("metadata.finalizers", finalizers, "finalizer orphan and foregroundDeletion cannot be both set")


def update_causes(kind: Kind, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Cause]:
    """Yield what is wrong with the metadata of a changed object."""
    yield from metadata_causes(kind, new)
    before, after = old["metadata"], new["metadata"]
    for field in ("name", "namespace", "uid"):
        if before.get(field) != after.get(field):
            yield wrong(f"metadata.{field}", after.get(field), "field is immutable")
    added = [each for each in after.get("finalizers") or [] if each not in (before.get("finalizers") or [])]
    if before.get("deletionTimestamp") and added:
        listed = ", ".join(f'"{each}"' for each in added)
        why = (
            f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
        )
        yield not_allowed("metadata.finalizers", why)
