"""The packets of MQTT 5 that a client sends and gets: bytes ↔ values.

Only what Maestro uses is here: QoS 0 and 1, no will, no retained messages, no topic aliases, no enhanced
authentication. Whoever owns the connection decides what to send when; nothing here opens one.

Written here and not taken from a library, because the rules we live by sit in it: an acknowledgement only after the
message is stored, refusals told by their reason codes, and limits that the broker sets.
"""

import enum
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from maestropy.wire import errors

LONGEST = 268_435_455
"""The longest remainder that a packet's length field can tell."""
NO_SUBSCRIBERS = 0x10
"""The broker took the message, and there was nobody to give it to."""

_CONNECT, _CONNACK, _PUBLISH, _PUBACK = 0x10, 0x20, 0x30, 0x40
_SUBSCRIBE, _SUBACK, _PINGREQ, _PINGRESP, _DISCONNECT = 0x80, 0x90, 0xC0, 0xD0, 0xE0
_CONTENT_TYPE, _USER_PROPERTY = 0x03, 0x26
_RECEIVE_MAXIMUM, _MAXIMUM_QOS, _MAXIMUM_PACKET_SIZE = 0x21, 0x24, 0x27
_SERVER_KEEP_ALIVE, _REASON_STRING = 0x13, 0x1F


class _Kind(enum.Enum):
    """How the value of a property is written."""

    BYTE = enum.auto()
    TWO_BYTES = enum.auto()
    FOUR_BYTES = enum.auto()
    VARIABLE = enum.auto()
    BINARY = enum.auto()
    PAIR = enum.auto()


_KINDS: dict[int, _Kind] = {
    **dict.fromkeys((0x01, 0x17, 0x19, _MAXIMUM_QOS, 0x25, 0x28, 0x29, 0x2A), _Kind.BYTE),
    **dict.fromkeys((_SERVER_KEEP_ALIVE, _RECEIVE_MAXIMUM, 0x22, 0x23), _Kind.TWO_BYTES),
    **dict.fromkeys((0x02, 0x11, 0x18, _MAXIMUM_PACKET_SIZE), _Kind.FOUR_BYTES),
    0x0B: _Kind.VARIABLE,
    **dict.fromkeys((_CONTENT_TYPE, 0x08, 0x09, 0x12, 0x15, 0x16, 0x1A, 0x1C, _REASON_STRING), _Kind.BINARY),
    _USER_PROPERTY: _Kind.PAIR,
}

_REASONS = {
    0x80: "unspecified error",
    0x81: "malformed packet",
    0x82: "protocol error",
    0x83: "implementation specific error",
    0x84: "unsupported protocol version",
    0x85: "client identifier not valid",
    0x86: "bad user name or password",
    0x87: "not authorized",
    0x88: "server unavailable",
    0x89: "server busy",
    0x8A: "banned",
    0x8B: "server shutting down",
    0x8D: "keep alive timeout",
    0x8E: "session taken over: another client uses the same client id",
    0x8F: "topic filter invalid",
    0x90: "topic name invalid",
    0x93: "receive maximum exceeded",
    0x95: "packet too large",
    0x97: "quota exceeded",
    0x99: "payload format invalid",
    0x9B: "QoS not supported",
    0x9E: "shared subscriptions not supported",
    0x9F: "connection rate exceeded",
    0xA2: "wildcard subscriptions not supported",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect:
    """How a connection begins: a clean start, and nothing is kept for us while we are away."""

    client_id: str
    keep_alive_seconds: int
    receive_maximum: int
    username: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """A message on its way, in either direction; without a number nobody acknowledges it."""

    topic: str
    payload: bytes = field(repr=False)
    content_type: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """The broker's answer to `Connect`, with the limits it sets."""

    reason: int
    explanation: str = ""
    receive_maximum: int = 65535
    maximum_packet_bytes: int = LONGEST + 5
    maximum_qos: int = 2
    keep_alive_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """The broker has a message of ours, or refuses it."""

    number: int
    reason: int
    explanation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribed:
    """The broker's answer to a subscription, a reason for each topic."""

    number: int
    reasons: tuple[int, ...]
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class Pong:
    """The broker lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disconnect:
    """The broker lets us go."""

    reason: int
    explanation: str = ""


Received = Publish | Connected | Acknowledged | Subscribed | Pong | Disconnect


def is_refusal(reason: int) -> bool:
    """Say whether a reason code means no."""
    return reason >= 0x80


def explain(reason: int, explanation: str = "") -> str:
    """Return a reason code in words, and the broker's own words if it has any."""
    words = f"{_REASONS.get(reason, 'reason')} (0x{reason:02x})"
    return f"{words}: {explanation[:200]}" if explanation else words


def connect(wanted: Connect) -> bytes:
    """Return the packet that begins a connection."""
    clean_start = 0x02
    flags = clean_start | (0x80 if wanted.username else 0) | (0x40 if wanted.password else 0)
    properties = struct.pack("!BH", _RECEIVE_MAXIMUM, wanted.receive_maximum)
    parts = [
        b"\x00\x04MQTT\x05" + struct.pack("!BH", flags, wanted.keep_alive_seconds),
        _sized(properties),
        _text(wanted.client_id),
    ]
    parts += [_text(each) for each in (wanted.username, wanted.password) if each]
    return _packet(_CONNECT, parts)


def publish(message: Publish) -> bytes:
    """Return the packet of a message."""
    properties = [bytes((_CONTENT_TYPE,)) + _text(message.content_type)] if message.content_type else []
    properties += [
        bytes((_USER_PROPERTY,)) + _text(name) + _text(value, what=name) for name, value in message.properties
    ]
    number = b"" if message.number is None else struct.pack("!H", message.number)
    qos = 0 if message.number is None else 1
    return _packet(_PUBLISH | qos << 1, [_text(message.topic), number, _sized(b"".join(properties)), message.payload])


def acknowledge(number: int) -> bytes:
    """Return the packet that says we have a message."""
    return _packet(_PUBACK, [struct.pack("!H", number)])


def subscribe(number: int, topics: Sequence[str], *, qos: int) -> bytes:
    """Return the packet that asks for the messages of some topics."""
    parts = [struct.pack("!H", number), b"\x00"]
    for topic in topics:
        parts += [_text(topic), bytes((qos,))]
    return _packet(_SUBSCRIBE | 0x02, parts)


PING = bytes((_PINGREQ, 0))
GOODBYE = bytes((_DISCONNECT, 0))


class Reader:
    """Cuts what arrives into packets."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> Iterator[Received]:
        """Take the next bytes and yield the packets they complete; raises `Malformed` at the first that is none."""
        self._buffer += chunk
        while True:
            length = _length(self._buffer, 1)
            if length is None:
                return
            remaining, start = length
            if len(self._buffer) < start + remaining:
                return
            first, body = self._buffer[0], bytes(memoryview(self._buffer)[start : start + remaining])
            del self._buffer[: start + remaining]
            try:
                yield _decode(first, body)
            except (struct.error, IndexError, UnicodeDecodeError) as error:
                raise errors.Malformed(f"the broker sent a packet 0x{first:02x} that cannot be read") from error


def _decode(first: int, body: bytes) -> Received:
    match first & 0xF0:
        case 0x30:
            return _decode_publish(first, body)
        case 0x40:
            reason, found = _reason_and_properties(body[2:])
            (number,) = struct.unpack_from("!H", body)
            return Acknowledged(number=number, reason=reason, explanation=found.explanation)
        case 0x20:
            found = _properties(body, 2)
            return Connected(
                reason=body[1],
                explanation=found.explanation,
                receive_maximum=found.numbers.get(_RECEIVE_MAXIMUM, 65535),
                maximum_packet_bytes=found.numbers.get(_MAXIMUM_PACKET_SIZE, LONGEST + 5),
                maximum_qos=found.numbers.get(_MAXIMUM_QOS, 2),
                keep_alive_seconds=found.numbers.get(_SERVER_KEEP_ALIVE),
            )
        case 0x90:
            (number,) = struct.unpack_from("!H", body)
            found = _properties(body, 2)
            return Subscribed(number=number, reasons=tuple(body[found.end :]), explanation=found.explanation)
        case 0xD0:
            return Pong()
        case 0xE0:
            reason, found = _reason_and_properties(body)
            return Disconnect(reason=reason, explanation=found.explanation)
        case _:
            raise errors.Malformed(f"the broker sent a packet 0x{first:02x}, which no client is sent")


def _decode_publish(first: int, body: bytes) -> Publish:
    topic, place = _read_text(body, 0)
    qos = first >> 1 & 0x03
    number = None
    if qos:
        (number,) = struct.unpack_from("!H", body, place)
        place += 2
    if qos > 1:
        raise errors.Malformed("the broker sent a message with QoS 2, though at most 1 was asked for")
    found = _properties(body, place)
    return Publish(
        topic=topic,
        payload=body[found.end :],
        content_type=found.content_type,
        properties=tuple(found.pairs),
        number=number,
    )


@dataclass(slots=True)
class _Properties:
    end: int
    numbers: dict[int, int] = field(default_factory=dict)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    content_type: str = ""
    explanation: str = ""


def _reason_and_properties(body: bytes) -> tuple[int, _Properties]:
    """Read a tail that may be left out from either part on: nothing means success."""
    reason = body[0] if body else 0
    return reason, _properties(body, 1) if len(body) > 1 else _Properties(end=len(body))


def _properties(body: bytes, place: int) -> _Properties:
    length = _length(body, place)
    if length is None:
        raise IndexError
    remaining, place = length
    found = _Properties(end=place + remaining)
    if found.end > len(body):
        raise IndexError
    while place < found.end:
        place = _read_property(body, place, found)
    return found


def _read_property(body: bytes, place: int, found: _Properties) -> int:
    identifier = body[place]
    place += 1
    match _KINDS.get(identifier):
        case _Kind.BYTE:
            found.numbers[identifier] = body[place]
            return place + 1
        case _Kind.TWO_BYTES:
            (found.numbers[identifier],) = struct.unpack_from("!H", body, place)
            return place + 2
        case _Kind.FOUR_BYTES:
            (found.numbers[identifier],) = struct.unpack_from("!I", body, place)
            return place + 4
        case _Kind.VARIABLE:
            length = _length(body, place)
            if length is None:
                raise IndexError
            return length[1]
        case _Kind.BINARY:
            return _read_binary(body, place, identifier=identifier, found=found)
        case _Kind.PAIR:
            name, place = _read_text(body, place)
            value, place = _read_text(body, place)
            found.pairs.append((name, value))
            return place
        case _:
            raise errors.Malformed(f"the broker sent a property 0x{identifier:02x} that MQTT 5 does not know")


def _read_binary(body: bytes, place: int, *, identifier: int, found: _Properties) -> int:
    if identifier == _CONTENT_TYPE:
        found.content_type, place = _read_text(body, place)
        return place
    if identifier == _REASON_STRING:
        found.explanation, place = _read_text(body, place)
        return place
    (size,) = struct.unpack_from("!H", body, place)
    return place + 2 + int(size)


def _read_text(body: bytes, place: int) -> tuple[str, int]:
    (size,) = struct.unpack_from("!H", body, place)
    end = place + 2 + size
    if end > len(body):
        raise IndexError
    return body[place + 2 : end].decode(), end


def _length(buffer: bytes | bytearray, place: int) -> tuple[int, int] | None:
    """Read a variable byte integer; returns it and where it ends, or None while bytes are missing."""
    value = 0
    for index in range(4):
        if place + index >= len(buffer):
            return None
        byte = buffer[place + index]
        value |= (byte & 0x7F) << 7 * index
        if not byte & 0x80:
            return value, place + index + 1
    raise errors.Malformed("the broker sent a length of more than four bytes")


def _packet(first: int, parts: Sequence[bytes]) -> bytes:
    return b"".join((bytes((first,)), _variable(sum(map(len, parts))), *parts))


def _sized(properties: bytes) -> bytes:
    return _variable(len(properties)) + properties


def _variable(value: int) -> bytes:
    if value > LONGEST:
        raise errors.Invalid(f"a packet of {value} bytes is more than MQTT can carry ({LONGEST}); make it smaller")
    encoded = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        encoded.append(low | (0x80 if value else 0))
        if not value:
            return bytes(encoded)


def _text(value: str, *, what: str = "a text") -> bytes:
    encoded = value.encode()
    if len(encoded) > 65535:
        raise errors.Invalid(f"{what} has {len(encoded)} bytes, MQTT carries at most 65535; make it smaller")
    return struct.pack("!H", len(encoded)) + encoded
