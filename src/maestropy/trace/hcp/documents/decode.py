"""Decode the status of a resource bundle, including nested ManifestWorks.

A bundle carries status feedback of its objects. Most objects of an HCP are ManifestWorks, whose own feedback, as JSON
inside the JSON, is about the HostedCluster. Others are read-only and return the whole object. Some have no feedback
yet. All become the same values; unexpected documents never raise. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.lookup import Json

_PARTS = ("Status", "Reason", "Message", "LastTransitionTime")
_VALUE_FIELDS = ("string", "integer", "boolean", "jsonRaw")
_DEEPEST = 8  # real bundles nest two levels; the limit protects the stack from a damaged document


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCondition:
    """A condition, in Kubernetes' sense."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: datetime | None = None

    def __str__(self) -> str:
        why = ": ".join(part for part in (self.reason, self.message) if part)
        return f"{self.type}={self.status}" + (f" ({why})" if why else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One object as a work agent reported it."""

    kind: str
    namespace: str
    name: str
    applied: tuple[ObjectCondition, ...]
    """Conditions that the work agent sets for the object: Applied, Available, StatusFeedbackSynced."""
    own: tuple[ObjectCondition, ...]
    """Conditions in the status of the object itself."""
    values: Mapping[str, Any]
    """Feedback that is no condition."""
    inner: tuple["Observed", ...] = ()
    """The objects inside, if it is a ManifestWork."""
    has_feedback: bool = False

    @property
    def title(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A resource bundle, as far as the walk reads it."""

    id: str
    name: str
    consumer: str
    version: int
    observed_version: int | None
    """The spec version that the status is about; None while there is no status."""
    created: datetime | None
    updated: datetime | None
    deleted: datetime | None
    conditions: tuple[ObjectCondition, ...]
    observed: tuple[Observed, ...]
    wrapped: tuple[str, ...]
    """The objects it contains, by kind and name."""
    cid: str
    environment: str
    read_only: bool
    where: str

    @property
    def has_status(self) -> bool:
        """Whether an agent ever reported."""
        return self.observed_version is not None

    @property
    def title(self) -> str:
        """The object it contains, as its display name."""
        return self.wrapped[0] if self.wrapped else self.name or self.id


def conditions(documents: Iterable[Json]) -> tuple[ObjectCondition, ...]:
    """Read a list of conditions; entries without a type are left out."""
    return tuple(
        ObjectCondition(
            type=lookup.text(document, "type"),
            status=lookup.text(document, "status"),
            reason=lookup.text(document, "reason"),
            message=lookup.text(document, "message"),
            since=lookup.moment(document, "lastTransitionTime"),
        )
        for document in documents
        if lookup.text(document, "type")
    )


def named(conditions: Iterable[ObjectCondition], name: str) -> ObjectCondition | None:
    """Return one condition."""
    return next((condition for condition in conditions if condition.type == name), None)


def is_true(conditions: Iterable[ObjectCondition], name: str) -> bool:
    """Whether a condition is there and True."""
    condition = named(conditions, name)
    return condition is not None and condition.status == "True"


def bundle(document: Json, *, where: str = "") -> Bundle:
    """Read a bundle as REST shows it."""
    status = lookup.at(document, "status")
    manifests = lookup.objects(document, "manifests")
    labels = lookup.mapping(document, "metadata", "labels")
    return Bundle(
        id=lookup.text(document, "id"),
        name=lookup.text(document, "metadata", "name") or lookup.text(document, "name"),
        consumer=lookup.text(document, "consumer_name"),
        version=lookup.number(document, "version") or 0,
        observed_version=_any_case(status, "ObservedVersion") if status else None,
        created=lookup.moment(document, "created_at"),
        updated=lookup.moment(document, "updated_at"),
        # At the root only; metadata.deletionTimestamp is what the source wrote, if anything.
        deleted=lookup.moment(document, "deleted_at"),
        conditions=conditions(lookup.objects(status, "conditions")),
        observed=tuple(observed(entry) for entry in _resource_status(status)),
        wrapped=tuple(_title(manifest) for manifest in manifests),
        cid=lookup.text(labels, "api.openshift.com/id") or _inner_label(manifests, "api.openshift.com/id"),
        environment=lookup.text(labels, "api.openshift.com/environment")
        or _inner_label(manifests, "api.openshift.com/environment"),
        read_only=any(
            lookup.text(config, "updateStrategy", "type") == "ReadOnly"
            for config in lookup.objects(document, "manifest_configs")
        ),
        where=where,
    )


def observed(entry: Json, *, depth: int = 0) -> Observed:
    """Read what is reported about one manifest."""
    meta = lookup.mapping(entry, "resourceMeta")
    kind = lookup.text(meta, "kind")
    values = feedback(entry)
    status, rest = _status_in(values)
    folded, leftover = fold(rest)
    inner = (
        tuple(observed(entry, depth=depth + 1) for entry in _resource_status(status))
        if kind == "ManifestWork" and depth < _DEEPEST
        else ()
    )
    return Observed(
        kind=kind,
        namespace=lookup.text(meta, "namespace"),
        name=lookup.text(meta, "name"),
        applied=conditions(lookup.objects(entry, "conditions")),
        own=(*conditions(lookup.objects(status, "conditions")), *folded),
        values=leftover,
        inner=inner,
        has_feedback=bool(values),
    )


def feedback(entry: Json) -> dict[str, Any]:
    """Return the values of one manifest's feedback by name; JSON is parsed, and kept as text if it is none."""
    return {
        lookup.text(value, "name"): _value(lookup.mapping(value, "fieldValue"))
        for value in lookup.objects(entry, "statusFeedback", "values")
    }


def fold(values: Mapping[str, Any]) -> tuple[tuple[ObjectCondition, ...], dict[str, Any]]:
    """Join `X-Status`, `X-Reason` ... to conditions; return them and the remaining values."""
    types = [key.removesuffix("-Status") for key in values if key.endswith("-Status") and key != "-Status"]
    used = {f"{kind}-{part}" for kind in types for part in _PARTS}
    folded = tuple(
        ObjectCondition(
            type=kind,
            status=str(values[f"{kind}-Status"]),
            reason=str(values.get(f"{kind}-Reason") or ""),
            message=str(values.get(f"{kind}-Message") or ""),
            since=lookup.parse_moment(str(values.get(f"{kind}-LastTransitionTime") or "")),
        )
        for kind in types
    )
    return folded, {key: value for key, value in values.items() if key not in used}


def every(observed_objects: Iterable[Observed]) -> Iterable[Observed]:
    """Yield the objects and all inside them."""
    for item in observed_objects:
        yield item
        yield from every(item.inner)


def _value(field: Json) -> Any:
    value = next((field[name] for name in _VALUE_FIELDS if field.get(name) is not None), None)
    if field.get("jsonRaw") is not None and isinstance(value, str):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def _status_in(values: Mapping[str, Any]) -> tuple[Json, dict[str, Any]]:
    """Return the object's status among the values, and the other values."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            rest = {key: value for key, value in values.items() if key != name}
            is_whole_object = "kind" in value and "metadata" in value
            return (lookup.mapping(value, "status") if is_whole_object else value), rest
    return lookup.EMPTY, dict(values)


def _resource_status(status: object) -> Sequence[Json]:
    """Return the entries: a list in a bundle, `manifests` of an object in a ManifestWork."""
    entries = lookup.objects(status, "resourceStatus")
    return entries or lookup.objects(status, "resourceStatus", "manifests")


def _any_case(status: object, name: str) -> int:
    for key in (name, name[0].lower() + name[1:]):
        version = lookup.number(status, key)
        if version is not None:
            return version
    return 0


def _inner_label(manifests: Iterable[Json], key: str) -> str:
    return next((label for manifest in manifests if (label := lookup.label(manifest, key))), "")


def _title(manifest: Json) -> str:
    namespace = lookup.namespace(manifest)
    name = f"{namespace}/{lookup.name(manifest)}" if namespace else lookup.name(manifest)
    return f"{lookup.text(manifest, 'kind') or 'object'} {name}"
