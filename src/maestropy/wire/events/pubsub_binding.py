"""Convert CloudEvents to Pub/Sub messages and back, and tell the topic of an event from its type.

Binary mode only, as in the Go Maestro: the content type is the attribute `Content-Type`, every other attribute is
`ce-<name>`, and the data is the data of the message. No message has an ordering key: resource versions and sequence IDs
order events. Pub/Sub rejects a message with an attribute of more than 1024 bytes for ever, so `encode` does it first.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from maestropy.wire import errors
from maestropy.wire.events import event, text_attributes

VALUE_MAX_BYTES = 1024
"""The maximum size of the value of an attribute."""
MESSAGE_MAX_BYTES = 10_000_000
"""The maximum size of a publish request; it is also that of a message."""
_RESERVED_BYTES = 4096
"""The share of a publish request that is not the message: the name of the topic, and lengths."""
_CONTENT_TYPE = "Content-Type"


@dataclass(frozen=True, slots=True, kw_only=True)
class PubsubMessage:
    """The parts of a Pub/Sub message that carry an event."""

    attributes: Mapping[str, str]
    data: bytes


def encode(value: event.CloudEvent) -> PubsubMessage:
    """Return the message for an event."""
    attributes = text_attributes.encode(value)
    if value.content_type:
        attributes[_CONTENT_TYPE] = value.content_type
    size = len(value.data)
    for name, text in attributes.items():
        length = len(text.encode())
        size += length + len(name)
        if length > VALUE_MAX_BYTES:
            raise errors.MalformedMessage(value_too_large(name.removeprefix(text_attributes.PREFIX), length))
    if size > MESSAGE_MAX_BYTES - _RESERVED_BYTES:
        raise errors.MalformedMessage(
            f"the event has {size} bytes, Pub/Sub carries at most {MESSAGE_MAX_BYTES}; make it smaller"
        )
    return PubsubMessage(attributes=attributes, data=value.data)


def decode(message: PubsubMessage) -> event.CloudEvent:
    """Return the event of a message; attributes without the prefix `ce-` are ignored."""
    attributes = text_attributes.collect(message.attributes.items(), label="attribute")
    version = attributes.pop("specversion", "") or event.SPEC_VERSION
    if version not in event.SPEC_VERSIONS:
        raise errors.MalformedMessage(f"the message has specversion {str(version)[:16]!r}; set ce-specversion to 1.0")
    return text_attributes.decode(
        attributes,
        content_type=message.attributes.get(_CONTENT_TYPE) or event.JSON_CONTENT_TYPE,
        data=message.data,
        missing="CloudEvent missing required attribute: {name}",
    )


def value_too_large(name: str, length: int) -> str:
    """Return why an attribute cannot be sent."""
    remedy = "make labels and annotations smaller" if name == event.METADATA else "make it smaller"
    return f"attribute {name} has {length} bytes, Pub/Sub carries at most {VALUE_MAX_BYTES}; {remedy}"


def is_broadcast(value: event.CloudEvent) -> bool:
    """Return whether an event goes to the broadcast topic: resync requests do, and nothing else."""
    return event.parse_type(value.type).action == event.EventAction.RESYNC_REQUEST
