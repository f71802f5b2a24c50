"""Read the one message of a call, with limits on size and time, and decompress it.

The library passes compressed messages on as they are. They are recognised by their first bytes: no protobuf message
begins like gzip, and none of this service like zlib.
"""

import asyncio
import zlib
from typing import Any

from maestropy.transport.grpc.limits import GrpcLimits
from maestropy.wire import errors

_GZIP = b"\x1f\x8b"
_ZLIB = b"\x78"
_AUTO_DETECT = 32 + zlib.MAX_WBITS
_ZLIB_CHECK = 31


class RequestTooLarge(errors.WireError):
    """A message is larger than the configured maximum; an unknown size is None."""

    def __init__(self, *, size: int | None, limit: int) -> None:
        sizes = f"{size} vs. {limit}" if size is not None else f"more than {limit}"
        super().__init__(
            f"grpc: received message larger than max ({sizes}); "
            "send smaller bundles or raise --grpc-max-receive-message-size"
        )


class RequestMissing(errors.WireError):
    """The client sent no message, or one that the library dropped because of its size."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(f"the call has no message, or one larger than max ({limit})")


class RequestTimeout(errors.WireError):
    """The message did not arrive in time."""

    def __init__(self, *, seconds: float) -> None:
        super().__init__(f"the message of the call did not arrive within {seconds:g}s")


async def read(context: Any, limits: GrpcLimits) -> bytes:
    """Return the message of a call."""
    try:
        async with asyncio.timeout(limits.read_seconds):
            message = await context.read()
    except TimeoutError as error:
        raise RequestTimeout(seconds=limits.read_seconds) from error
    if not isinstance(message, bytes):  # the end of the stream
        raise RequestMissing(limit=limits.max_receive_bytes)
    return decompress(message, limit=limits.max_receive_bytes)


def decompress(message: bytes, *, limit: int) -> bytes:
    """Return the message without compression; raise `RequestTooLarge` once it exceeds `limit` bytes."""
    if not _is_compressed(message):
        return message
    inflater = zlib.decompressobj(_AUTO_DETECT)
    try:
        content = inflater.decompress(message, limit + 1)
    except zlib.error as error:
        raise errors.MalformedMessage(f"the compressed message cannot be read: {error}") from error
    if len(content) > limit:
        raise RequestTooLarge(size=None, limit=limit)
    if not inflater.eof:
        raise errors.MalformedMessage("the compressed message is incomplete")
    return content


def _is_compressed(message: bytes) -> bool:
    if message.startswith(_GZIP):
        return True
    return message.startswith(_ZLIB) and int.from_bytes(message[:2], "big") % _ZLIB_CHECK == 0
