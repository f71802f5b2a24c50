"""Convert the attributes of CloudEvents to texts and back, for the brokers whose messages carry texts: MQTT, Pub/Sub.

In the binary mode of both, every attribute but the content type is a text named `ce-<attribute>`, and the data is the
payload of the message. The limits of each broker are in its binding.
"""

import base64
import re
from collections.abc import Iterable

from maestropy.wire import errors, timestamps
from maestropy.wire.events import attribute_limits, event

PREFIX = "ce-"
_NAME = re.compile(r"[A-Za-z0-9]+", re.ASCII)


def encode(value: event.CloudEvent) -> dict[str, str]:
    """Return the attributes by their prefixed names, without the content type; empty extensions are kept."""
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
    return {PREFIX + name: _text(attribute) for name, attribute in attributes.items()}


def collect(properties: Iterable[tuple[str, str]], *, label: str) -> dict[str, event.Attribute]:
    """Return the attributes by their bare names; those without the prefix are ignored. `label` is for errors."""
    attributes: dict[str, event.Attribute] = {
        _bare_name(name, label=label): value for name, value in properties if name.startswith(PREFIX)
    }
    attribute_limits.check_count(len(attributes))
    return attributes


def required(attributes: dict[str, event.Attribute], name: str, *, problem: str) -> str:
    """Take an attribute; raise `MalformedMessage` with `problem` if it is absent or empty."""
    value = str(attributes.pop(name, ""))
    if not value:
        raise errors.MalformedMessage(problem)
    return value


def decode(attributes: dict[str, event.Attribute], *, content_type: str, data: bytes, missing: str) -> event.CloudEvent:
    """Return the event of some attributes, which are taken; `missing` is the error text for an absent `{name}`."""
    time = attributes.pop("time", "")
    received = event.CloudEvent(
        id=required(attributes, "id", problem=missing.format(name="id")),
        source=required(attributes, "source", problem=missing.format(name="source")),
        type=required(attributes, "type", problem=missing.format(name="type")),
        time=timestamps.parse(str(time)) if time else None,
        content_type=content_type,
        subject=str(attributes.pop("subject", "")),
        data_schema=str(attributes.pop("dataschema", "")),
        extensions=attributes,
        data=data,
    )
    return attribute_limits.checked(received)


def _bare_name(name: str, *, label: str) -> str:
    bare = name[len(PREFIX) :]
    if _NAME.fullmatch(bare) is None:
        raise errors.MalformedMessage(f"{label} {name[:64]!r} is not allowed: use letters and digits after ce-")
    return bare.lower()


def _text(value: event.Attribute) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            return base64.b64encode(value).decode()
        case timestamps.Timestamp():
            return value.rfc3339()
        case _:
            return str(value)
