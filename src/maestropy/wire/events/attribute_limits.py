"""Limit the attributes of received events: their number, and the length of names and values.

Every attribute is parsed, stored, logged and sent on, so thousands of them in one event would hold up everything else.
Real events have about ten, and only `metadata`, the ObjectMeta of a work, is large.
"""

from collections.abc import Mapping
from typing import TypeVar

from maestropy.wire import errors
from maestropy.wire.events import event

MAX_ATTRIBUTES = 64
MAX_NAME_LENGTH = 64
"""CloudEvents recommends 20 characters at most."""
MAX_CONTEXT_LENGTH = 1024
"""The longest id, source, type, subject, data schema and content type; some have a lower limit of their own."""
MAX_EXTENSION_LENGTH = 64 * 1024
MAX_METADATA_LENGTH = 1024 * 1024
"""The longest `metadata`; the annotations alone may have 256 KiB."""

_Value = TypeVar("_Value")

_PROTOCOL_EXTENSIONS = frozenset(
    (
        event.CLUSTER_NAME,
        event.ORIGINAL_SOURCE,
        event.RESOURCE_ID,
        event.RESOURCE_VERSION,
        event.DELETION_TIMESTAMP,
        event.METADATA,
        event.SEQUENCE_ID,
        event.STATUS_HASH,
        event.LOG_TRACING,
        event.DATABASE_ID,
        event.CREATED_AT,
        event.RESYNC_ID,
    )
)


def check_count(count: int, *, is_complete: bool = True) -> None:
    """Reject an event with too many attributes, before they are read; an incomplete count stopped at the limit."""
    if count > MAX_ATTRIBUTES:
        number = (
            f"{count} attributes, more than {MAX_ATTRIBUTES}" if is_complete else f"over {MAX_ATTRIBUTES} attributes"
        )
        raise errors.MalformedMessage(f"the event has {number}; put the content into its data")


def checked(value: event.CloudEvent) -> event.CloudEvent:
    """Return the event, or raise `MalformedMessage` that names the attribute that is too long."""
    for name, text in (
        ("id", value.id),
        ("source", value.source),
        ("type", value.type),
        ("subject", value.subject),
        ("dataschema", value.data_schema),
        ("datacontenttype", value.content_type),
    ):
        if len(text) > MAX_CONTEXT_LENGTH:
            raise _too_long(name, len(text), limit=MAX_CONTEXT_LENGTH)
    for name, attribute in value.extensions.items():
        if len(name) > MAX_NAME_LENGTH:
            raise errors.MalformedMessage(
                f"extension name {name[:MAX_NAME_LENGTH]!r}... has {len(name)} characters, more than {MAX_NAME_LENGTH}"
            )
        if isinstance(attribute, str | bytes) and len(attribute) > MAX_EXTENSION_LENGTH:
            limit = MAX_METADATA_LENGTH if name == event.METADATA else MAX_EXTENSION_LENGTH
            if len(attribute) > limit:
                raise _too_long(name, len(attribute), limit=limit)
    return value


def bounded(members: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return the members of a stored event; if there are too many, only those that the protocol uses.

    Such events were stored before there was a limit. Their resources can still be sent and deleted.
    """
    if len(members) <= MAX_ATTRIBUTES:
        return dict(members)
    used = event.CONTEXT_ATTRIBUTES | _PROTOCOL_EXTENSIONS
    return {name: members[name] for name in used if name in members}


def _too_long(name: str, length: int, *, limit: int) -> errors.MalformedMessage:
    return errors.MalformedMessage(f"attribute {name} has {length} characters, more than {limit}; shorten it")
