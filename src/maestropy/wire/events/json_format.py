"""Encode and decode CloudEvents in the JSON format; the data is not parsed.

Messages in structured mode use it. The database stores a variant in which `metadata` is an object
(see `maestropy.wire.events.stored_event`).
"""

import base64
import binascii
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

import msgspec

from maestropy.wire import errors, json_types, timestamps
from maestropy.wire.events import attribute_limits, event

RawMembers = dict[str, msgspec.Raw]
"""The members of a JSON object, not parsed."""


class PlainAttributes(NamedTuple):
    """The attributes of an event; quicker to make than the event."""

    id: str
    source: str
    type: str
    time: timestamps.Timestamp | None
    content_type: str
    subject: str
    data_schema: str
    extensions: dict[str, event.Attribute]


_members = msgspec.json.Decoder(RawMembers)
_text = msgspec.json.Decoder(str)
_scalar = msgspec.json.Decoder(bool | int | float | str)
_scalars = msgspec.json.Decoder(dict[str, bool | int | str])
_CONTEXT_STRINGS = ("id", "source", "type", "time", "datacontenttype", "subject", "dataschema")


def split(document: bytes | str, *, label: str) -> RawMembers:
    """Split a JSON object into its members without parsing them; `label` names the object in errors."""
    try:
        return _members.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.MalformedMessage(
            f"{label} is not a JSON object: {json_types.decode_problem(error, document)}"
        ) from error


def decode(document: bytes | str) -> event.CloudEvent:
    """Parse one event in the JSON format."""
    members = split(document, label="the structured event")
    attribute_limits.check_count(len(members))
    version = _string(members, "specversion")
    if version not in event.SPEC_VERSIONS:
        raise errors.MalformedMessage(f"unsupported specversion {version[:16]!r}; set it to {event.SPEC_VERSION}")
    if "data" in members and "data_base64" in members:
        raise errors.MalformedMessage("the structured event has both data and data_base64; send one of them")
    return attribute_limits.checked(from_members(members))


def encode(value: event.CloudEvent) -> bytes:
    """Write one event in the JSON format."""
    members = context_members(value)
    if value.data:
        if is_json(value.content_type):
            members["data"] = msgspec.Raw(value.data)
        else:
            members["data_base64"] = base64.b64encode(value.data).decode()
    return msgspec.json.encode(members)


def from_members(members: RawMembers, **more: event.Attribute) -> event.CloudEvent:
    """Build an event from unparsed members; `more` are extensions that are not among them."""
    time = _string(members, "time")
    return event.CloudEvent(
        id=_string(members, "id"),
        source=_string(members, "source"),
        type=_string(members, "type"),
        time=_timestamp(time) if time else None,
        content_type=_string(members, "datacontenttype") or event.JSON_CONTENT_TYPE,
        subject=_string(members, "subject"),
        data_schema=_string(members, "dataschema"),
        extensions={
            event.extension_name(name): _extension(name, raw)
            for name, raw in members.items()
            if name not in event.CONTEXT_ATTRIBUTES
        }
        | more,
        data=_data(members),
    )


def plain_attributes(document: bytes) -> PlainAttributes | None:
    """Parse an event of the usual form in one step: no data, and every attribute a string, a boolean or a small number.

    Return None for every other document: `split` and `from_members` parse it, or say what is wrong with it.
    """
    try:
        members = _scalars.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if len(members) > attribute_limits.MAX_ATTRIBUTES or "data" in members or "data_base64" in members:
        return None
    members.pop("specversion", None)
    strings = [members.pop(name, "") for name in _CONTEXT_STRINGS]
    for value in strings:
        if type(value) is not str:
            return None
    for name, value in members.items():
        if type(value) is int and not event.INT32_MIN <= value <= event.INT32_MAX:
            return None
        if len(name) > attribute_limits.MAX_NAME_LENGTH:
            return None
    id_, source, type_, time, content_type, subject, data_schema = cast("list[str]", strings)
    return PlainAttributes(
        id_,
        source,
        type_,
        _timestamp(time) if time else None,
        content_type or event.JSON_CONTENT_TYPE,
        subject,
        data_schema,
        {_plain_name(name): value for name, value in members.items()},
    )


# All events have the same dozen extensions. Long names do not get here, so the cache stays small.
_plain_name = lru_cache(maxsize=256)(event.extension_name)


def context_members(value: event.CloudEvent) -> dict[str, object]:
    """Return all attributes of an event, without its data, as JSON members."""
    members: dict[str, object] = {
        "specversion": event.SPEC_VERSION,
        "id": value.id,
        "source": value.source,
        "type": value.type,
    }
    if value.content_type:
        members["datacontenttype"] = value.content_type
    if value.time is not None:
        members["time"] = value.time.rfc3339()
    if value.subject:
        members["subject"] = value.subject
    if value.data_schema:
        members["dataschema"] = value.data_schema
    for name, attribute in value.extensions.items():
        members[name] = _json_value(attribute)
    return members


def is_json(content_type: str) -> bool:
    """Return whether data of this content type is JSON and can be embedded in a JSON document."""
    return content_type in ("", event.JSON_CONTENT_TYPE) or content_type.partition(";")[0].rstrip().endswith("json")


def parsed_data(document: Mapping[str, Any]) -> Any:
    """Return the data of an event that was parsed whole; None if there is none.

    A Go server behind Pub/Sub stores and logs the JSON of statuses in base64.
    """
    data, encoded = document.get("data"), document.get("data_base64")
    if data is not None or not isinstance(encoded, str):
        return data
    try:
        return msgspec.json.decode(base64.b64decode(encoded, validate=True))
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _data(members: RawMembers) -> bytes:
    raw = members.get("data")
    if raw is not None:
        data = bytes(raw)
        return b"" if data == b"null" else data
    encoded = _string(members, "data_base64")
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise errors.MalformedMessage("data_base64 is not base64") from error


def _string(members: RawMembers, name: str) -> str:
    raw = members.get(name)
    if raw is None or bytes(raw) == b"null":
        return ""
    try:
        return _text.decode(raw)
    except msgspec.DecodeError as error:
        raise errors.MalformedMessage(f"attribute {name} must be a string") from error


def _timestamp(text: str) -> timestamps.Timestamp:
    try:
        return timestamps.parse(text)
    except errors.MalformedMessage as error:
        raise errors.MalformedMessage(f"attribute time: {error}") from error


def _extension(name: str, raw: msgspec.Raw) -> event.Attribute:
    try:
        value: bool | int | float | str = _scalar.decode(raw)
    except msgspec.DecodeError as error:
        raise errors.MalformedMessage(f"attribute {name[:64]} must be a string, a number or a boolean") from error
    if isinstance(value, float):
        if not value.is_integer():
            raise errors.MalformedMessage(f"attribute {name[:64]} must be a whole number")
        value = int(value)
    if isinstance(value, int) and not event.INT32_MIN <= value <= event.INT32_MAX:
        raise errors.MalformedMessage(f"attribute {name[:64]} is beyond the 32 bits that a number in an event can have")
    return value


def _json_value(attribute: event.Attribute) -> bool | int | str:
    match attribute:
        case timestamps.Timestamp():
            return attribute.rfc3339()
        case bytes():
            return base64.b64encode(attribute).decode()
        case _:
            return attribute
