"""What a bundle says about the objects on its cluster, however deep it is wrapped.

A bundle carries feedback of the objects it holds. Most objects of an HCP are ManifestWorks, whose own feedback, inside
the feedback, speaks about the HostedCluster: JSON in JSON. Others are read-only and bring the whole object. Some have
nothing yet. This module turns all of them into the same values and never fails on one. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from maestropy.trace.hcp import reading
from maestropy.trace.hcp.reading import Json

_PARTS = ("Status", "Reason", "Message", "LastTransitionTime")
_VALUE_FIELDS = ("string", "integer", "boolean", "jsonRaw")
_DEEPEST = 8  # nobody nests deeper than two; a document that does is not to exhaust the stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
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
    applied: tuple[Condition, ...]
    """What the work agent says about the object: Applied, Available, StatusFeedbackSynced."""
    own: tuple[Condition, ...]
    """What the object says about itself."""
    values: Mapping[str, Any]
    """Feedback that is no condition."""
    inner: tuple["Observed", ...] = ()
    """The objects inside, if it is a ManifestWork."""
    has_feedback: bool = False

    @property
    def title(self) -> str:
        """Kind, namespace and name."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A resource bundle, as far as the walk reads it."""

    id: str
    name: str
    consumer: str
    version: int
    observed_version: int | None
    """Of the spec that the status speaks about; None while there is no status."""
    created: datetime | None
    updated: datetime | None
    deleted: datetime | None
    conditions: tuple[Condition, ...]
    observed: tuple[Observed, ...]
    wrapped: tuple[str, ...]
    """The objects it holds, by kind and name."""
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
        """What people know it by: the object it holds."""
        return self.wrapped[0] if self.wrapped else self.name or self.id


def conditions(found: Iterable[Json]) -> tuple[Condition, ...]:
    """Read a list of conditions; what has no type is left out."""
    return tuple(
        Condition(
            type=reading.text(each, "type"),
            status=reading.text(each, "status"),
            reason=reading.text(each, "reason"),
            message=reading.text(each, "message"),
            since=reading.moment(each, "lastTransitionTime"),
        )
        for each in found
        if reading.text(each, "type")
    )


def named(found: Iterable[Condition], name: str) -> Condition | None:
    """Return one condition."""
    return next((each for each in found if each.type == name), None)


def is_true(found: Iterable[Condition], name: str) -> bool:
    """Whether a condition is there and True."""
    condition = named(found, name)
    return condition is not None and condition.status == "True"


def bundle(document: Json, *, where: str = "") -> Bundle:
    """Read a bundle as REST shows it."""
    status = reading.at(document, "status")
    manifests = reading.objects(document, "manifests")
    labels = reading.mapping(document, "metadata", "labels")
    return Bundle(
        id=reading.text(document, "id"),
        name=reading.text(document, "metadata", "name") or reading.text(document, "name"),
        consumer=reading.text(document, "consumer_name"),
        version=reading.number(document, "version") or 0,
        observed_version=_any_case(status, "ObservedVersion") if status else None,
        created=reading.moment(document, "created_at"),
        updated=reading.moment(document, "updated_at"),
        # At the root only; metadata.deletionTimestamp is what the source wrote, if anything.
        deleted=reading.moment(document, "deleted_at"),
        conditions=conditions(reading.objects(status, "conditions")),
        observed=tuple(observed(each) for each in _resource_status(status)),
        wrapped=tuple(_title(each) for each in manifests),
        cid=reading.text(labels, "api.openshift.com/id") or _inner_label(manifests, "api.openshift.com/id"),
        environment=reading.text(labels, "api.openshift.com/environment")
        or _inner_label(manifests, "api.openshift.com/environment"),
        read_only=any(
            reading.text(each, "updateStrategy", "type") == "ReadOnly"
            for each in reading.objects(document, "manifest_configs")
        ),
        where=where,
    )


def observed(entry: Json, *, depth: int = 0) -> Observed:
    """Read what is reported about one manifest."""
    meta = reading.mapping(entry, "resourceMeta")
    kind = reading.text(meta, "kind")
    values = feedback(entry)
    status, rest = _status_in(values)
    folded, leftover = fold(rest)
    inner = (
        tuple(observed(each, depth=depth + 1) for each in _resource_status(status))
        if kind == "ManifestWork" and depth < _DEEPEST
        else ()
    )
    return Observed(
        kind=kind,
        namespace=reading.text(meta, "namespace"),
        name=reading.text(meta, "name"),
        applied=conditions(reading.objects(entry, "conditions")),
        own=(*conditions(reading.objects(status, "conditions")), *folded),
        values=leftover,
        inner=inner,
        has_feedback=bool(values),
    )


def feedback(entry: Json) -> dict[str, Any]:
    """Return the values of one manifest's feedback by name; JSON is parsed, and kept as text if it is none."""
    return {
        reading.text(each, "name"): _value(reading.mapping(each, "fieldValue"))
        for each in reading.objects(entry, "statusFeedback", "values")
    }


def fold(values: Mapping[str, Any]) -> tuple[tuple[Condition, ...], dict[str, Any]]:
    """Join `X-Status`, `X-Reason` ... to conditions; return them and what is left."""
    types = [key.removesuffix("-Status") for key in values if key.endswith("-Status") and key != "-Status"]
    used = {f"{kind}-{part}" for kind in types for part in _PARTS}
    folded = tuple(
        Condition(
            type=kind,
            status=str(values[f"{kind}-Status"]),
            reason=str(values.get(f"{kind}-Reason") or ""),
            message=str(values.get(f"{kind}-Message") or ""),
            since=reading.parse_moment(str(values.get(f"{kind}-LastTransitionTime") or "")),
        )
        for kind in types
    )
    return folded, {key: value for key, value in values.items() if key not in used}


def every(found: Iterable[Observed]) -> Iterable[Observed]:
    """Yield the objects and all inside them."""
    for each in found:
        yield each
        yield from every(each.inner)


def _value(field: Json) -> Any:
    given = next((field[name] for name in _VALUE_FIELDS if field.get(name) is not None), None)
    if field.get("jsonRaw") is not None and isinstance(given, str):
        try:
            return orjson.loads(given)
        except orjson.JSONDecodeError:
            return given
    return given


def _status_in(values: Mapping[str, Any]) -> tuple[Json, dict[str, Any]]:
    """Return the object's status among the values, and the other values."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            rest = {key: each for key, each in values.items() if key != name}
            is_whole_object = "kind" in value and "metadata" in value
            return (reading.mapping(value, "status") if is_whole_object else value), rest
    return reading.EMPTY, dict(values)


def _resource_status(status: object) -> Sequence[Json]:
    """Return the entries: a list in a bundle, `manifests` of an object in a ManifestWork."""
    found = reading.objects(status, "resourceStatus")
    return found or reading.objects(status, "resourceStatus", "manifests")


def _any_case(status: object, name: str) -> int:
    for key in (name, name[0].lower() + name[1:]):
        found = reading.number(status, key)
        if found is not None:
            return found
    return 0


def _inner_label(manifests: Iterable[Json], key: str) -> str:
    return next((found for each in manifests if (found := reading.label(each, key))), "")


def _title(manifest: Json) -> str:
    where = reading.namespace(manifest)
    name = f"{where}/{reading.name(manifest)}" if where else reading.name(manifest)
    return f"{reading.text(manifest, 'kind') or 'object'} {name}"
