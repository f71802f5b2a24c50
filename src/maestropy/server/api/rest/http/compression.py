"""Compress responses with gzip for clients that accept it.

A stream is compressed in chunks, one chunk behind. Large chunks are compressed in a thread, which releases the
interpreter lock, so that other requests are served meanwhile.
"""

import asyncio
import zlib
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Level 1: manifests shrink to about a tenth; higher levels cost more time than they save bytes.
_LEVEL: Final = 1
_GZIP_WINDOW: Final = 31
# Smaller bodies are not worth compressing.
_MIN_BYTES: Final = 1024
_THREAD_BYTES: Final = 64 * 1024


class CompressionMiddleware:
    """Compresses the responses of the app it wraps."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and accepts_gzip(Headers(scope=scope).get("accept-encoding", "")):
            send = _GzipSend(send)
        await self._app(scope, receive, send)


class _GzipSend:
    """The send function of one response: delays the start until it knows whether to compress."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._deflate: zlib._Compress | None = None
        # The chunk in the thread: it is compressed while the app reads the next one from the database.
        self._in_thread: asyncio.Future[bytes] | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        if message["type"] != "http.response.body":
            await self._send(message)
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._start is not None:
            await self._begin(self._start, compresses=more or len(body) >= _MIN_BYTES)
        if self._deflate is not None:
            body = await self._compress(self._deflate, body, last=not more)
        if body or not more:
            await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def _begin(self, start: Message, *, compresses: bool) -> None:
        self._start = None
        headers = MutableHeaders(scope=start)
        if compresses:
            self._deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
            headers["Content-Encoding"] = "gzip"
            del headers["Content-Length"]
        headers.add_vary_header("Accept-Encoding")
        await self._send(start)

    async def _compress(self, deflate: "zlib._Compress", body: bytes, *, last: bool) -> bytes:
        """Return the compressed output so far; all of it with the last chunk."""
        done = await self._in_thread if self._in_thread is not None else b""
        self._in_thread = None
        if last:
            return done + deflate.compress(body) + deflate.flush()
        if len(body) < _THREAD_BYTES:
            return done + deflate.compress(body)
        self._in_thread = asyncio.get_running_loop().run_in_executor(None, deflate.compress, body)
        return done


def accepts_gzip(header: str) -> bool:
    """Return whether an `Accept-Encoding` header accepts gzip; `q=0` does not."""
    for item in header.lower().split(","):
        name, _, weight = item.replace(" ", "").partition(";")
        if name == "gzip":
            return weight.removeprefix("q=") not in ("0", "0.0", "0.00", "0.000")
    return False
