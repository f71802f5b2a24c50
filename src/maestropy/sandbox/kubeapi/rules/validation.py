"""Validate the metadata of all kinds: names, labels, owner references, finalizers, immutable fields.

Pure: returns causes, raises nothing. The rules of single kinds are in `builtin_validation`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from maestropy.sandbox.kubeapi.errors import Cause
from maestropy.sandbox.kubeapi.rules import names
from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind

Json = dict[str, Any]

_MAX_ANNOTATIONS = 256 * 1024
_BUILTIN_FINALIZERS = {"foregroundDeletion", "orphan", "kubernetes"}


def required(field: str, why: str = "") -> Cause:
    """Return the cause for a missing field."""
    return Cause(field=field, message=f"Required value{': ' + why if why else ''}", reason="FieldValueRequired")


def invalid_value(field: str, value: Any, why: str) -> Cause:
    """Return the cause for an invalid value."""
    return Cause(field=field, message=f"Invalid value: {show(value)}: {why}")


def forbidden(field: str, why: str) -> Cause:
    """Return the cause for a forbidden field or change."""
    return Cause(field=field, message=f"Forbidden: {why}", reason="FieldValueForbidden")


def unsupported(field: str, value: Any, allowed: list[str]) -> Cause:
    """Return the cause for a value that is not in the enumeration."""
    values = ", ".join(f'"{choice}"' for choice in allowed)
    message = f"Unsupported value: {show(value)}: supported values: {values}"
    return Cause(field=field, message=message, reason="FieldValueNotSupported")


def show(value: Any) -> str:
    """Return a value as messages quote it."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def metadata_causes(kind: ServedKind, obj: Mapping[str, Any]) -> Iterator[Cause]:
    """Yield the errors in the metadata of a new object."""
    metadata = obj["metadata"]
    name = metadata.get("name")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif fault := names.object_name(str(name), kind.plural):
        yield invalid_value("metadata.name", name, fault)
    if metadata.get("namespace") and (fault := names.namespace_name(metadata["namespace"])):
        yield invalid_value("metadata.namespace", metadata["namespace"], fault)
    yield from _label_causes("metadata.labels", metadata.get("labels") or {})
    yield from _annotation_causes(metadata.get("annotations") or {})
    yield from _owner_causes(metadata.get("ownerReferences") or [])
    yield from _finalizer_causes(metadata.get("finalizers") or [])


def _label_causes(field: str, labels: Mapping[str, Any]) -> Iterator[Cause]:
    for key, value in labels.items():
        if fault := names.label_key(key):
            yield invalid_value(field, key, fault)
        if fault := names.label_value(str(value)):
            yield invalid_value(field, value, fault)


def _annotation_causes(annotations: Mapping[str, Any]) -> Iterator[Cause]:
    for key in annotations:
        if fault := names.label_key(key.lower()):
            yield invalid_value("metadata.annotations", key, fault)
    size = sum(len(key.encode()) + len(str(value).encode()) for key, value in annotations.items())
    if size > _MAX_ANNOTATIONS:
        message = f"Too long: may not be more than {_MAX_ANNOTATIONS} bytes"
        yield Cause(field="metadata.annotations", message=message, reason="FieldValueTooLong")


def _owner_causes(owners: list[Json]) -> Iterator[Cause]:
    path = "metadata.ownerReferences"
    for owner in owners:
        if not owner.get("apiVersion"):
            yield invalid_value(f"{path}.apiVersion", "", "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                yield invalid_value(f"{path}.{field}", "", "must not be empty")
    if sum(1 for owner in owners if owner.get("controller")) > 1:
        message = "Only one reference can have Controller set to true"
        yield invalid_value("metadata.ownerReferences", "ownerReferences", message)


def _finalizer_causes(finalizers: list[Any]) -> Iterator[Cause]:
    for index, finalizer in enumerate(finalizers):
        path = f"metadata.finalizers[{index}]"
        if fault := names.label_key(str(finalizer)):
            yield invalid_value(path, finalizer, fault)
        elif "/" not in str(finalizer) and finalizer not in _BUILTIN_FINALIZERS:
            yield invalid_value(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified")
    if {"foregroundDeletion", "orphan"} <= set(finalizers):
        yield invalid_value(
            "metadata.finalizers", finalizers, "finalizer orphan and foregroundDeletion cannot be both set"
        )


def update_causes(kind: ServedKind, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Cause]:
    """Yield the errors in the metadata of a changed object."""
    yield from metadata_causes(kind, new)
    before, after = old["metadata"], new["metadata"]
    for field in ("name", "namespace", "uid"):
        if before.get(field) != after.get(field):
            yield invalid_value(f"metadata.{field}", after.get(field), "field is immutable")
    added = [
        finalizer for finalizer in after.get("finalizers") or [] if finalizer not in (before.get("finalizers") or [])
    ]
    if before.get("deletionTimestamp") and added:
        listed = ", ".join(f'"{finalizer}"' for finalizer in added)
        why = (
            f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
        )
        yield forbidden("metadata.finalizers", why)
