"""The MQTT 5 binding: message ↔ Event.

In binary mode the content type is a property of the message, every other attribute a user property `ce-<name>` holding
text, and the payload is the data. Structured mode (the whole event as JSON) is read but never written. Nothing here
sends anything.
"""

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass

from maestropy.wire import errors, event, instant, jsonevent

STRUCTURED = "application/cloudevents+json"
STRING_MAX_BYTES = 65535
"""What an MQTT string can hold."""

_PREFIX = "ce-"
_SPEC_VERSIONS = ("1.0", "0.3")
_NAME = re.compile(r"[A-Za-z0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """The parts of a PUBLISH packet that carry an event."""

    content_type: str
    properties: tuple[tuple[str, str], ...]
    payload: bytes


def encode(value: event.Event) -> Message:
    """Return the message for an event."""
    attributes: dict[str, event.Attribute] = {
        "specversion": event.SPEC_VERSION,
        "id": value.id,
        "source": value.source,
        "type": value.type,
    }
    if value.time is not None:
        attributes["time"] = value.time
    if value.subject:
        attributes["subject"] = value.subject
    if value.data_schema:
        attributes["dataschema"] = value.data_schema
    attributes |= value.extensions
    return Message(
        content_type=_fitting("datacontenttype", value.content_type),
        properties=tuple((_PREFIX + name, _fitting(name, _text(attribute))) for name, attribute in attributes.items()),
        payload=value.data,
    )


def decode(content_type: str, *, properties: Iterable[tuple[str, str]], payload: bytes) -> event.Event:
    """Return the event a message carries; other user properties are no concern of ours."""
    if content_type.lower().startswith(STRUCTURED):
        return jsonevent.decode(payload)
    found: dict[str, event.Attribute] = {
        _bare_name(name): value for name, value in properties if name.startswith(_PREFIX)
    }
    version = found.pop("specversion", "")
    if version not in _SPEC_VERSIONS:
        problem = f"specversion {str(version)[:16]!r}" if version else "no specversion"
        raise errors.Malformed(f"the message is no event: {problem}; set the user property ce-specversion to 1.0")
    time = found.pop("time", "")
    return event.Event(
        id=_required(found, "id"),
        source=_required(found, "source"),
        type=_required(found, "type"),
        time=instant.parse(str(time)) if time else None,
        content_type=content_type,
        subject=str(found.pop("subject", "")),
        data_schema=str(found.pop("dataschema", "")),
        extensions=found,
        data=payload,
    )


def _required(found: dict[str, event.Attribute], name: str) -> str:
    value = str(found.pop(name, ""))
    if not value:
        raise errors.Malformed(f"the event has no {name}; set the user property ce-{name}")
    return value


def _bare_name(name: str) -> str:
    bare = name[len(_PREFIX) :]
    if _NAME.fullmatch(bare) is None:
        raise errors.Malformed(f"user property {name[:64]!r} is not allowed: use letters and digits after ce-")
    return bare.lower()


def _text(value: event.Attribute) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            return base64.b64encode(value).decode()
        case instant.Timestamp():
            return value.rfc3339()
        case _:
            return str(value)


def _fitting(name: str, text: str) -> str:
    if len(text) > STRING_MAX_BYTES or len(text.encode()) > STRING_MAX_BYTES:
        raise errors.Malformed(
            f"attribute {name} has {len(text.encode())} bytes, MQTT carries at most {STRING_MAX_BYTES}; make it smaller"
        )
    if "\x00" in text:
        raise errors.Malformed(f"attribute {name} holds a NUL character, which MQTT cannot carry; remove it")
    return text
