"""Write HTTP/2 frames by hand, so that a test can send what no gRPC library sends."""

import asyncio
import struct
from collections.abc import Sequence

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, CONTINUATION = 0, 1, 3, 4, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
MAX_CONCURRENT_STREAMS = 3
FRAME_BYTES = 16_384


def frame(kind: int, *, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    """Return one frame."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def settings(*, acknowledges: bool = True) -> bytes:
    """Return the first bytes of a client."""
    return PREFACE + frame(SETTINGS) + (frame(SETTINGS, flags=ACK) if acknowledges else b"")


def call(path: str, *, stream: int = 1, metadata: Sequence[tuple[str, str]] = ()) -> bytes:
    """Return the headers of a gRPC call."""
    headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        *metadata,
    ]
    block = b"".join(b"\x00" + _text(name) + _text(value) for name, value in headers)
    return frame(HEADERS, flags=END_HEADERS, stream=stream, payload=block)


def repeated_header(path: str, *, count: int) -> bytes:
    """Return calls whose headers repeat one of 3,900 bytes 14,000 times each, by its index in the table."""
    block = call(path)[9:]
    first = block + b"\x40" + _text("x-large") + _text("v" * 3_900)
    calls = [frame(HEADERS, flags=END_HEADERS, stream=1, payload=first)]
    for number in range(1, count + 1):
        payload = block + b"\xbe" * 14_000
        calls.append(frame(HEADERS, flags=END_STREAM | END_HEADERS, stream=2 * number + 1, payload=payload))
    return b"".join(calls)


def endless_small_headers(path: str, *, size: int) -> bytes:
    """Return the beginning of a call whose headers repeat one of two bytes, by its index, and do not end."""
    first = call(path)[9:] + b"\x40" + _text("x") + _text("a")
    more = [frame(CONTINUATION, stream=1, payload=b"\xbe" * FRAME_BYTES) for _ in range(size // FRAME_BYTES)]
    return frame(HEADERS, stream=1, payload=first) + b"".join(more)


def message(content: bytes, *, stream: int = 1, is_compressed: bool = False) -> bytes:
    """Return the frames of one message, the last of its stream."""
    body = struct.pack(">BI", is_compressed, len(content)) + content
    parts = [body[start : start + FRAME_BYTES] for start in range(0, len(body), FRAME_BYTES)]
    return b"".join(
        frame(DATA, flags=END_STREAM if part is parts[-1] else 0, stream=stream, payload=part) for part in parts
    )


def reset(stream: int) -> bytes:
    """Return the frame that cancels a call."""
    return frame(RST_STREAM, stream=stream, payload=struct.pack(">I", 8))


async def first_settings(reader: asyncio.StreamReader) -> dict[int, int]:
    """Return the settings that the server sends first."""
    head = await reader.readexactly(9)
    payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
    assert head[3] == SETTINGS
    return dict(struct.iter_unpack(">HI", payload))


def _text(value: str) -> bytes:
    content = value.encode()
    size = len(content)
    if size < 127:
        return bytes([size]) + content
    rest, head = size - 127, b"\x7f"
    while rest >= 128:
        head += bytes([rest % 128 + 128])
        rest //= 128
    return head + bytes([rest]) + content
