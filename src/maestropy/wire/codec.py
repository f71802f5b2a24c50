"""ManifestWork ↔ CloudEvent, for both ends: sources send specs and read statuses, agents the other way round.

The two shapes differ in spelling: an event carries a flat bundle (`manifests`, `executer`) and a list `resourceStatus`;
a work nests them (`spec.workload.manifests`, `spec.executor`, `status.resourceStatus.manifests`). Members neither side
knows travel along, except those beside `manifests` in `spec.workload`, for which a bundle has no place.
Ids, times and sequence ids are arguments.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from maestropy.wire import errors, event, instant, jsontypes, work
from maestropy.wire.jsontypes import Object
from maestropy.wire.work import ManifestWork

MANIFESTS_MAX_BYTES = 512000
"""What sources and agents allow; the server does not look."""

_raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_raw_list = msgspec.json.Decoder(list[msgspec.Raw] | None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What makes an event this one event."""

    id: str
    source: str
    time: instant.Timestamp


def spec_event(wanted: ManifestWork, *, action: event.Action, stamp: Stamp) -> event.Event:
    """Return the event by which a source asks for `wanted`; a work with a deletion timestamp is asked to go."""
    version = wanted.annotations.get(work.VERSION_ANNOTATION, "")
    extensions: dict[str, event.Attribute] = {
        event.CLUSTER_NAME: wanted.namespace,
        event.ORIGINAL_SOURCE: "",
        event.RESOURCE_ID: wanted.uid,
        event.RESOURCE_VERSION: int(version) if version.isdecimal() else wanted.generation,
        # The sequence id says which report this view came from; it is no wish of the source.
        event.METADATA: _metadata_text(wanted.with_annotations({work.SEQUENCE_ID_ANNOTATION: None})),
        event.LOG_TRACING: jsontypes.encode(wanted.tracing).decode(),
    }
    is_deletion = bool(wanted.deletion_timestamp)
    if is_deletion:
        extensions[event.DELETION_TIMESTAMP] = instant.parse(wanted.deletion_timestamp)
    return event.Event(
        id=stamp.id,
        source=stamp.source,
        time=stamp.time,
        type=f"{event.MANIFEST_BUNDLES}.{event.Subresource.SPEC}.{action}",
        extensions=extensions,
        data=b"" if is_deletion else jsontypes.encode(bundle_from_spec(wanted.spec)),
    )


def work_from_spec_event(received: event.Event) -> ManifestWork:
    """Return what a source wants, as an agent sees it."""
    _check_data_type(received)
    resource_id = received.text(event.RESOURCE_ID)
    deleted_at = received.timestamp(event.DELETION_TIMESTAMP)
    is_versionless_deletion = deleted_at is not None and event.RESOURCE_VERSION not in received.extensions
    found = _work_from_metadata(received).with_metadata(
        uid=resource_id,
        generation=0 if is_versionless_deletion else received.integer(event.RESOURCE_VERSION),
        namespace=received.text(event.CLUSTER_NAME),
        resourceVersion=None,
    )
    found = found.with_labels({work.ORIGINAL_SOURCE_LABEL: received.source})
    found = found.with_annotations({work.DATA_TYPE_ANNOTATION: event.MANIFEST_BUNDLES, **_tracing(received)})
    if deleted_at is not None:
        # An agent that restarted knows nothing of this work; the finalizer makes it look before it says "gone".
        return found.with_metadata(finalizers=[work.FINALIZER], deletionTimestamp=deleted_at.rfc3339_seconds())
    return found.with_spec(**spec_from_bundle(_read_bundle(received.data)))


def status_event(reported: ManifestWork, *, action: event.Action, sequence_id: str, stamp: Stamp) -> event.Event:
    """Return the event by which an agent reports the status of a work."""
    if work.ORIGINAL_SOURCE_LABEL not in reported.labels:
        raise errors.Malformed(f"failed to find originalsource from the work {reported.uid}")
    status = reported.status
    body = {name: value for name, value in status.body.items() if name != "resourceStatus"}
    body["conditions"] = body.get("conditions") or []
    if status.manifests:
        body["resourceStatus"] = [manifest.body for manifest in status.manifests]
    return event.Event(
        id=stamp.id,
        source=stamp.source,
        time=stamp.time,
        type=f"{event.MANIFEST_BUNDLES}.{event.Subresource.STATUS}.{action}",
        extensions={
            event.CLUSTER_NAME: reported.namespace,
            event.ORIGINAL_SOURCE: reported.labels[work.ORIGINAL_SOURCE_LABEL],
            event.RESOURCE_ID: reported.uid,
            event.RESOURCE_VERSION: reported.generation,
            event.SEQUENCE_ID: sequence_id,
            event.STATUS_HASH: status.hash(),
            event.METADATA: _metadata_text(reported.with_metadata(resourceVersion=None)),
            event.LOG_TRACING: jsontypes.encode(reported.tracing).decode(),
        },
        data=jsontypes.encode(body),
    )


def work_from_status_event(received: event.Event) -> ManifestWork:
    """Return a work with the status an agent reported, as its source sees it."""
    _check_data_type(received)
    version = received.integer(event.RESOURCE_VERSION)
    found = _work_from_metadata(received).with_metadata(
        uid=received.text(event.RESOURCE_ID), generation=version, resourceVersion=str(version)
    )
    sequence_id = received.text(event.SEQUENCE_ID)
    found = found.with_annotations({work.SEQUENCE_ID_ANNOTATION: sequence_id, **_tracing(received)})
    body = jsontypes.decode_object(received.data, what="event data") if received.data else {}
    bundle = jsontypes.object_at(body, "manifestBundle")
    if bundle:
        found = found.with_spec(**spec_from_bundle(bundle))
    return _with_reported(found, body, left_out=("manifestBundle",))


def work_from_bundle(bundle: Object) -> ManifestWork:
    """Return a resource bundle of the REST API as a work."""
    version = jsontypes.integer_at(bundle, "version")
    found = ManifestWork({"metadata": jsontypes.object_at(bundle, "metadata")})
    found = found.with_metadata(
        # A source without the SDK may have sent no metadata at all.
        uid=found.uid or jsontypes.text_at(bundle, "id"),
        name=found.name or jsontypes.text_at(bundle, "id"),
        namespace=found.namespace or jsontypes.text_at(bundle, "consumer_name"),
        generation=version,
        resourceVersion=str(version),
    )
    found = found.with_spec(
        workload={"manifests": [*jsontypes.objects_at(bundle, "manifests")]},
        manifestConfigs=[*jsontypes.objects_at(bundle, "manifest_configs")] or None,
        deleteOption=jsontypes.object_at(bundle, "delete_option") or None,
    )
    status = jsontypes.object_at(bundle, "status")
    sequence_id = jsontypes.text_at(status, "SequenceID")
    if sequence_id:
        found = found.with_annotations({work.SEQUENCE_ID_ANNOTATION: sequence_id})
    return _with_reported(found, status, left_out=("manifestBundle", "ObservedVersion", "SequenceID"))


def bundle_from_spec(spec: Object) -> dict[str, Any]:
    """Return a work's spec as the data of an event."""
    return jsontypes.merged(
        {"manifests": [*jsontypes.objects_at(spec, "workload", "manifests")]},
        {name: value for name, value in spec.items() if name not in ("workload", "executor")}
        | {"executer": spec.get("executor")},
    )


def spec_from_bundle(bundle: Object) -> dict[str, Any]:
    """Return the data of a spec event as a work's spec."""
    return jsontypes.merged(
        {"workload": {"manifests": [*jsontypes.objects_at(bundle, "manifests")]}},
        {name: value for name, value in bundle.items() if name not in ("manifests", "executer")}
        | {"executor": bundle.get("executer")},
    )


def check_manifests(manifests: Iterable[bytes]) -> list[Object]:
    """Return the manifests parsed, or refuse them with the words of source and agent."""
    raw = [*manifests]
    if not raw:
        raise errors.Invalid("manifests are invalid, Workload manifests should not be empty")
    size = sum(map(_wire_size, raw))
    if size > MANIFESTS_MAX_BYTES:
        raise errors.Invalid(
            f"manifests are invalid, the size of manifests is {size} bytes which exceeds the "
            f"{MANIFESTS_MAX_BYTES} limit"
        )
    return [_check_manifest(manifest) for manifest in raw]


def _check_manifest(raw: bytes) -> Object:
    manifest = jsontypes.decode_object(raw, what="a manifest")
    if not manifest.get("kind"):
        raise errors.Invalid("manifests are invalid, Object 'Kind' is missing in manifest")
    metadata = manifest.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        raise errors.Invalid("manifests are invalid, name must be set in manifest")
    if metadata.get("generateName"):
        raise errors.Invalid("manifests are invalid, generateName must not be set in manifest")
    return manifest


def _wire_size(raw: bytes) -> int:
    """Return the size of a manifest as a protobuf field: tag, length, bytes."""
    length_bytes = max(1, -(-len(raw).bit_length() // 7))
    return 1 + length_bytes + len(raw)


def _read_bundle(data: bytes) -> dict[str, Any]:
    try:
        members = _raw_members.decode(data)
        manifests = _raw_list.decode(members.pop("manifests", msgspec.Raw(b"null"))) or []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        shown = data[:200].decode(errors="replace")
        raise errors.Malformed(f"failed to unmarshal event data {shown}, {str(error)[:200]}") from error
    # The size that counts is the one on the wire, so the manifests are weighed before they are parsed.
    bundle: dict[str, Any] = {"manifests": check_manifests(map(bytes, manifests))}
    return bundle | jsontypes.decode_object(msgspec.json.encode(members), what="event data")


def _check_data_type(received: event.Event) -> None:
    found = event.parse_type(received.type)
    if found.data_type != event.MANIFEST_BUNDLES:
        raise errors.Unsupported(f"unsupported cloudevents data type {found.data_type}")


def _work_from_metadata(received: event.Event) -> ManifestWork:
    metadata = {}
    if event.METADATA in received.extensions:
        metadata = jsontypes.decode_object(received.text(event.METADATA), what="metadata extension")
    found = ManifestWork({"metadata": metadata})
    return found if found.name else found.with_metadata(name=received.text(event.RESOURCE_ID))


def _metadata_text(found: ManifestWork) -> str:
    return jsontypes.encode(found.metadata).decode()


def _tracing(received: event.Event) -> dict[str, str]:
    text = received.optional_text(event.LOG_TRACING)
    if not text:
        return {}
    found = jsontypes.text_map_at(
        {event.LOG_TRACING: jsontypes.decode_object(text, what="logtracing extension")}, event.LOG_TRACING
    )
    return {name: value for name, value in found.items() if name.startswith(work.TRACING_PREFIX)}


def _with_reported(found: ManifestWork, reported: Object, *, left_out: tuple[str, ...]) -> ManifestWork:
    status = {name: value for name, value in reported.items() if name not in (*left_out, "resourceStatus")}
    manifests = jsontypes.objects_at(reported, "resourceStatus")
    if manifests:
        status["resourceStatus"] = {"manifests": [*manifests]}
    return ManifestWork({**found.body, "status": status}) if status else found
