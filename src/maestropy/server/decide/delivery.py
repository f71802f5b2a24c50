"""Build the CloudEvents that agents and sources receive from rows of the store.

Pure: the controllers read the rows and send the events.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec

from maestropy.store import rows
from maestropy.wire import codec, resync, timestamps
from maestropy.wire.events import event, stored_event

_EMPTY = b"{}"


def spec_event(
    spec: rows.ResourceSpec,
    *,
    action: event.EventAction,
    attributes: Callable[[], codec.ContextAttributes],
    source_id: str,
    resync_id: str = "",
) -> event.CloudEvent:
    """Return the event that carries a resource to its agent: our source ID, the resource ID and its stored version.

    `resync_id` names the resync request that it answers. Only a delete request needs `attributes` of its own: every
    other event keeps those of the source's event.
    """
    stored = stored_event.attributes_of(spec.parts.envelope)
    created, deleted = stored_event.event_times(spec.created_at, spec.deleted_at)
    extensions = stored.extensions
    extensions[event.RESOURCE_ID] = spec.id
    extensions[event.RESOURCE_VERSION] = spec.version
    extensions[event.CLUSTER_NAME] = spec.consumer
    extensions[event.CREATED_AT] = created.rfc3339()
    if spec.database_id:
        extensions[event.DATABASE_ID] = spec.database_id
    if spec.parts.metadata:
        names = {"name": spec.id} | stored_event.timestamp_members(created, deleted)
        extensions[event.METADATA] = stored_event.metadata_with(spec.parts.metadata, names)
    if resync_id:
        extensions[event.RESYNC_ID] = resync_id
    id_, time = stored.id, stored.time
    if deleted is not None:
        own = attributes()
        id_, time = own.id, own.time
        extensions[event.DELETION_TIMESTAMP] = deleted
    # Not `replace`, which costs more than the rest: a resync builds one of these for every work.
    return event.CloudEvent(
        id=id_,
        source=source_id,
        type=f"{event.MANIFEST_BUNDLES}.spec.{action}",
        time=time,
        content_type=stored.content_type,
        subject=stored.subject,
        data_schema=stored.data_schema,
        extensions=extensions,
        data=spec.parts.data,
    )


def action_for(event_type: str, *, is_deleting: bool) -> event.EventAction:
    """Return the action of a pending event; a resource that is being deleted is only sent as a delete request."""
    if is_deleting:
        return event.EventAction.DELETE_REQUEST
    return event.EventAction.CREATE_REQUEST if event_type == "Create" else event.EventAction.UPDATE_REQUEST


def replacement_deletion(deletion: event.CloudEvent) -> event.CloudEvent:
    """Return a delete request that makes an agent start a deletion anew that it has received and ignores.

    A Go agent looks a work up by its ID but stores it under its name. This request carries an unused ID and the name of
    the resource: the agent replaces its cached copy, now with the finalizer that the copy lacked, and deletes the
    objects of the work. The server has no resource with that ID and ignores its status. The next delete request for the
    resource itself then concerns a work that the agent does not have, and the agent confirms it at once.
    """
    resource_id = deletion.text(event.RESOURCE_ID)
    extensions = dict(deletion.extensions)
    extensions[event.RESOURCE_ID] = f"{resource_id}-forgotten"
    extensions.setdefault(event.METADATA, msgspec.json.encode({"name": resource_id}).decode())
    return replace(deletion, extensions=extensions)


def orphan_deletion(
    orphan: resync.StoredVersion,
    *,
    attributes: codec.ContextAttributes,
    consumer: str,
    database_id: str,
    extensions: Mapping[str, event.Attribute] | None = None,
) -> event.CloudEvent:
    """Return the delete request for a work that an agent reported and the server does not have.

    No source requested it, so our agents keep the objects for the eviction grace period.
    """
    deletion = removal(orphan, attributes=attributes, consumer=consumer, database_id=database_id)
    extra: dict[str, event.Attribute] = {event.ORPHAN: True, **(extensions or {})}
    return replace(deletion, type=event.SPEC_RESYNC_RESPONSE, extensions={**deletion.extensions, **extra})


def removal(
    removed: resync.StoredVersion, *, attributes: codec.ContextAttributes, consumer: str, database_id: str
) -> event.CloudEvent:
    """Return the delete request for a resource that a source deleted and another agent of the consumer confirmed."""
    extensions: dict[str, event.Attribute] = {
        event.RESOURCE_ID: removed.id,
        event.RESOURCE_VERSION: removed.version,
        event.CLUSTER_NAME: consumer,
        event.ORIGINAL_SOURCE: "",
        event.DELETION_TIMESTAMP: attributes.time,
    }
    if database_id:
        extensions[event.DATABASE_ID] = database_id
    if removed.created:
        # The agent repeats it with its Deleted status, which must not remove the next incarnation.
        metadata = {"name": removed.id, "creationTimestamp": removed.created}
        extensions[event.METADATA] = msgspec.json.encode(metadata).decode()
    return event.CloudEvent(
        id=attributes.id, source=attributes.source, type=event.SPEC_DELETE, time=attributes.time, extensions=extensions
    )


def status_event(status: rows.ResourceStatus) -> event.CloudEvent:
    """Return the event that carries a status to the source: the agent's event with the spec added."""
    stored = stored_event.from_document(status.status)
    return replace(stored, data=_with_manifest_bundle(stored.data or _EMPTY, status.data))


def _with_manifest_bundle(status: bytes, manifests: bytes) -> bytes:
    """Insert the manifest bundle into the status document without parsing either."""
    if not manifests:
        return status
    document = status.lstrip()
    members = document[1:].lstrip()
    comma = b"" if members.startswith(b"}") else b","
    return b'{"manifestBundle":' + manifests + comma + members


def status_resync_request(
    hashes: bytes, *, consumer: str, source_id: str, event_id: str, now: timestamps.Timestamp
) -> event.CloudEvent:
    """Return the status resync request: the agent sends the statuses whose hash differs; `now` is database time."""
    return event.CloudEvent(
        id=event_id,
        source=source_id,
        type=event.STATUS_RESYNC_REQUEST,
        time=now,
        extensions={event.CLUSTER_NAME: consumer, event.ORIGINAL_SOURCE: "", event.DATABASE_TIME: now},
        data=hashes,
    )
