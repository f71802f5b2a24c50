"""Encode and decode the MQTT 5 packets of a client.

Only the features that Maestro uses: QoS 0 and 1, no will, no retained messages, no topic aliases, no enhanced
authentication. The module does no I/O; `transport.mqtt.connection` sends and receives the packets.

No library is used, because Maestro needs control of three things: when a message is acknowledged (after it is stored),
the reason codes of the broker, and the limits that the broker sets.
"""

import enum
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from maestropy.wire import errors

MAX_REMAINING_LENGTH = 268_435_455
"""The largest value of the field Remaining Length of a packet."""
NO_SUBSCRIBERS = 0x10
PACKET_TOO_LARGE = 0x95
"""Reason code "No matching subscribers": the broker accepted the message, but no client is subscribed to its topic."""

_CONNECT, _CONNACK, _PUBLISH, _PUBACK = 0x10, 0x20, 0x30, 0x40
_SUBSCRIBE, _SUBACK, _PINGREQ, _PINGRESP, _DISCONNECT = 0x80, 0x90, 0xC0, 0xD0, 0xE0
_CONTENT_TYPE, _USER_PROPERTY = 0x03, 0x26
_RECEIVE_MAXIMUM, _MAXIMUM_QOS, _MAXIMUM_PACKET_SIZE = 0x21, 0x24, 0x27
_SERVER_KEEP_ALIVE, _REASON_STRING = 0x13, 0x1F


class _Kind(enum.Enum):
    """The data type of a property."""

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
    PACKET_TOO_LARGE: "packet too large",
    0x97: "quota exceeded",
    0x99: "payload format invalid",
    0x9B: "QoS not supported",
    0x9E: "shared subscriptions not supported",
    0x9F: "connection rate exceeded",
    0xA2: "wildcard subscriptions not supported",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectPacket:
    """CONNECT with clean start: the broker keeps no session while the client is disconnected."""

    client_id: str
    keep_alive_seconds: int
    receive_maximum: int
    username: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishPacket:
    """PUBLISH, in either direction; without a packet ID it has QoS 0 and is not acknowledged."""

    topic: str
    payload: bytes = field(repr=False)
    content_type: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    packet_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnackPacket:
    """CONNACK, the response to CONNECT, with the limits that the broker sets."""

    reason: int
    reason_string: str = ""
    receive_maximum: int = 65535
    maximum_packet_bytes: int = MAX_REMAINING_LENGTH + 5
    maximum_qos: int = 2
    keep_alive_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PubackPacket:
    """PUBACK, the response to PUBLISH: the broker has accepted or rejected a message."""

    packet_id: int
    reason: int
    reason_string: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubackPacket:
    """SUBACK, the response to SUBSCRIBE, with a reason code for each topic."""

    packet_id: int
    reasons: tuple[int, ...]
    reason_string: str = ""


@dataclass(frozen=True, slots=True)
class PingrespPacket:
    """PINGRESP, the response to PINGREQ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisconnectPacket:
    """DISCONNECT, sent by the broker before it closes the connection."""

    reason: int
    reason_string: str = ""


ReceivedPacket = PublishPacket | ConnackPacket | PubackPacket | SubackPacket | PingrespPacket | DisconnectPacket


def is_error(reason: int) -> bool:
    """Return whether a reason code is an error."""
    return reason >= 0x80


def explain(reason: int, reason_string: str = "") -> str:
    """Describe a reason code, with the reason string of the broker if there is one."""
    text = f"{_REASONS.get(reason, 'reason')} (0x{reason:02x})"
    return f"{text}: {reason_string[:200]}" if reason_string else text


def connect(packet: ConnectPacket) -> bytes:
    """Encode CONNECT."""
    clean_start = 0x02
    flags = clean_start | (0x80 if packet.username else 0) | (0x40 if packet.password else 0)
    properties = struct.pack("!BH", _RECEIVE_MAXIMUM, packet.receive_maximum)
    parts = [
        b"\x00\x04MQTT\x05" + struct.pack("!BH", flags, packet.keep_alive_seconds),
        _sized(properties),
        _text(packet.client_id),
    ]
    parts += [_text(text) for text in (packet.username, packet.password) if text]
    return _packet(_CONNECT, parts)


def publish(message: PublishPacket) -> bytes:
    """Encode PUBLISH."""
    properties = [bytes((_CONTENT_TYPE,)) + _text(message.content_type)] if message.content_type else []
    properties += [
        bytes((_USER_PROPERTY,)) + _text(name) + _text(value, label=name) for name, value in message.properties
    ]
    packet_id = b"" if message.packet_id is None else struct.pack("!H", message.packet_id)
    qos = 0 if message.packet_id is None else 1
    return _packet(
        _PUBLISH | qos << 1, [_text(message.topic), packet_id, _sized(b"".join(properties)), message.payload]
    )


def acknowledge(packet_id: int) -> bytes:
    """Encode PUBACK."""
    return _packet(_PUBACK, [struct.pack("!H", packet_id)])


def subscribe(packet_id: int, topics: Sequence[str], *, qos: int) -> bytes:
    """Encode SUBSCRIBE."""
    parts = [struct.pack("!H", packet_id), b"\x00"]
    for topic in topics:
        parts += [_text(topic), bytes((qos,))]
    return _packet(_SUBSCRIBE | 0x02, parts)


PINGREQ = bytes((_PINGREQ, 0))
DISCONNECT = bytes((_DISCONNECT, 0))


class PacketReader:
    """Split received bytes into packets."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> Iterator[ReceivedPacket]:
        """Add received bytes and yield the completed packets; raise `MalformedMessage` for an invalid one."""
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
                raise errors.MalformedMessage(f"the broker sent a packet 0x{first:02x} that cannot be read") from error


def _decode(first: int, body: bytes) -> ReceivedPacket:
    match first & 0xF0:
        case 0x30:
            return _decode_publish(first, body)
        case 0x40:
            reason, properties = _reason_and_properties(body[2:])
            (packet_id,) = struct.unpack_from("!H", body)
            return PubackPacket(packet_id=packet_id, reason=reason, reason_string=properties.reason_string)
        case 0x20:
            properties = _properties(body, 2)
            return ConnackPacket(
                reason=body[1],
                reason_string=properties.reason_string,
                receive_maximum=properties.numbers.get(_RECEIVE_MAXIMUM, 65535),
                maximum_packet_bytes=properties.numbers.get(_MAXIMUM_PACKET_SIZE, MAX_REMAINING_LENGTH + 5),
                maximum_qos=properties.numbers.get(_MAXIMUM_QOS, 2),
                keep_alive_seconds=properties.numbers.get(_SERVER_KEEP_ALIVE),
            )
        case 0x90:
            (packet_id,) = struct.unpack_from("!H", body)
            properties = _properties(body, 2)
            return SubackPacket(
                packet_id=packet_id, reasons=tuple(body[properties.end :]), reason_string=properties.reason_string
            )
        case 0xD0:
            return PingrespPacket()
        case 0xE0:
            reason, properties = _reason_and_properties(body)
            return DisconnectPacket(reason=reason, reason_string=properties.reason_string)
        case _:
            raise errors.MalformedMessage(f"the broker sent a packet 0x{first:02x}, which no client is sent")


def _decode_publish(first: int, body: bytes) -> PublishPacket:
    topic, offset = _read_text(body, 0)
    qos = first >> 1 & 0x03
    packet_id = None
    if qos:
        (packet_id,) = struct.unpack_from("!H", body, offset)
        offset += 2
    if qos > 1:
        raise errors.MalformedMessage("the broker sent a message with QoS 2, though at most 1 was asked for")
    properties = _properties(body, offset)
    return PublishPacket(
        topic=topic,
        payload=body[properties.end :],
        content_type=properties.content_type,
        properties=tuple(properties.pairs),
        packet_id=packet_id,
    )


@dataclass(slots=True)
class _Properties:
    end: int
    numbers: dict[int, int] = field(default_factory=dict)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    content_type: str = ""
    reason_string: str = ""


def _reason_and_properties(body: bytes) -> tuple[int, _Properties]:
    """Read a reason code and properties, which may both be absent; an absent reason code means success."""
    reason = body[0] if body else 0
    return reason, _properties(body, 1) if len(body) > 1 else _Properties(end=len(body))


def _properties(body: bytes, offset: int) -> _Properties:
    length = _length(body, offset)
    if length is None:
        raise IndexError
    remaining, offset = length
    properties = _Properties(end=offset + remaining)
    if properties.end > len(body):
        raise IndexError
    while offset < properties.end:
        offset = _read_property(body, offset, properties)
    return properties


def _read_property(body: bytes, offset: int, properties: _Properties) -> int:
    identifier = body[offset]
    offset += 1
    match _KINDS.get(identifier):
        case _Kind.BYTE:
            properties.numbers[identifier] = body[offset]
            return offset + 1
        case _Kind.TWO_BYTES:
            (properties.numbers[identifier],) = struct.unpack_from("!H", body, offset)
            return offset + 2
        case _Kind.FOUR_BYTES:
            (properties.numbers[identifier],) = struct.unpack_from("!I", body, offset)
            return offset + 4
        case _Kind.VARIABLE:
            length = _length(body, offset)
            if length is None:
                raise IndexError
            return length[1]
        case _Kind.BINARY:
            return _read_binary(body, offset, identifier=identifier, properties=properties)
        case _Kind.PAIR:
            name, offset = _read_text(body, offset)
            value, offset = _read_text(body, offset)
            properties.pairs.append((name, value))
            return offset
        case _:
            raise errors.MalformedMessage(f"the broker sent a property 0x{identifier:02x} that MQTT 5 does not know")


def _read_binary(body: bytes, offset: int, *, identifier: int, properties: _Properties) -> int:
    if identifier == _CONTENT_TYPE:
        properties.content_type, offset = _read_text(body, offset)
        return offset
    if identifier == _REASON_STRING:
        properties.reason_string, offset = _read_text(body, offset)
        return offset
    (size,) = struct.unpack_from("!H", body, offset)
    return offset + 2 + int(size)


def _read_text(body: bytes, offset: int) -> tuple[str, int]:
    (size,) = struct.unpack_from("!H", body, offset)
    end = offset + 2 + size
    if end > len(body):
        raise IndexError
    return body[offset + 2 : end].decode(), end


def _length(buffer: bytes | bytearray, offset: int) -> tuple[int, int] | None:
    """Read a variable byte integer; return it and the offset behind it, or None while bytes are missing."""
    value = 0
    for index in range(4):
        if offset + index >= len(buffer):
            return None
        byte = buffer[offset + index]
        value |= (byte & 0x7F) << 7 * index
        if not byte & 0x80:
            return value, offset + index + 1
    raise errors.MalformedMessage("the broker sent a length of more than four bytes")


def _packet(first: int, parts: Sequence[bytes]) -> bytes:
    return b"".join((bytes((first,)), _variable(sum(map(len, parts))), *parts))


def _sized(properties: bytes) -> bytes:
    return _variable(len(properties)) + properties


def _variable(value: int) -> bytes:
    if value > MAX_REMAINING_LENGTH:
        raise errors.InvalidContent(
            f"a packet of {value} bytes is more than MQTT can carry ({MAX_REMAINING_LENGTH}); make it smaller"
        )
    encoded = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        encoded.append(low | (0x80 if value else 0))
        if not value:
            return bytes(encoded)


def _text(value: str, *, label: str = "a text") -> bytes:
    encoded = value.encode()
    if len(encoded) > 65535:
        raise errors.InvalidContent(f"{label} has {len(encoded)} bytes, MQTT carries at most 65535; make it smaller")
    return struct.pack("!H", len(encoded)) + encoded
