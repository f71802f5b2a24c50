"""The CloudEvents JSON format: bytes ↔ Event, with the data passed through untouched.

Structured-mode messages use it, and so does the database, whose variant keeps `metadata` as an object
(see `maestropy.wire.record`).
"""

import base64
import binascii

import msgspec

from maestropy.wire import errors, event, instant

Members = dict[str, msgspec.Raw]
"""The members of a JSON object, none of them parsed."""

_members = msgspec.json.Decoder(Members)
_text = msgspec.json.Decoder(str)
_scalar = msgspec.json.Decoder(bool | int | float | str)


def split(document: bytes | str, *, what: str) -> Members:
    """Return the members of a JSON object without parsing them."""
    try:
        return _members.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.Malformed(f"{what} is not a JSON object: {str(error)[:200]}") from error


def decode(document: bytes | str) -> event.Event:
    """Read one event in the JSON format."""
    members = split(document, what="the structured event")
    version = _string(members, "specversion")
    if version not in event.SPEC_VERSIONS:
        raise errors.Malformed(f"unsupported specversion {version[:16]!r}; set it to {event.SPEC_VERSION}")
    if "data" in members and "data_base64" in members:
        raise errors.Malformed("the structured event has both data and data_base64; send one of them")
    return from_members(members)


def encode(value: event.Event) -> bytes:
    """Write one event in the JSON format."""
    members = context_members(value)
    if value.data:
        if is_json(value.content_type):
            members["data"] = msgspec.Raw(value.data)
        else:
            members["data_base64"] = base64.b64encode(value.data).decode()
    return msgspec.json.encode(members)


def from_members(members: Members, **more: event.Attribute) -> event.Event:
    """Build an event from unparsed members; `more` are extensions that are not among them."""
    time = _string(members, "time")
    return event.Event(
        id=_string(members, "id"),
        source=_string(members, "source"),
        type=_string(members, "type"),
        time=_moment(time) if time else None,
        content_type=_string(members, "datacontenttype") or event.JSON_CONTENT,
        subject=_string(members, "subject"),
        data_schema=_string(members, "dataschema"),
        extensions={
            event.extension_name(name): _extension(name, raw)
            for name, raw in members.items()
            if name not in event.CONTEXT
        }
        | more,
        data=_data(members),
    )


def context_members(value: event.Event) -> dict[str, object]:
    """Return everything but the data as JSON members."""
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
    """Say whether data of this type may stand in a JSON document as it is."""
    return content_type in ("", event.JSON_CONTENT) or content_type.partition(";")[0].rstrip().endswith("json")


def _data(members: Members) -> bytes:
    raw = members.get("data")
    if raw is not None:
        found = bytes(raw)
        return b"" if found == b"null" else found
    encoded = _string(members, "data_base64")
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise errors.Malformed("data_base64 is not base64") from error


def _string(members: Members, name: str) -> str:
    raw = members.get(name)
    if raw is None or bytes(raw) == b"null":
        return ""
    try:
        return _text.decode(raw)
    except msgspec.DecodeError as error:
        raise errors.Malformed(f"attribute {name} must be a string") from error


def _moment(text: str) -> instant.Timestamp:
    try:
        return instant.parse(text)
    except errors.Malformed as error:
        raise errors.Malformed(f"attribute time: {error}") from error


def _extension(name: str, raw: msgspec.Raw) -> event.Attribute:
    try:
        value: bool | int | float | str = _scalar.decode(raw)
    except msgspec.DecodeError as error:
        raise errors.Malformed(f"attribute {name[:64]} must be a string, a number or a boolean") from error
    if isinstance(value, float):
        if not value.is_integer():
            raise errors.Malformed(f"attribute {name[:64]} must be a whole number")
        value = int(value)
    if isinstance(value, int) and not event.INT32_MIN <= value <= event.INT32_MAX:
        raise errors.Malformed(f"attribute {name[:64]} is beyond the 32 bits that a number in an event can have")
    return value


def _json_value(attribute: event.Attribute) -> bool | int | str:
    match attribute:
        case instant.Timestamp():
            return attribute.rfc3339()
        case bytes():
            return base64.b64encode(attribute).decode()
        case _:
            return attribute
