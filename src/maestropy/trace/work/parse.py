"""Parse documents into values of `model`: database rows, REST bundles, applied works, live objects.

Pure and tolerant: the tracer is used when something is wrong, so an unexpected shape becomes an empty value and never
an exception.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson

from maestropy.trace.work.model import (
    AppliedResourceEntry,
    AppliedWork,
    ConsumerPause,
    Json,
    LiveObject,
    ManifestReport,
    ObjectKey,
    Owner,
    ReportedCondition,
    SearchCoverage,
    SpecEvent,
    Status,
    Tombstone,
    TracedResource,
    WorkHold,
)
from maestropy.wire.events import json_format
from maestropy.wire.events.event import OPERATION_ID_KEY

_DIGITS = 19
_MOST = 1 << 63
_ORIGIN = "maestropy/work-origin"
"""Annotation of an AppliedManifestWork with the origin of the applied spec."""


def row(document: Json) -> TracedResource:
    """Read a row of the resources table, as the queries build it; its payload is a CloudEvent in JSON."""
    payload = mapping(document.get("payload"))
    metadata = mapping(payload.get("metadata"))
    data = mapping(payload.get("data"))
    return TracedResource(
        id=text(document.get("id")),
        source=text(document.get("source")) or text(payload.get("source")),
        consumer=text(document.get("consumer_name")) or text(payload.get("clustername")),
        version=number(document.get("version")),
        work_name=text(metadata.get("name")),
        labels=_texts(metadata.get("labels")),
        created=moment(document.get("created_at")),
        updated=moment(document.get("updated_at")),
        deleted=moment(document.get("deleted_at")),
        manifests=mappings(data.get("manifests")),
        configs=mappings(data.get("manifestConfigs")),
        status=_stored_status(mapping(document.get("status"))),
        operation_id=_operation_id(payload.get("logtracing")),
        events=tuple(_event(event) for event in mappings(document.get("events"))),
    )


def bundle(document: Json) -> TracedResource:
    """Read a resource bundle as the REST API shows it."""
    metadata = mapping(document.get("metadata"))
    status = mapping(document.get("status"))
    return TracedResource(
        id=text(document.get("id")),
        source="",
        consumer=text(document.get("consumer_name")),
        version=number(document.get("version")),
        work_name=text(metadata.get("name")),
        labels=_texts(metadata.get("labels")),
        created=moment(document.get("created_at")),
        updated=moment(document.get("updated_at")),
        deleted=moment(document.get("deleted_at")),
        manifests=mappings(document.get("manifests")),
        configs=mappings(document.get("manifest_configs")),
        status=_status(status, version=status.get("ObservedVersion"), sequence=status.get("SequenceID")),
        operation_id=_texts(metadata.get("annotations")).get(OPERATION_ID_KEY, ""),
    )


def coverage(document: Json, *, most_counted: int, newest: int | None, has_computed_ids: bool) -> SearchCoverage:
    """Read how much a search has read.

    Args:
        document: The document of the statement.
        most_counted: The number up to which matches are counted.
        newest: The number of matches at which a search for the newest works ends; None if it goes on.
        has_computed_ids: Whether the search began with computed IDs.
    """
    matches = number(document.get("matches"))
    searched = document.get("searched")
    ends_early = document.get("is_newest_first") is True and newest is not None and matches >= newest
    return SearchCoverage(
        matches=min(matches, most_counted),
        is_counted=matches <= most_counted and searched is None and not ends_early,
        searched=number(searched) if searched is not None else None,
        total=number(document.get("total")),
        is_newest_first=document.get("is_newest_first") is True,
        since=moment(document.get("since")) if document.get("is_newest_first") is True else None,
        by_computed_ids=has_computed_ids and number(document.get("found_by_index")) > 0,
    )


def texts(value: object) -> list[str]:
    """Return the texts of a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def tombstone(document: Json) -> Tombstone:
    """Read a status event that ended a work: a confirmed deletion, or a release."""
    payload = mapping(document.get("payload"))
    metadata = mapping(payload.get("metadata"))
    return Tombstone(
        resource_id=text(document.get("resource_id")),
        source=text(document.get("source")),
        work_name=text(metadata.get("name")),
        consumer=text(payload.get("clustername")) or text(metadata.get("namespace")),
        created=moment(document.get("created_at")),
        manifests=mappings(mapping(payload.get("data")).get("manifests")),
        released=_release(document),
    )


def _release(document: Json) -> str:
    """Return how a released work ended, as the server told its source; empty if an agent confirmed a deletion."""
    status = mapping(document.get("status"))
    if not (document.get("released") or status.get("released")):
        return ""
    conditions = document.get("conditions") or mapping(status.get("data")).get("conditions")
    told = (text(condition.get("message")) for condition in mappings(conditions))
    return next(filter(None, told), "an operator released it; the objects stay on its cluster")


def applied_work(document: Json, *, cluster: str) -> AppliedWork:
    """Read an AppliedManifestWork."""
    metadata, spec = mapping(document.get("metadata")), mapping(document.get("spec"))
    status = mapping(document.get("status"))
    return AppliedWork(
        cluster=cluster,
        name=text(metadata.get("name")),
        uid=text(metadata.get("uid")),
        hub_hash=text(spec.get("hubHash")),
        agent_id=text(spec.get("agentID")),
        work_name=text(spec.get("manifestWorkName")),
        created=moment(metadata.get("creationTimestamp")),
        deleting=moment(metadata.get("deletionTimestamp")),
        evicting=moment(status.get("evictionStartTime")),
        origin=_origin(metadata),
        finalizers=_list_of_texts(metadata.get("finalizers")),
        resources=tuple(_applied_resource(resource) for resource in mappings(status.get("appliedResources"))),
    )


def _origin(metadata: Json) -> str:
    """Return the database that our agent records in an annotation; empty if there is none, or it cannot be read."""
    recorded = text(mapping(metadata.get("annotations")).get(_ORIGIN))
    try:
        return text(mapping(orjson.loads(recorded)).get("database")) if recorded else ""
    except orjson.JSONDecodeError:
        return ""


def hold(document: Json) -> WorkHold:
    """Read a data-safety hold of the database."""
    return WorkHold(
        consumer=text(document.get("consumer_name")),
        reason=text(document.get("reason")),
        message=text(document.get("message")),
        work_count=number(document.get("work_count")),
        works=frozenset(texts(document.get("works"))),
        since=text(document.get("since")),
    )


def pause(document: Json) -> ConsumerPause:
    """Read a pause of the database."""
    return ConsumerPause(
        consumer=text(document.get("consumer_name")),
        by=text(document.get("paused_by")),
        since=text(document.get("paused_at")),
        reason=text(document.get("reason")),
    )


def live(document: Json, *, cluster: str, key: ObjectKey) -> LiveObject:
    """Read an object of a cluster."""
    metadata = mapping(document.get("metadata"))
    owners = mappings(metadata.get("ownerReferences"))
    return LiveObject(
        cluster=cluster,
        key=key,
        state="present",
        uid=text(metadata.get("uid")),
        deleting=moment(metadata.get("deletionTimestamp")),
        finalizers=_list_of_texts(metadata.get("finalizers")),
        owners=tuple(_owner(owner) for owner in owners),
        content=document if "spec" in document or "data" in document or "status" in document else {},
    )


def _owner(document: Json) -> Owner:
    return Owner(
        group=text(document.get("apiVersion")).rpartition("/")[0],
        kind=text(document.get("kind")),
        name=text(document.get("name")),
        uid=text(document.get("uid")),
    )


def work_status(document: Json) -> Status | None:
    """Read the status of a ManifestWork object."""
    status = mapping(document.get("status"))
    manifests = mapping(status.get("resourceStatus")).get("manifests")
    applied = _conditions(status.get("conditions"))
    observed = max((applied_work.generation or 0 for applied_work in applied), default=0)
    return _status({**status, "resourceStatus": manifests}, version=observed, sequence="")


def manifest_key(manifest: Json) -> ObjectKey:
    """Return the object key of a manifest."""
    metadata = mapping(manifest.get("metadata"))
    return ObjectKey(
        group=text(manifest.get("apiVersion")).rpartition("/")[0],
        kind=text(manifest.get("kind")),
        namespace=text(metadata.get("namespace")),
        name=text(metadata.get("name")),
    )


def moment(value: object) -> datetime | None:
    """Read a time as databases, APIs and events write it."""
    if not isinstance(value, str) or not value:
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def mapping(value: object) -> Mapping[str, Any]:
    """Return `value` if it is an object."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> tuple[Json, ...]:
    """Return the objects of a list."""
    return tuple(item for item in value if isinstance(item, Mapping)) if isinstance(value, list | tuple) else ()


def text(value: object) -> str:
    """Return `value` if it is a text."""
    return value if isinstance(value, str) else ""


def number(value: object) -> int:
    """Return a whole number of 64 bits, also one that was written as text; 0 for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _DIGITS:
        value = int(value)
    return int(value) if isinstance(value, int | float) and abs(value) < _MOST else 0


def _stored_status(document: Json) -> Status | None:
    """Read the status column: the status event of the agent; null, {} and nothing mean that it never reported."""
    data = mapping(json_format.parsed_data(document))
    status = _status(data, version=document.get("resourceversion"), sequence=document.get("sequenceid"))
    if status is None or not document:
        return None
    return replace(status, time=moment(document.get("time")))


def _status(document: Json, *, version: object, sequence: object) -> Status | None:
    manifests = tuple(_manifest_report(entry) for entry in mappings(document.get("resourceStatus")))
    conditions = _conditions(document.get("conditions"))
    if not (manifests or conditions or sequence):
        return None
    return Status(
        version=number(version), sequence=text(sequence), time=None, conditions=conditions, manifests=manifests
    )


def _manifest_report(document: Json) -> ManifestReport:
    meta = mapping(document.get("resourceMeta"))
    values = mappings(mapping(document.get("statusFeedback")).get("values"))
    return ManifestReport(
        key=ObjectKey(
            group=text(meta.get("group")),
            kind=text(meta.get("kind")),
            plural=text(meta.get("resource")),
            namespace=text(meta.get("namespace")),
            name=text(meta.get("name")),
        ),
        conditions=_conditions(document.get("conditions")),
        feedback={text(value.get("name")): _feedback_value(mapping(value.get("fieldValue"))) for value in values},
    )


def _feedback_value(value: Json) -> object:
    kinds = ("string", "integer", "boolean", "jsonRaw")
    return next((value[kind] for kind in kinds if value.get(kind) is not None), None)


def _conditions(value: object) -> tuple[ReportedCondition, ...]:
    return tuple(
        ReportedCondition(
            type=text(document.get("type")),
            status=text(document.get("status")),
            reason=text(document.get("reason")),
            message=text(document.get("message")),
            generation=number(document["observedGeneration"]) if "observedGeneration" in document else None,
        )
        for document in mappings(value)
    )


def _applied_resource(document: Json) -> AppliedResourceEntry:
    return AppliedResourceEntry(
        group=text(document.get("group")),
        version=text(document.get("version")),
        plural=text(document.get("resource")),
        namespace=text(document.get("namespace")),
        name=text(document.get("name")),
        uid=text(document.get("uid")),
    )


def _event(document: Json) -> SpecEvent:
    return SpecEvent(
        id=text(document.get("id")),
        type=text(document.get("event_type")),
        created=moment(document.get("created_at")),
        reconciled=moment(document.get("reconciled_date")),
    )


def _operation_id(value: object) -> str:
    tracing: object = value
    if isinstance(value, str):
        try:
            tracing = orjson.loads(value)
        except orjson.JSONDecodeError:
            return ""
    return text(mapping(tracing).get(OPERATION_ID_KEY))


def _texts(value: object) -> dict[str, str]:
    return {name: item for name, item in mapping(value).items() if isinstance(item, str)}


def _list_of_texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, Iterable) else ()


def plural_of(kind: str) -> str:
    """Guess the plural as English forms it, and as nearly all kinds do."""
    low = kind.lower()
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return low[:-1] + "ies"
    return low + ("es" if low.endswith(("s", "x", "ch", "sh")) else "s")
