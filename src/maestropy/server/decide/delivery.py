"""Turn rows into the events that agents and sources receive."""

from dataclasses import replace

import msgspec

from maestropy.store import rows
from maestropy.wire import event, instant, record, resync

_EMPTY = b"{}"


def spec_event(
    spec: rows.Spec, *, action: event.Action, source_id: str, fresh_id: str, now: instant.Timestamp
) -> event.Event:
    """Return a bundle as its agent gets it: from us, under its resource id, with the version we count."""
    stored = record.from_parts(spec.parts)
    created, deleted = record.moments(spec.created_at, spec.deleted_at)
    extensions = dict(stored.extensions)
    extensions[event.RESOURCE_ID] = spec.id
    extensions[event.RESOURCE_VERSION] = spec.version
    extensions[event.CLUSTER_NAME] = spec.consumer
    if spec.parts.metadata:
        names = {"name": spec.id} | record.timestamps(created, deleted)
        extensions[event.METADATA] = record.metadata_with(spec.parts.metadata, names)
    outgoing = replace(stored, source=source_id, type=f"{event.MANIFEST_BUNDLES}.spec.{action}", extensions=extensions)
    if deleted is None:
        return outgoing
    extensions[event.DELETION_TIMESTAMP] = deleted
    return replace(outgoing, id=fresh_id, time=now)


def action_for(event_type: str, *, deleting: bool) -> event.Action:
    """Return the action under which a pending event is sent; a bundle that is going away is only ever deleted."""
    if deleting:
        return event.Action.DELETE_REQUEST
    return event.Action.CREATE_REQUEST if event_type == "Create" else event.Action.UPDATE_REQUEST


def displacing(deletion: event.Event) -> event.Event:
    """Return, in place of a deletion that an agent knows of and does nothing about, one that makes it begin anew.

    An agent finds a work by its id and keeps it under its name. This deletes an id that nobody has, under the name of
    the bundle: a Go agent puts it in the place of what it has, now with the finalizer that its own copy never got, and
    removes what stands under the name. What it says about that id concerns no bundle; the next deletion of the bundle
    itself is one of a work the agent does not have, and such a deletion ends at once.
    """
    resource_id = deletion.text(event.RESOURCE_ID)
    extensions = dict(deletion.extensions)
    extensions[event.RESOURCE_ID] = f"{resource_id}-forgotten"
    extensions.setdefault(event.METADATA, msgspec.json.encode({"name": resource_id}).decode())
    return replace(deletion, extensions=extensions)


def orphan_deletion(
    orphan: resync.Row, *, consumer: str, source_id: str, fresh_id: str, now: instant.Timestamp
) -> event.Event:
    """Return the event that tells an agent to remove a bundle we do not know."""
    return event.Event(
        id=fresh_id,
        source=source_id,
        type=event.SPEC_RESYNC_RESPONSE,
        time=now,
        extensions={
            event.RESOURCE_ID: orphan.id,
            event.RESOURCE_VERSION: orphan.version,
            event.CLUSTER_NAME: consumer,
            event.ORIGINAL_SOURCE: "",
            event.DELETION_TIMESTAMP: now,
        },
    )


def status_event(told: rows.Told) -> event.Event:
    """Return a status as the bundle's source gets it: the agent's event, with the spec it belongs to inside."""
    stored = record.from_document(told.status)
    return replace(stored, data=_with_bundle(stored.data or _EMPTY, told.data))


def _with_bundle(status: bytes, bundle: bytes) -> bytes:
    """Put the spec into the status without parsing either."""
    if not bundle:
        return status
    opened = status.lstrip()
    rest = opened[1:].lstrip()
    comma = b"" if rest.startswith(b"}") else b","
    return b'{"manifestBundle":' + bundle + comma + rest


def status_resync_request(
    hashes: bytes, *, consumer: str, source_id: str, fresh_id: str, now: instant.Timestamp
) -> event.Event:
    """Return the question to an agent which of its statuses we lack."""
    return event.Event(
        id=fresh_id,
        source=source_id,
        type=event.STATUS_RESYNC_REQUEST,
        time=now,
        extensions={event.CLUSTER_NAME: consumer, event.ORIGINAL_SOURCE: ""},
        data=hashes,
    )
