"""Convert CloudEvents to the protobuf messages of the gRPC service and back.

The messages are those of the CloudEvents protobuf format, but Maestro uses the attribute map like HTTP headers:
extensions have the prefix `ce-`, the content type is `contenttype`, and the data is always `binary_data`.
The decoder accepts every form that clients send (integers and timestamps as strings, structured mode); the encoder
writes one form.
"""

from functools import lru_cache
from typing import NamedTuple

from google.protobuf.message import DecodeError

from maestropy.wire import errors, timestamps
from maestropy.wire._pb import cloudevents_pb2 as pb
from maestropy.wire.events import attribute_count, attribute_limits, event, json_format

PUBLISH_METHOD = "/io.cloudevents.v1.CloudEventService/Publish"
SUBSCRIBE_METHOD = "/io.cloudevents.v1.CloudEventService/Subscribe"
SERVICE = "io.cloudevents.v1.CloudEventService"

_PREFIX = "ce-"
_CONTENT_TYPE = "contenttype"
_TIME = "ce-time"
_SUBJECT = "ce-subject"
_DATA_SCHEMA = "ce-dataschema"
_STRUCTURED = "application/cloudevents+json"
# Only these context attributes are in the attribute map; the others are fields of the message.
_IN_MAP = frozenset(("time", "subject", "dataschema"))
_MAX_CACHED_NAME_LENGTH = 64
_SHARED = (event.CLUSTER_NAME, event.ORIGINAL_SOURCE, event.DATABASE_ID, event.RESYNC_ID)
"""Extensions that the answers to one resync have in common."""


class Subscription(NamedTuple):
    """The content of a SubscriptionRequest."""

    source: str = ""
    cluster_name: str = ""
    data_type: str = ""


def decode_publish(request: bytes) -> event.CloudEvent:
    """Return the event of a serialised PublishRequest."""
    attribute_count.check_publish(request)
    try:
        message = pb.PublishRequest.FromString(request)
    except DecodeError as error:
        raise errors.MalformedMessage("the request is not a PublishRequest message") from error
    if not message.HasField("event"):
        raise errors.MalformedMessage("the request carries no event; set PublishRequest.event")
    return from_message(message.event)


def decode_event(message: bytes) -> event.CloudEvent:
    """Return the event of a serialised CloudEvent."""
    try:
        return from_message(pb.CloudEvent.FromString(message))
    except DecodeError as error:
        raise errors.MalformedMessage("the message is not a CloudEvent") from error


def encode_publish(value: event.CloudEvent) -> bytes:
    """Return `value` as a serialised PublishRequest."""
    return pb.PublishRequest(event=to_message(value)).SerializeToString()


def encode_event(value: event.CloudEvent) -> bytes:
    """Return `value` as a serialised CloudEvent.

    The answer to a resync has an event for every work of a cluster. What these have in common is serialised once: parts
    of a message that are serialised one after the other are one message.
    """
    if event.RESYNC_ID not in value.extensions:
        return to_message(value).SerializeToString()
    own = pb.CloudEvent()
    _write_own(own, value)
    shared = map(value.extensions.get, _SHARED)
    return _shared_part(value.source, value.type, value.content_type, *shared) + own.SerializeToString()


def heartbeat(heartbeat_id: str) -> bytes:
    """Return a serialised heartbeat event, which tells a subscriber that an idle stream is alive."""
    message = pb.CloudEvent(id=heartbeat_id, spec_version=event.SPEC_VERSION, type=event.HEARTBEAT)
    return message.SerializeToString()


def decode_subscription(request: bytes) -> Subscription:
    """Return the subscription of a serialised SubscriptionRequest."""
    try:
        message = pb.SubscriptionRequest.FromString(request)
    except DecodeError as error:
        raise errors.MalformedMessage("the request is not a SubscriptionRequest message") from error
    return Subscription(message.source, message.cluster_name, message.data_type)


def encode_subscription(value: Subscription) -> bytes:
    """Return `value` as a serialised SubscriptionRequest."""
    return pb.SubscriptionRequest(
        source=value.source, cluster_name=value.cluster_name, data_type=value.data_type
    ).SerializeToString()


def from_message(message: pb.CloudEvent) -> event.CloudEvent:
    """Convert a CloudEvent message to an event."""
    if message.type == event.HEARTBEAT:
        return event.CloudEvent(id=message.id, source=message.source, type=message.type)
    attributes = message.attributes
    if not attributes:
        raise errors.MalformedMessage("unknown Message encoding")
    attribute_limits.check_count(len(attributes))
    content_type = ""
    if _CONTENT_TYPE in attributes:
        content_type = attributes[_CONTENT_TYPE].ce_string
        if content_type.startswith(_STRUCTURED):
            return json_format.decode(message.binary_data)
    if message.spec_version not in event.SPEC_VERSIONS:
        raise errors.MalformedMessage(
            f"unknown Message encoding: unsupported specversion {message.spec_version[:16]!r}; set it to 1.0"
        )
    extensions = {
        _bare_name(name): _read(name, value) for name, value in attributes.items() if name.startswith(_PREFIX)
    }
    received = event.CloudEvent(
        id=message.id,
        source=message.source,
        type=message.type,
        time=_timestamp(extensions.pop("time", None)),
        content_type=content_type,
        subject=_string(extensions.pop("subject", ""), name=_SUBJECT),
        data_schema=_string(extensions.pop("dataschema", ""), name=_DATA_SCHEMA),
        extensions=extensions,
        data=_data(message),
    )
    return attribute_limits.checked(received)


def to_message(value: event.CloudEvent) -> pb.CloudEvent:
    """Convert an event to a CloudEvent message."""
    message = pb.CloudEvent(source=value.source, spec_version=event.SPEC_VERSION, type=value.type)
    message.attributes[_CONTENT_TYPE].ce_string = value.content_type
    for name in _SHARED:
        if name in value.extensions:
            _write(message.attributes[_PREFIX + name], value.extensions[name], name=name)
    _write_own(message, value)
    return message


def _write_own(message: pb.CloudEvent, value: event.CloudEvent) -> None:
    """Write what events do not have in common."""
    message.id = value.id
    attributes = message.attributes
    if value.time is not None:
        stamp = attributes[_TIME].ce_timestamp
        stamp.seconds, stamp.nanos = value.time
    if value.subject:
        attributes[_SUBJECT].ce_string = value.subject
    if value.data_schema:
        # Go decoders reject a value of the type URI here.
        attributes[_DATA_SCHEMA].ce_string = value.data_schema
    for name, attribute in value.extensions.items():
        if name in _SHARED:
            continue
        if type(attribute) is str:
            attributes[_PREFIX + name].ce_string = attribute
        else:
            _write(attributes[_PREFIX + name], attribute, name=name)
    if value.data:
        message.binary_data = value.data


# Few, since an agent chooses the ID of its resync. Typed: True and 1 are equal, and different attributes.
@lru_cache(maxsize=64, typed=True)
def _shared_part(source: str, type_: str, content_type: str, *values: event.Attribute | None) -> bytes:
    extensions = {name: value for name, value in zip(_SHARED, values, strict=True) if value is not None}
    shared = event.CloudEvent(id="", source=source, type=type_, content_type=content_type, extensions=extensions)
    return to_message(shared).SerializeToString()


def _bare_name(name: str) -> str:
    # Long names bypass the cache, which would keep them.
    return _cached_name(name) if len(name) <= _MAX_CACHED_NAME_LENGTH else _checked_name(name)


def _checked_name(name: str) -> str:
    bare = name[len(_PREFIX) :]
    if bare in _IN_MAP:
        return bare
    try:
        return event.extension_name(bare)
    except errors.MalformedMessage as error:
        raise errors.MalformedMessage(f"attribute {name[:64]!r}: {error}") from error


# All senders use the same dozen names.
_cached_name = lru_cache(maxsize=256)(_checked_name)


def _data(message: pb.CloudEvent) -> bytes:
    match message.WhichOneof("data"):
        case "text_data":
            return message.text_data.encode()
        case "proto_data":
            # Ignoring the data would turn an update into one without manifests, which deletes everything.
            raise errors.MalformedMessage("data in proto_data cannot be read; send JSON in binary_data")
        case _:
            return message.binary_data


def _read(name: str, value: pb.CloudEventAttributeValue) -> event.Attribute:
    if text := value.ce_string:
        return text  # nearly all attributes are strings, and WhichOneof is slower
    kind = value.WhichOneof("attr")
    if kind is None:
        raise errors.MalformedMessage(f"attribute {name[:64]!r} has no value")
    if kind == "ce_timestamp":
        try:
            return timestamps.checked(value.ce_timestamp.seconds, value.ce_timestamp.nanos)
        except errors.MalformedMessage as error:
            raise errors.MalformedMessage(f"attribute {name[:64]!r}: {error}") from error
    attribute: event.Attribute = getattr(value, kind)
    return attribute


def _string(value: event.Attribute, *, name: str) -> str:
    if not isinstance(value, str):
        raise errors.MalformedMessage(f"attribute {name!r} must be a string")
    return value


def _timestamp(value: event.Attribute | None) -> timestamps.Timestamp | None:
    if value is None or isinstance(value, timestamps.Timestamp):
        return value
    try:
        return timestamps.parse(str(value))
    except errors.MalformedMessage as error:
        raise errors.MalformedMessage(f"attribute {_TIME!r}: {error}") from error


def _write(target: pb.CloudEventAttributeValue, value: event.Attribute, *, name: str) -> None:
    match value:
        case bool():
            target.ce_boolean = value
        case int():
            if not event.INT32_MIN <= value <= event.INT32_MAX:
                raise errors.MalformedMessage(f"extension {name} is {value}, beyond the 32 bits an event can carry")
            target.ce_integer = value
        case str():
            target.ce_string = value
        case bytes():
            target.ce_bytes = value
        case timestamps.Timestamp(seconds, nanos):
            target.ce_timestamp.seconds = seconds
            target.ce_timestamp.nanos = nanos
