"""Messages are decompressed up to the limit of a message and not further."""

import gzip
import zlib
from collections.abc import Callable

import pytest

from maestropy.transport.grpc import requests
from maestropy.wire import errors

LIMIT = 1000


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"\x0a\x03abc", id="plain"),
        pytest.param(b"", id="empty"),
        pytest.param(b"\x78\x02", id="unknown-field-like-zlib"),
    ],
)
def test_message_without_compression_stays_as_it_is(message: bytes) -> None:
    assert requests.decompress(message, limit=LIMIT) == message


@pytest.mark.parametrize(
    "compress", [pytest.param(gzip.compress, id="gzip"), pytest.param(zlib.compress, id="deflate")]
)
def test_compressed_message_is_read_up_to_the_limit(compress: Callable[[bytes], bytes]) -> None:
    assert requests.decompress(compress(b"a" * LIMIT), limit=LIMIT) == b"a" * LIMIT
    with pytest.raises(requests.RequestTooLarge, match="more than 1000"):
        requests.decompress(compress(b"a" * (LIMIT + 1)), limit=LIMIT)
    with pytest.raises(errors.MalformedMessage, match="incomplete"):
        requests.decompress(compress(b"a" * LIMIT)[:-5], limit=LIMIT)
