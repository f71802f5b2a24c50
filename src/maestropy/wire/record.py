"""How events lie in the database: the JSON event format with one change, `metadata` is an object.

That makes labels searchable. The pieces (`Parts`) are what the store keeps beside the jsonb, so that sending an event
again needs no jsonb at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from maestropy.wire import errors, event, instant, jsonevent, storable


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A stored event in three pieces of JSON; absent pieces are empty."""

    envelope: bytes
    metadata: bytes
    data: bytes

    def document(self) -> str:
        """Return the whole stored document; the pieces are joined as bytes, nothing is parsed."""
        joined = [self.envelope[:-1]]
        if self.metadata:
            joined += (b',"metadata":', self.metadata)
        if self.data:
            joined += (b',"data":', self.data)
        joined.append(b"}")
        return b"".join(joined).decode()


def to_parts(value: event.Event) -> Parts:
    """Take an event apart for storing; `metadata` must be a JSON object, as text, or absent."""
    envelope = envelope_of(value)
    metadata = value.extensions.get(event.METADATA)
    return Parts(envelope=envelope, metadata=b"" if metadata is None else _object(metadata), data=value.data)


def envelope_of(value: event.Event) -> bytes:
    """Return the piece of an event that is neither metadata nor data."""
    members = jsonevent.context_members(value)
    metadata = members.pop(event.METADATA, None)
    envelope = msgspec.json.encode(members)
    # NUL is escaped in JSON, so one look tells that there is none.
    if b"\\u0000" in envelope or (isinstance(metadata, str) and "\x00" in metadata):
        _refuse_nul(value)
    return envelope


def from_parts(parts: Parts) -> event.Event:
    """Put an event together again."""
    found = jsonevent.from_members(jsonevent.split(parts.envelope, what="the stored event"))
    if not parts.metadata:
        return replace(found, data=parts.data)
    extensions = dict(found.extensions)
    extensions[event.METADATA] = _text(parts.metadata)
    return replace(found, extensions=extensions, data=parts.data)


def from_document(stored: bytes | str) -> event.Event:
    """Read a stored document."""
    members = jsonevent.split(stored, what="the stored event")
    metadata = members.pop(event.METADATA, None)
    return jsonevent.from_members(members, **({} if metadata is None else {event.METADATA: _text(bytes(metadata))}))


def metadata_with(metadata: bytes, changes: Mapping[str, str]) -> str:
    """Return the ObjectMeta with some of its members set; the others are not touched."""
    members: dict[str, object] = dict(jsonevent.split(metadata, what="metadata")) if metadata else {}
    members.update(changes)
    return _text(msgspec.json.encode(members))


def moments(created_at: datetime, deleted_at: datetime | None) -> tuple[instant.Timestamp, instant.Timestamp | None]:
    """Return a row's two times as the protocol writes them."""
    return instant.from_datetime(created_at), None if deleted_at is None else instant.from_datetime(deleted_at)


def timestamps(created: instant.Timestamp, deleted: instant.Timestamp | None) -> dict[str, str]:
    """Return the members that tell when a work was created and when its deletion was asked for."""
    found = {"creationTimestamp": created.rfc3339_seconds()}
    if deleted is not None:
        found["deletionTimestamp"] = deleted.rfc3339_seconds()
    return found


def _text(metadata: bytes) -> str:
    """Read stored bytes; a disk or another program may have damaged them."""
    try:
        return metadata.decode()
    except UnicodeDecodeError as error:
        raise errors.Malformed(f"the stored metadata is not text: {error}") from error


def _object(value: event.Attribute) -> bytes:
    failed = "failed to unmarshal metadata extension to object"
    if not isinstance(value, str):
        raise errors.Malformed(f"{failed}: set it to a string that holds a JSON object")
    raw = value.encode()
    try:
        storable.check_json(raw, what="metadata")
        jsonevent.split(raw, what="it")
    except errors.WireError as error:
        raise errors.Malformed(f"{failed}: {error}") from error
    return raw


def _refuse_nul(value: event.Event) -> None:
    """PostgreSQL cannot hold NUL in text, so it must not come that far."""
    named: dict[str, object] = {
        "id": value.id,
        "source": value.source,
        "type": value.type,
        "subject": value.subject,
        "datacontenttype": value.content_type,
        "dataschema": value.data_schema,
    }
    for name, text in (named | dict(value.extensions)).items():
        if isinstance(text, str) and "\x00" in text:
            raise errors.Malformed(f"attribute {name} holds a NUL character, which cannot be stored; remove it")
