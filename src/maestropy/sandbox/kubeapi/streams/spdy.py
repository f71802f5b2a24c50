"""Read and write the frames of SPDY/3.1, as far as port-forwards use them. Pure: no sockets here.

kubectl multiplexes the connections of one `port-forward` as SPDY streams inside one WebSocket. It does not use SPDY's
flow control, so it is not implemented; settings, priorities and window updates are read and ignored. What a client
makes us keep is bounded: the size of a frame, and that of its headers after they are decompressed.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from maestropy.sandbox.kubeapi.streams.spdy_dictionary import DICTIONARY

FIN = 0x01
PROTOCOL_ERROR, REFUSED_STREAM = 1, 3
_VERSION = 0x8003
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY, _HEADERS = 1, 2, 3, 6, 7, 8
_MAX_FRAME_BYTES = 1 << 20
"""kubectl sends at most 32 KiB; SPDY itself allows 16 MiB."""
_MAX_HEADER_BYTES = 16 * 1024


class SpdyError(Exception):
    """The client does not follow the protocol, or exceeds a limit; the connection cannot go on."""


@dataclass(frozen=True, slots=True)
class OpenStream:
    """The client opens a stream."""

    stream: int
    headers: Mapping[str, str]
    is_last: bool
    """Whether the client sends no data on it."""


@dataclass(frozen=True, slots=True)
class StreamData:
    """Data of a stream."""

    stream: int
    data: bytes
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class StreamReset:
    """One side gives a stream up."""

    stream: int
    status: int


@dataclass(frozen=True, slots=True)
class Ping:
    """The client asks for the same frame."""

    id: int


@dataclass(frozen=True, slots=True)
class GoAway:
    """The client ends the connection."""


@dataclass(frozen=True, slots=True)
class StreamReply:
    """The other side accepted a stream."""

    stream: int


Frame = OpenStream | StreamReply | StreamData | StreamReset | Ping | GoAway


class SpdyReader:
    """Takes bytes as they arrive, and returns the frames that they complete."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        # Headers are compressed in one stream for the whole connection: every block must be read, in order.
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the complete frames; raises SpdyError."""
        self._buffer += data
        while len(self._buffer) >= 8:
            first, second = struct.unpack_from(">II", self._buffer)
            flags, length = second >> 24, second & 0xFFFFFF
            if length > _MAX_FRAME_BYTES:
                raise SpdyError(f"a frame has {length} bytes; at most {_MAX_FRAME_BYTES} are accepted")
            if len(self._buffer) < 8 + length:
                return
            payload = bytes(self._buffer[8 : 8 + length])
            del self._buffer[: 8 + length]
            if not first & 0x80000000:
                yield StreamData(first, payload, is_last=bool(flags & FIN))
                continue
            if first >> 16 != _VERSION:
                raise SpdyError(f"the frame is of version {(first >> 16) & 0x7FFF}, not SPDY/3")
            frame = self._control(first & 0xFFFF, flags, payload)
            if frame is not None:
                yield frame

    def _control(self, kind: int, flags: int, payload: bytes) -> Frame | None:
        try:
            match kind:
                case 1:
                    (stream,) = struct.unpack_from(">I", payload)
                    return OpenStream(stream, self._headers(payload[10:]), is_last=bool(flags & FIN))
                case 2:
                    self._headers(payload[4:])
                    return StreamReply(*struct.unpack_from(">I", payload))
                case 3:
                    return StreamReset(*struct.unpack(">II", payload))
                case 6:
                    return Ping(*struct.unpack(">I", payload))
                case 7:
                    return GoAway()
                case 8:
                    self._headers(payload[4:])
                    return None
                case _:
                    return None
        except (struct.error, zlib.error, UnicodeDecodeError) as error:
            raise SpdyError(f"a control frame cannot be read: {error}") from error

    def _headers(self, block: bytes) -> dict[str, str]:
        inflated = self._inflate.decompress(block, _MAX_HEADER_BYTES)
        if self._inflate.unconsumed_tail:
            raise SpdyError(f"the headers of a stream have more than {_MAX_HEADER_BYTES} bytes")
        headers: dict[str, str] = {}
        (count,) = struct.unpack_from(">I", inflated)
        offset = 4
        for _ in range(min(count, _MAX_HEADER_BYTES)):
            name, offset = _text(inflated, offset)
            value, offset = _text(inflated, offset)
            headers[name.lower()] = value
        return headers


class SpdyWriter:
    """Turns frames into bytes."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def write(self, frame: Frame) -> bytes:
        """Return the bytes of a frame; frames must be sent in the order in which they were written."""
        match frame:
            case StreamData(stream, data, is_last=is_last):
                return struct.pack(">II", stream, (FIN if is_last else 0) << 24 | len(data)) + data
            case OpenStream(stream, headers, is_last=is_last):
                payload = struct.pack(">IIBB", stream, 0, 0, 0) + self._block(headers)
                return _control_frame(_SYN_STREAM, payload, flags=FIN if is_last else 0)
            case StreamReply(stream):
                return _control_frame(_SYN_REPLY, struct.pack(">I", stream) + self._block({}))
            case StreamReset(stream, status):
                return _control_frame(_RST_STREAM, struct.pack(">II", stream, status))
            case Ping(number):
                return _control_frame(_PING, struct.pack(">I", number))
            case GoAway():
                return _control_frame(_GOAWAY, struct.pack(">II", 0, 0))

    def _block(self, headers: Mapping[str, str]) -> bytes:
        plain = struct.pack(">I", len(headers))
        for name, value in headers.items():
            for text in (name.encode(), value.encode()):
                plain += struct.pack(">I", len(text)) + text
        return self._deflate.compress(plain) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def _control_frame(kind: int, payload: bytes, *, flags: int = 0) -> bytes:
    return struct.pack(">HHI", _VERSION, kind, flags << 24 | len(payload)) + payload


def _text(block: bytes, offset: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">I", block, offset)
    end = offset + 4 + length
    if end > len(block):
        raise SpdyError("a header is longer than its block")
    return block[offset + 4 : end].decode(), end
