"""The gRPC binding: CloudEvent message ↔ Event.

The messages are those of the CloudEvents protobuf format, but Maestro uses the attribute map like HTTP headers:
extensions carry a `ce-` prefix, the content type is plain `contenttype`, and the data is always `binary_data`.
Readers are lenient where transports differ (integers and timestamps also as strings, structured mode); the writer
has one form.
"""

from functools import lru_cache
from typing import NamedTuple

from google.protobuf.message import DecodeError

from maestropy.wire import errors, event, instant, jsonevent
from maestropy.wire._pb import cloudevents_pb2 as pb

PUBLISH_METHOD = "/io.cloudevents.v1.CloudEventService/Publish"
SUBSCRIBE_METHOD = "/io.cloudevents.v1.CloudEventService/Subscribe"
SERVICE = "io.cloudevents.v1.CloudEventService"

_PREFIX = "ce-"
_CONTENT_TYPE = "contenttype"
_TIME = "ce-time"
_SUBJECT = "ce-subject"
_DATA_SCHEMA = "ce-dataschema"
_STRUCTURED = "application/cloudevents+json"
# Of an event's own attributes only these stand in the map; the others have a field in the message.
_IN_MAP = frozenset(("time", "subject", "dataschema"))
_LONGEST_KNOWN_NAME = 64


class Subscription(NamedTuple):
    """What a subscriber asks for."""

    source: str = ""
    cluster_name: str = ""
    data_type: str = ""


def decode_publish(request: bytes) -> event.Event:
    """Return the event of a serialised PublishRequest."""
    try:
        message = pb.PublishRequest.FromString(request)
    except DecodeError as error:
        raise errors.Malformed("the request is not a PublishRequest message") from error
    if not message.HasField("event"):
        raise errors.Malformed("the request carries no event; set PublishRequest.event")
    return from_message(message.event)


def decode_event(message: bytes) -> event.Event:
    """Return the event of a serialised CloudEvent."""
    try:
        return from_message(pb.CloudEvent.FromString(message))
    except DecodeError as error:
        raise errors.Malformed("the message is not a CloudEvent") from error


def encode_publish(value: event.Event) -> bytes:
    """Return `value` as a serialised PublishRequest."""
    return pb.PublishRequest(event=to_message(value)).SerializeToString()


def encode_event(value: event.Event) -> bytes:
    """Return `value` as a serialised CloudEvent."""
    return to_message(value).SerializeToString()


def heartbeat(heartbeat_id: str) -> bytes:
    """Return the serialised heartbeat that keeps a quiet stream alive."""
    message = pb.CloudEvent(id=heartbeat_id, spec_version=event.SPEC_VERSION, type=event.HEARTBEAT)
    return message.SerializeToString()


def decode_subscription(request: bytes) -> Subscription:
    """Return what a serialised SubscriptionRequest asks for."""
    try:
        message = pb.SubscriptionRequest.FromString(request)
    except DecodeError as error:
        raise errors.Malformed("the request is not a SubscriptionRequest message") from error
    return Subscription(message.source, message.cluster_name, message.data_type)


def encode_subscription(value: Subscription) -> bytes:
    """Return `value` as a serialised SubscriptionRequest."""
    return pb.SubscriptionRequest(
        source=value.source, cluster_name=value.cluster_name, data_type=value.data_type
    ).SerializeToString()


def from_message(message: pb.CloudEvent) -> event.Event:
    """Return the event that `message` carries."""
    if message.type == event.HEARTBEAT:
        return event.Event(id=message.id, source=message.source, type=message.type)
    attributes = message.attributes
    if not attributes:
        raise errors.Malformed("unknown Message encoding")
    content_type = ""
    if _CONTENT_TYPE in attributes:
        content_type = attributes[_CONTENT_TYPE].ce_string
        if content_type.startswith(_STRUCTURED):
            return jsonevent.decode(message.binary_data)
    if message.spec_version not in event.SPEC_VERSIONS:
        raise errors.Malformed(
            f"unknown Message encoding: unsupported specversion {message.spec_version[:16]!r}; set it to 1.0"
        )
    found = {_bare_name(name): _read(name, value) for name, value in attributes.items() if name.startswith(_PREFIX)}
    return event.Event(
        id=message.id,
        source=message.source,
        type=message.type,
        time=_moment(found.pop("time", None)),
        content_type=content_type,
        subject=_words(found.pop("subject", ""), name=_SUBJECT),
        data_schema=_words(found.pop("dataschema", ""), name=_DATA_SCHEMA),
        extensions=found,
        data=_data(message),
    )


def to_message(value: event.Event) -> pb.CloudEvent:
    """Return `value` as a CloudEvent message."""
    message = pb.CloudEvent(id=value.id, source=value.source, spec_version=event.SPEC_VERSION, type=value.type)
    attributes = message.attributes
    attributes[_CONTENT_TYPE].ce_string = value.content_type
    if value.time is not None:
        stamp = attributes[_TIME].ce_timestamp
        stamp.seconds, stamp.nanos = value.time
    if value.subject:
        attributes[_SUBJECT].ce_string = value.subject
    if value.data_schema:
        # Go readers refuse a value of the type URI here.
        attributes[_DATA_SCHEMA].ce_string = value.data_schema
    for name, attribute in value.extensions.items():
        _write(attributes[_PREFIX + name], attribute, name=name)
    if value.data:
        message.binary_data = value.data
    return message


def _bare_name(name: str) -> str:
    # Before the cache, which would keep it.
    return _known_name(name) if len(name) <= _LONGEST_KNOWN_NAME else _checked_name(name)


def _checked_name(name: str) -> str:
    bare = name[len(_PREFIX) :]
    if bare in _IN_MAP:
        return bare
    try:
        return event.extension_name(bare)
    except errors.Malformed as error:
        raise errors.Malformed(f"attribute {name[:64]!r}: {error}") from error


# All senders use the same dozen names.
_known_name = lru_cache(maxsize=256)(_checked_name)


def _data(message: pb.CloudEvent) -> bytes:
    match message.WhichOneof("data"):
        case "text_data":
            return message.text_data.encode()
        case "proto_data":
            # Silently left out, it would turn an update into "remove everything".
            raise errors.Malformed("data in proto_data cannot be read; send JSON in binary_data")
        case _:
            return message.binary_data


def _read(name: str, value: pb.CloudEventAttributeValue) -> event.Attribute:
    if text := value.ce_string:
        return text  # as nearly all of them are, and asking which one is set takes longer
    kind = value.WhichOneof("attr")
    if kind is None:
        raise errors.Malformed(f"attribute {name[:64]!r} has no value")
    if kind == "ce_timestamp":
        try:
            return instant.checked(value.ce_timestamp.seconds, value.ce_timestamp.nanos)
        except errors.Malformed as error:
            raise errors.Malformed(f"attribute {name[:64]!r}: {error}") from error
    found: event.Attribute = getattr(value, kind)
    return found


def _words(value: event.Attribute, *, name: str) -> str:
    if not isinstance(value, str):
        raise errors.Malformed(f"attribute {name!r} must be a string")
    return value


def _moment(value: event.Attribute | None) -> instant.Timestamp | None:
    if value is None or isinstance(value, instant.Timestamp):
        return value
    try:
        return instant.parse(str(value))
    except errors.Malformed as error:
        raise errors.Malformed(f"attribute {_TIME!r}: {error}") from error


def _write(target: pb.CloudEventAttributeValue, value: event.Attribute, *, name: str) -> None:
    match value:
        case bool():
            target.ce_boolean = value
        case int():
            if not event.INT32_MIN <= value <= event.INT32_MAX:
                raise errors.Malformed(f"extension {name} is {value}, beyond the 32 bits an event can carry")
            target.ce_integer = value
        case str():
            target.ce_string = value
        case bytes():
            target.ce_bytes = value
        case instant.Timestamp(seconds, nanos):
            target.ce_timestamp.seconds = seconds
            target.ce_timestamp.nanos = nanos
