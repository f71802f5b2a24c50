"""Pack JSON objects that are kept in memory for long and rarely read: as bytes, compressed if they are large.

Packed objects need a fraction of the memory of parsed ones; manifests are repetitive and compress well.
"""

import zlib
from typing import Any

import msgspec

from maestropy.wire.json_types import Object

# Compressing smaller objects saves less than it costs.
_LARGE_BYTES = 4096
_FASTEST = 1


def pack(value: Object) -> bytes:
    """Pack a JSON object to bytes for `unpack`."""
    text = msgspec.json.encode(value)
    if len(text) > _LARGE_BYTES:
        return zlib.compress(text, _FASTEST)
    # A copy, because the bytes of the encoder keep its larger buffer.
    return bytes(memoryview(text))


def unpack(packed: bytes) -> dict[str, Any]:
    """Return the object; the caller may change it."""
    is_plain = packed.startswith(b"{")
    value: dict[str, Any] = msgspec.json.decode(packed if is_plain else zlib.decompress(packed))
    return value
