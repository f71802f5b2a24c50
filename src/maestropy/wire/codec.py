"""Convert ManifestWorks to CloudEvents and back, for sources and agents.

A source sends spec events and receives status events; an agent receives spec events and sends status events.
The data of a spec event is a ManifestBundle: flat members `manifests` and `executer` (this spelling is the protocol's).
The ManifestWork nests them: `spec.workload.manifests`, `spec.executor`. The data of a status event has a list
`resourceStatus`, the ManifestWork an object `status.resourceStatus.manifests`. Unknown members are kept, except those
beside `manifests` in `spec.workload`, which a bundle cannot hold. IDs, times and sequence IDs are arguments.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from maestropy.wire import errors, json_types, timestamps
from maestropy.wire.events import event
from maestropy.wire.json_types import Object
from maestropy.wire.works import work
from maestropy.wire.works.work import ManifestWork

MANIFESTS_MAX_BYTES = 512000
"""The limit of sources and agents for one work; the server does not check it."""

_raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_raw_list = msgspec.json.Decoder(list[msgspec.Raw] | None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextAttributes:
    """The context attributes that differ for every event."""

    id: str
    source: str
    time: timestamps.Timestamp


def spec_event(
    manifest_work: ManifestWork, *, action: event.EventAction, attributes: ContextAttributes
) -> event.CloudEvent:
    """Return the spec event of a source for `manifest_work`; a work with a deletion timestamp is a delete request."""
    version = manifest_work.annotations.get(work.VERSION_ANNOTATION, "")
    extensions: dict[str, event.Attribute] = {
        event.CLUSTER_NAME: manifest_work.namespace,
        event.ORIGINAL_SOURCE: "",
        event.RESOURCE_ID: manifest_work.uid,
        event.RESOURCE_VERSION: int(version) if version.isdecimal() else manifest_work.generation,
        # The sequence ID annotation belongs to the last status event, not to the spec.
        event.METADATA: _metadata_text(manifest_work.with_annotations({work.SEQUENCE_ID_ANNOTATION: None})),
        event.LOG_TRACING: json_types.encode(manifest_work.tracing).decode(),
    }
    is_deletion = bool(manifest_work.deletion_timestamp)
    if is_deletion:
        extensions[event.DELETION_TIMESTAMP] = timestamps.parse(manifest_work.deletion_timestamp)
    return event.CloudEvent(
        id=attributes.id,
        source=attributes.source,
        time=attributes.time,
        type=f"{event.MANIFEST_BUNDLES}.{event.Subresource.SPEC}.{action}",
        extensions=extensions,
        data=b"" if is_deletion else json_types.encode(manifest_bundle_from_spec(manifest_work.spec)),
    )


def work_from_spec_event(received: event.CloudEvent) -> ManifestWork:
    """Return the work of a spec event, as an agent stores it."""
    _check_data_type(received)
    resource_id = received.text(event.RESOURCE_ID)
    deleted_at = received.timestamp(event.DELETION_TIMESTAMP)
    is_versionless_deletion = deleted_at is not None and event.RESOURCE_VERSION not in received.extensions
    manifest_work = _work_from_metadata(received).with_metadata(
        uid=resource_id,
        generation=0 if is_versionless_deletion else received.integer(event.RESOURCE_VERSION),
        namespace=received.text(event.CLUSTER_NAME),
        resourceVersion=None,
    )
    manifest_work = manifest_work.with_labels({work.ORIGINAL_SOURCE_LABEL: received.source})
    manifest_work = manifest_work.with_annotations(
        {work.DATA_TYPE_ANNOTATION: event.MANIFEST_BUNDLES, **_tracing(received)}
    )
    if deleted_at is not None:
        # A restarted agent does not know this work; the finalizer makes it check the cluster before it reports Deleted.
        return manifest_work.with_metadata(finalizers=[work.FINALIZER], deletionTimestamp=deleted_at.rfc3339_seconds())
    bundle = _read_bundle(received.data)
    if "executor" in bundle:
        # Ignored, it would let the work act with all the permissions of the agent.
        raise errors.InvalidContent('unknown field "executor", did you mean "executer"?')
    return manifest_work.with_spec(**spec_from_manifest_bundle(bundle))


def status_event(
    reported: ManifestWork,
    *,
    action: event.EventAction,
    sequence_id: str,
    attributes: ContextAttributes,
    status_hash: str = "",
    created_at: str = "",
) -> event.CloudEvent:
    """Return the status event by which an agent reports the status of a work; a hash that is known can be given.

    `created_at` is the exact creation time that the server has sent: it says whose deletion a Deleted status confirms.
    """
    if work.ORIGINAL_SOURCE_LABEL not in reported.labels:
        raise errors.MalformedMessage(f"failed to find originalsource from the work {reported.uid}")
    status = reported.status
    body = {name: value for name, value in status.body.items() if name != "resourceStatus"}
    body["conditions"] = body.get("conditions") or []
    if status.manifests:
        body["resourceStatus"] = [manifest.body for manifest in status.manifests]
    return event.CloudEvent(
        id=attributes.id,
        source=attributes.source,
        time=attributes.time,
        type=f"{event.MANIFEST_BUNDLES}.{event.Subresource.STATUS}.{action}",
        extensions={
            event.CLUSTER_NAME: reported.namespace,
            event.ORIGINAL_SOURCE: reported.labels[work.ORIGINAL_SOURCE_LABEL],
            event.RESOURCE_ID: reported.uid,
            event.RESOURCE_VERSION: reported.generation,
            event.SEQUENCE_ID: sequence_id,
            event.STATUS_HASH: status_hash or status.hash(),
            event.METADATA: _metadata_text(reported.with_metadata(resourceVersion=None)),
            event.LOG_TRACING: json_types.encode(reported.tracing).decode(),
            **({event.CREATED_AT: created_at} if created_at else {}),
        },
        data=json_types.encode(body),
    )


def work_from_status_event(received: event.CloudEvent) -> ManifestWork:
    """Return the work of a status event, as a source sees it."""
    _check_data_type(received)
    version = received.integer(event.RESOURCE_VERSION)
    manifest_work = _work_from_metadata(received).with_metadata(
        uid=received.text(event.RESOURCE_ID), generation=version, resourceVersion=str(version)
    )
    sequence_id = received.text(event.SEQUENCE_ID)
    manifest_work = manifest_work.with_annotations({work.SEQUENCE_ID_ANNOTATION: sequence_id, **_tracing(received)})
    body = json_types.decode_object(received.data, label="event data") if received.data else {}
    bundle = json_types.object_at(body, "manifestBundle")
    if bundle:
        manifest_work = manifest_work.with_spec(**spec_from_manifest_bundle(bundle))
    return _with_reported(manifest_work, body, left_out=("manifestBundle",))


def work_from_resource_bundle(bundle: Object) -> ManifestWork:
    """Convert a resource bundle of the REST API to a work."""
    version = json_types.integer_at(bundle, "version")
    manifest_work = ManifestWork({"metadata": json_types.object_at(bundle, "metadata")})
    manifest_work = manifest_work.with_metadata(
        # A source that does not use the SDK may send no metadata.
        uid=manifest_work.uid or json_types.text_at(bundle, "id"),
        name=manifest_work.name or json_types.text_at(bundle, "id"),
        namespace=manifest_work.namespace or json_types.text_at(bundle, "consumer_name"),
        generation=version,
        resourceVersion=str(version),
    )
    manifest_work = manifest_work.with_spec(
        workload={"manifests": [*json_types.objects_at(bundle, "manifests")]},
        manifestConfigs=[*json_types.objects_at(bundle, "manifest_configs")] or None,
        deleteOption=json_types.object_at(bundle, "delete_option") or None,
        executor=json_types.object_at(bundle, "executor") or None,
    )
    status = json_types.object_at(bundle, "status")
    sequence_id = json_types.text_at(status, "SequenceID")
    if sequence_id:
        manifest_work = manifest_work.with_annotations({work.SEQUENCE_ID_ANNOTATION: sequence_id})
    return _with_reported(manifest_work, status, left_out=("manifestBundle", "ObservedVersion", "SequenceID"))


def manifest_bundle_from_spec(spec: Object) -> dict[str, Any]:
    """Convert the spec of a work to a ManifestBundle, the data of a spec event."""
    if "executer" in spec:
        # Dropped, it would let the work act with all the permissions of the agent.
        raise errors.InvalidContent('unknown field "spec.executer", did you mean "executor"?')
    return json_types.merged(
        {"manifests": [*json_types.objects_at(spec, "workload", "manifests")]},
        {name: value for name, value in spec.items() if name not in ("workload", "executor")}
        | {"executer": spec.get("executor")},
    )


def spec_from_manifest_bundle(bundle: Object) -> dict[str, Any]:
    """Convert a ManifestBundle, the data of a spec event, to the spec of a work."""
    return json_types.merged(
        {"workload": {"manifests": [*json_types.objects_at(bundle, "manifests")]}},
        {name: value for name, value in bundle.items() if name not in ("manifests", "executer")}
        | {"executor": bundle.get("executer")},
    )


def check_manifests(manifests: Iterable[bytes]) -> list[Object]:
    """Parse and validate manifests; errors have the texts of the Go SDK."""
    raw = [*manifests]
    if not raw:
        raise errors.InvalidContent("manifests are invalid, Workload manifests should not be empty")
    size = sum(map(_wire_size, raw))
    if size > MANIFESTS_MAX_BYTES:
        raise errors.InvalidContent(
            f"manifests are invalid, the size of manifests is {size} bytes which exceeds the "
            f"{MANIFESTS_MAX_BYTES} limit"
        )
    return [_check_manifest(manifest) for manifest in raw]


def _check_manifest(raw: bytes) -> Object:
    manifest = json_types.decode_object(raw, label="a manifest")
    if not manifest.get("kind"):
        raise errors.InvalidContent("manifests are invalid, Object 'Kind' is missing in manifest")
    metadata = manifest.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        raise errors.InvalidContent("manifests are invalid, name must be set in manifest")
    if metadata.get("generateName"):
        raise errors.InvalidContent("manifests are invalid, generateName must not be set in manifest")
    return manifest


def _wire_size(raw: bytes) -> int:
    """Return the size of a manifest as a protobuf field (tag, length, bytes), which is how Go measures it."""
    length_bytes = max(1, -(-len(raw).bit_length() // 7))
    return 1 + length_bytes + len(raw)


def _read_bundle(data: bytes) -> dict[str, Any]:
    try:
        members = _raw_members.decode(data)
        manifests = _raw_list.decode(members.pop("manifests", msgspec.Raw(b"null"))) or []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # Without the data, which may hold Secrets: this text is logged, and reported in the status of the work.
        raise errors.MalformedMessage(
            f"failed to unmarshal event data of {len(data)} bytes, {json_types.decode_problem(error, data)}"
        ) from error
    # The size limit applies to the bytes on the wire, so it is checked before parsing.
    bundle: dict[str, Any] = {"manifests": check_manifests(map(bytes, manifests))}
    return bundle | json_types.decode_object(msgspec.json.encode(members), label="event data")


def _check_data_type(received: event.CloudEvent) -> None:
    event_type = event.parse_type(received.type)
    if event_type.data_type != event.MANIFEST_BUNDLES:
        raise errors.UnsupportedEvent(f"unsupported cloudevents data type {event_type.data_type}")


def _work_from_metadata(received: event.CloudEvent) -> ManifestWork:
    metadata = {}
    if event.METADATA in received.extensions:
        metadata = json_types.decode_object(received.text(event.METADATA), label="metadata extension")
    manifest_work = ManifestWork({"metadata": metadata})
    return manifest_work if manifest_work.name else manifest_work.with_metadata(name=received.text(event.RESOURCE_ID))


def _metadata_text(manifest_work: ManifestWork) -> str:
    return json_types.encode(manifest_work.metadata).decode()


def _tracing(received: event.CloudEvent) -> dict[str, str]:
    text = received.optional_text(event.LOG_TRACING)
    if not text:
        return {}
    annotations = json_types.text_map_at(
        {event.LOG_TRACING: json_types.decode_object(text, label="logtracing extension")}, event.LOG_TRACING
    )
    return {name: value for name, value in annotations.items() if name.startswith(work.TRACING_PREFIX)}


def _with_reported(manifest_work: ManifestWork, reported: Object, *, left_out: tuple[str, ...]) -> ManifestWork:
    status = {name: value for name, value in reported.items() if name not in (*left_out, "resourceStatus")}
    manifests = json_types.objects_at(reported, "resourceStatus")
    if manifests:
        status["resourceStatus"] = {"manifests": [*manifests]}
    return ManifestWork({**manifest_work.body, "status": status}) if status else manifest_work
