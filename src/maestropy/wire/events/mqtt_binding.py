"""Convert CloudEvents to MQTT 5 messages and back.

In binary mode the content type is a property of the message, every other attribute is a user property `ce-<name>` with
a text value, and the payload is the data. Structured mode (the whole event as JSON) is decoded but never encoded.
The module sends nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from maestropy.wire import errors
from maestropy.wire.events import event, json_format, text_attributes

STRUCTURED = "application/cloudevents+json"
STRING_MAX_BYTES = 65535
"""The maximum size of an MQTT string."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttMessage:
    """The parts of a PUBLISH packet that carry an event."""

    content_type: str
    properties: tuple[tuple[str, str], ...]
    payload: bytes


def encode(value: event.CloudEvent) -> MqttMessage:
    """Return the message for an event."""
    return MqttMessage(
        content_type=_fitting("datacontenttype", value.content_type),
        properties=tuple(
            (name, _fitting(name.removeprefix(text_attributes.PREFIX), text))
            for name, text in text_attributes.encode(value).items()
        ),
        payload=value.data,
    )


def decode(content_type: str, *, properties: Iterable[tuple[str, str]], payload: bytes) -> event.CloudEvent:
    """Return the event of a message; user properties without the prefix `ce-` are ignored."""
    if content_type.lower().startswith(STRUCTURED):
        return json_format.decode(payload)
    attributes = text_attributes.collect(properties, label="user property")
    version = attributes.pop("specversion", "")
    if version not in event.SPEC_VERSIONS:
        problem = f"specversion {str(version)[:16]!r}" if version else "no specversion"
        raise errors.MalformedMessage(
            f"the message is no event: {problem}; set the user property ce-specversion to 1.0"
        )
    missing = "the event has no {name}; set the user property ce-{name}"
    return text_attributes.decode(attributes, content_type=content_type, data=payload, missing=missing)


def _fitting(name: str, text: str) -> str:
    if len(text) > STRING_MAX_BYTES or len(text.encode()) > STRING_MAX_BYTES:
        raise errors.MalformedMessage(
            f"attribute {name} has {len(text.encode())} bytes, MQTT carries at most {STRING_MAX_BYTES}; make it smaller"
        )
    if "\x00" in text:
        raise errors.MalformedMessage(f"attribute {name} holds a NUL character, which MQTT cannot carry; remove it")
    return text
