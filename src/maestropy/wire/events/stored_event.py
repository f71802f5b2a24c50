"""Convert CloudEvents to their stored form and back.

The stored form is the CloudEvents JSON format, but `metadata` is an object, so that labels are searchable in jsonb.
The store also keeps the event in parts (`StoredParts`), so that dispatching it again reads no jsonb.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

import msgspec

from maestropy.wire import errors, storable_json
from maestropy.wire import timestamps as instant
from maestropy.wire.events import attribute_limits, event, json_format


class StoredParts(msgspec.Struct, frozen=True, kw_only=True):
    """A stored event in three JSON documents; absent ones are empty."""

    envelope: bytes
    metadata: bytes
    data: bytes

    def document(self) -> str:
        """Return the whole stored document; the parts are joined as bytes, nothing is parsed."""
        joined = [self.envelope[:-1]]
        if self.metadata:
            joined += (b',"metadata":', self.metadata)
        if self.data:
            joined += (b',"data":', self.data)
        joined.append(b"}")
        return b"".join(joined).decode()


def to_parts(value: event.CloudEvent) -> StoredParts:
    """Split an event for storing; its `metadata` must be absent or the text of a JSON object."""
    envelope = envelope_of(value)
    metadata = value.extensions.get(event.METADATA)
    return StoredParts(envelope=envelope, metadata=b"" if metadata is None else _object(metadata), data=value.data)


def envelope_of(value: event.CloudEvent) -> bytes:
    """Return the attributes of an event without metadata and data, as JSON."""
    members = json_format.context_members(value)
    metadata = members.pop(event.METADATA, None)
    envelope = msgspec.json.encode(members)
    # JSON escapes NUL, so one search finds it.
    if b"\\u0000" in envelope or (isinstance(metadata, str) and "\x00" in metadata):
        _reject_nul(value)
    return envelope


def from_parts(parts: StoredParts) -> event.CloudEvent:
    """Rebuild an event from its stored parts."""
    envelope = from_envelope(parts.envelope)
    if not parts.metadata:
        return replace(envelope, data=parts.data)
    extensions = dict(envelope.extensions)
    extensions[event.METADATA] = _text(parts.metadata)
    return replace(envelope, extensions=extensions, data=parts.data)


def from_envelope(envelope: bytes) -> event.CloudEvent:
    """Return the attributes of a stored event, without its metadata and data."""
    plain = json_format.plain_attributes(envelope)
    return _parsed(envelope) if plain is None else event.CloudEvent(**plain._asdict())


def attributes_of(envelope: bytes) -> json_format.PlainAttributes:
    """Return the attributes of a stored event for a resync, which needs those of all works of a cluster."""
    plain = json_format.plain_attributes(envelope)
    if plain is not None:
        return plain
    parsed = _parsed(envelope)
    return json_format.PlainAttributes(
        id=parsed.id,
        source=parsed.source,
        type=parsed.type,
        time=parsed.time,
        content_type=parsed.content_type,
        subject=parsed.subject,
        data_schema=parsed.data_schema,
        extensions=dict(parsed.extensions),
    )


def from_document(stored: bytes | str) -> event.CloudEvent:
    """Parse a stored document."""
    members = attribute_limits.bounded(json_format.split(stored, label="the stored event"))
    metadata = members.pop(event.METADATA, None)
    return json_format.from_members(members, **({} if metadata is None else {event.METADATA: _text(bytes(metadata))}))


def metadata_with(metadata: bytes, changes: Mapping[str, str]) -> str:
    """Return the ObjectMeta with some members replaced; the others are not parsed."""
    members: dict[str, object] = dict(json_format.split(metadata, label="metadata")) if metadata else {}
    members.update(changes)
    return _text(msgspec.json.encode(members))


def event_times(
    created_at: datetime, deleted_at: datetime | None
) -> tuple[instant.Timestamp, instant.Timestamp | None]:
    """Convert the creation and deletion time of a row to protocol timestamps."""
    return instant.from_datetime(created_at), None if deleted_at is None else instant.from_datetime(deleted_at)


def timestamp_members(created: instant.Timestamp, deleted: instant.Timestamp | None) -> dict[str, str]:
    """Return the ObjectMeta members creationTimestamp and deletionTimestamp."""
    members = {"creationTimestamp": created.rfc3339_seconds()}
    if deleted is not None:
        members["deletionTimestamp"] = deleted.rfc3339_seconds()
    return members


def _parsed(envelope: bytes) -> event.CloudEvent:
    """Parse an envelope that has not the usual form, or say what is wrong with it."""
    try:
        members = json_format.split(envelope, label="the stored event")
    except errors.MalformedMessage as error:
        raise errors.MalformedMessage(f"{error}; publish the spec of the work again") from error
    return json_format.from_members(attribute_limits.bounded(members))


def _text(metadata: bytes) -> str:
    """Decode stored bytes; a disk or another program may have damaged them."""
    try:
        return metadata.decode()
    except UnicodeDecodeError as error:
        raise errors.MalformedMessage(f"the stored metadata is not text: {error}") from error


def _object(value: event.Attribute) -> bytes:
    failed = "failed to unmarshal metadata extension to object"
    if not isinstance(value, str):
        raise errors.MalformedMessage(f"{failed}: set it to a string that holds a JSON object")
    raw = value.encode()
    try:
        storable_json.check_json(raw, label="metadata")
        json_format.split(raw, label="it")
    except errors.WireError as error:
        raise errors.MalformedMessage(f"{failed}: {error}") from error
    return raw


def _reject_nul(value: event.CloudEvent) -> None:
    """Reject an event with a NUL character: PostgreSQL cannot store it."""
    attributes: dict[str, object] = {
        "id": value.id,
        "source": value.source,
        "type": value.type,
        "subject": value.subject,
        "datacontenttype": value.content_type,
        "dataschema": value.data_schema,
    }
    for name, text in (attributes | dict(value.extensions)).items():
        if isinstance(text, str) and "\x00" in text:
            raise errors.MalformedMessage(f"attribute {name} holds a NUL character, which cannot be stored; remove it")
