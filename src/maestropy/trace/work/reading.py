"""Turn documents into the values of `model`: database rows, REST bundles, applied works, live objects.

Pure, and forgiving: a tracer is used when something is wrong, so an unexpected shape becomes an empty value and never
an exception.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from maestropy.trace.work.model import (
    AppliedResource,
    AppliedWork,
    Condition,
    Json,
    Live,
    ManifestReport,
    ObjectKey,
    Owner,
    Row,
    SpecEvent,
    Status,
    Tombstone,
)
from maestropy.wire.event import OPERATION_ID_KEY


def row(document: Json) -> Row:
    """Read a row of the resources table, as the queries build it; its payload is a CloudEvent in JSON."""
    payload = mapping(document.get("payload"))
    metadata = mapping(payload.get("metadata"))
    data = mapping(payload.get("data"))
    return Row(
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
        events=tuple(_event(each) for each in mappings(document.get("events"))),
    )


def bundle(document: Json) -> Row:
    """Read a resource bundle as the REST API shows it."""
    metadata = mapping(document.get("metadata"))
    status = mapping(document.get("status"))
    return Row(
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


def tombstone(document: Json) -> Tombstone:
    """Read a status event that confirmed a deletion."""
    payload = mapping(document.get("payload"))
    metadata = mapping(payload.get("metadata"))
    return Tombstone(
        resource_id=text(document.get("resource_id")),
        source=text(document.get("source")),
        work_name=text(metadata.get("name")),
        consumer=text(payload.get("clustername")) or text(metadata.get("namespace")),
        created=moment(document.get("created_at")),
        manifests=mappings(mapping(payload.get("data")).get("manifests")),
    )


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
        finalizers=_list_of_texts(metadata.get("finalizers")),
        resources=tuple(_applied_resource(each) for each in mappings(status.get("appliedResources"))),
    )


def live(document: Json, *, cluster: str, key: ObjectKey) -> Live:
    """Read an object of a cluster."""
    metadata = mapping(document.get("metadata"))
    owners = mappings(metadata.get("ownerReferences"))
    return Live(
        cluster=cluster,
        key=key,
        state="present",
        uid=text(metadata.get("uid")),
        deleting=moment(metadata.get("deletionTimestamp")),
        finalizers=_list_of_texts(metadata.get("finalizers")),
        owners=tuple(_owner(each) for each in owners),
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
    observed = max((each.generation or 0 for each in applied), default=0)
    return _status({**status, "resourceStatus": manifests}, version=observed, sequence="")


def manifest_key(manifest: Json) -> ObjectKey:
    """Return which object a manifest means."""
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
        found = datetime.fromisoformat(_shortened(value))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _shortened(value: str) -> str:
    """Cut nanoseconds to microseconds, which is all a datetime holds."""
    head, dot, tail = value.partition(".")
    digits = len(tail) - len(tail.lstrip("0123456789"))
    return f"{head}.{tail[:digits][:6]:0<6}{tail[digits:]}" if dot else value


def mapping(value: object) -> Mapping[str, Any]:
    """Return `value` if it is an object."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> tuple[Json, ...]:
    """Return the objects of a list."""
    return tuple(each for each in value if isinstance(each, Mapping)) if isinstance(value, list | tuple) else ()


def text(value: object) -> str:
    """Return `value` if it is a text."""
    return value if isinstance(value, str) else ""


def number(value: object) -> int:
    """Return a whole number, also one that was written as text."""
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        return int(value)
    return int(value) if isinstance(value, int | float) else 0


def _stored_status(document: Json) -> Status | None:
    """Read the status column: the agent's status event; null, {} and nothing all mean that it never answered."""
    data = mapping(document.get("data"))
    found = _status(data, version=document.get("resourceversion"), sequence=document.get("sequenceid"))
    if found is None or not document:
        return None
    return Status(
        version=found.version,
        sequence=found.sequence,
        time=moment(document.get("time")),
        conditions=found.conditions,
        manifests=found.manifests,
    )


def _status(document: Json, *, version: object, sequence: object) -> Status | None:
    manifests = tuple(_manifest_report(each) for each in mappings(document.get("resourceStatus")))
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
        feedback={text(each.get("name")): _feedback_value(mapping(each.get("fieldValue"))) for each in values},
    )


def _feedback_value(value: Json) -> object:
    kinds = ("string", "integer", "boolean", "jsonRaw")
    return next((value[kind] for kind in kinds if value.get(kind) is not None), None)


def _conditions(value: object) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            type=text(each.get("type")),
            status=text(each.get("status")),
            reason=text(each.get("reason")),
            message=text(each.get("message")),
            generation=number(each["observedGeneration"]) if "observedGeneration" in each else None,
        )
        for each in mappings(value)
    )


def _applied_resource(document: Json) -> AppliedResource:
    return AppliedResource(
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
    return {name: each for name, each in mapping(value).items() if isinstance(each, str)}


def _list_of_texts(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, Iterable) else ()


def plural_of(kind: str) -> str:
    """Guess the plural as English forms it, and as nearly all kinds do."""
    low = kind.lower()
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return low[:-1] + "ies"
    return low + ("es" if low.endswith(("s", "x", "ch", "sh")) else "s")
