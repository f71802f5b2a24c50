"""JSON objects that are kept for long and rarely read: as bytes, of a fraction of the size that reading them takes.

What is large is compressed too; manifests say the same words over and over.
"""

import zlib
from typing import Any

import msgspec

from maestropy.wire.jsontypes import Object

# Below this, compressing saves less than it costs.
_LARGE_BYTES = 4096
_QUICKLY = 1


def pack(value: Object) -> bytes:
    """Return a JSON object as bytes that only `unpack` can read."""
    text = msgspec.json.encode(value)
    if len(text) > _LARGE_BYTES:
        return zlib.compress(text, _QUICKLY)
    # A copy, because the encoder's own bytes keep the room that they were written in.
    return bytes(memoryview(text))


def unpack(packed: bytes) -> dict[str, Any]:
    """Return the object; whoever gets it owns it."""
    is_plain = packed.startswith(b"{")
    found: dict[str, Any] = msgspec.json.decode(packed if is_plain else zlib.decompress(packed))
    return found
