"""Decide whether a message broker can carry a resource, so that the source gets the rejection at once."""

from dataclasses import replace

import msgspec

from maestropy.wire.events import event, json_format, mqtt_binding, pubsub_binding, stored_event

# Reserve for the topic and the attributes that the server adds; the dispatcher measures the real message.
_ADDED_BYTES = 1024
# The times of creation and deletion, which the server adds to the metadata.
_ADDED_METADATA_BYTES = 100
_DELETION_MEMBERS = ("name", "creationTimestamp", "deletionTimestamp")


def problem(parts: stored_event.StoredParts, *, max_packet_bytes: int) -> str:
    """Return why the broker would reject the resource, or an empty string."""
    if len(parts.metadata) > mqtt_binding.STRING_MAX_BYTES:
        return (
            f"its metadata has {len(parts.metadata)} bytes and MQTT carries at most {mqtt_binding.STRING_MAX_BYTES}; "
            "make labels and annotations smaller"
        )
    size = len(parts.envelope) + len(parts.metadata) + len(parts.data) + _ADDED_BYTES
    if size > max_packet_bytes:
        return (
            f"it needs about {size} bytes and the message broker takes at most {max_packet_bytes}; "
            "split the work, or raise the broker's maximum packet size"
        )
    return ""


def pubsub_problem(parts: stored_event.StoredParts) -> str:
    """Return why Pub/Sub would reject the resource, or an empty string."""
    metadata_bytes = len(parts.metadata) + _ADDED_METADATA_BYTES
    if parts.metadata and metadata_bytes > pubsub_binding.VALUE_MAX_BYTES:
        return "its " + pubsub_binding.value_too_large(event.METADATA, metadata_bytes)
    size = len(parts.envelope) + len(parts.metadata) + len(parts.data) + _ADDED_BYTES
    if size > pubsub_binding.MESSAGE_MAX_BYTES:
        return (
            f"it needs about {size} bytes and Pub/Sub carries at most {pubsub_binding.MESSAGE_MAX_BYTES}; "
            "split the work"
        )
    return ""


def fitting_deletion(outgoing: event.CloudEvent) -> event.CloudEvent:
    """Return a delete request with metadata that Pub/Sub can carry; other events are returned as they are.

    A resource that was stored before the server used Pub/Sub may have larger metadata. A deletion needs none of it but
    the name and the times.
    """
    metadata = outgoing.optional_text(event.METADATA)
    if event.DELETION_TIMESTAMP not in outgoing.extensions or len(metadata.encode()) <= pubsub_binding.VALUE_MAX_BYTES:
        return outgoing
    members = json_format.split(metadata.encode(), label=event.METADATA)
    kept = {name: members[name] for name in _DELETION_MEMBERS if name in members}
    return replace(outgoing, extensions={**outgoing.extensions, event.METADATA: msgspec.json.encode(kept).decode()})
