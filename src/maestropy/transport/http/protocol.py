"""Limit the time, the header size and the number of HTTP connections.

uvicorn limits none of them, and every open connection costs memory and a file descriptor. A connection that exceeds a
timeout is aborted. A long response to a client that keeps reading is never aborted.
"""

import asyncio
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from maestropy.transport.http.limits import HttpLimits


class _TooManyPipelined(Exception):
    """A client sent more requests than it may before it has the first response."""


class LimitedProtocol(HttpToolsProtocol):
    """An HTTP connection that is closed when it exceeds a limit."""

    limits: HttpLimits
    without_request: "dict[LimitedProtocol, None]"
    """Open connections of the listener that have not sent the headers of a request yet, the oldest first."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        if self.client is not None:
            host, port = self.client
            # How a listener for both families shows clients that use IPv4.
            self.client = (host.removeprefix("::ffff:") if "." in host else host, port)
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._reads_head = True
        self._head_bytes = 0
        self._make_room()
        self.without_request[self] = None
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self.without_request.pop(self, None)
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # Also for bytes that begin no request: blank lines would keep an idle connection open forever.
        if self._reading is None and self._reads_head:
            self._expect_request()
        while data and not self.transport.is_closing():
            chunk, data = self._next_chunk(data)
            super().data_received(chunk)
            if self._reads_head and self._head_bytes >= self.limits.header_bytes:
                self._reject_head()

    def on_message_begin(self) -> None:
        if self._reading is None:
            self._expect_request()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > self.limits.headers:
            self._reject_head()

    def on_headers_complete(self) -> None:
        self._reads_head = False
        self.without_request.pop(self, None)
        if self.transport.is_closing():
            return
        self._take_host_of_target()
        super().on_headers_complete()
        if len(self.pipeline) > self.limits.pipelined:
            self.transport.abort()
            raise _TooManyPipelined  # ends the parser, which has more of them

    def _take_host_of_target(self) -> None:
        """Replace `Host` by the host of a target like `http://host/path` (RFC 9112, 3.2.2): one name is checked."""
        target = bytes(self.url)
        if target.startswith((b"/", b"*")) or b"://" not in target:
            return
        host = target.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]
        self.headers[:] = [item for item in self.headers if item[0] != b"host"]
        self.headers.append((b"host", host))

    def on_body(self, body: bytes) -> None:
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._reads_head, self._head_bytes = True, 0
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        if self.cycle is not None:
            super().on_message_complete()

    def pause_writing(self) -> None:
        self._writing = self.loop.call_later(self.limits.write_seconds, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        super().resume_writing()

    def _next_chunk(self, data: bytes) -> tuple[bytes, bytes]:
        """Return what the parser may have now, and the rest: of the headers only as much as the limit allows."""
        if not self._reads_head:
            return data, b""
        room = self.limits.header_bytes - self._head_bytes
        chunk = data[:room]
        self._head_bytes += len(chunk)
        return chunk, data[room:]

    def _reject_head(self) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()  # the client would take the error for a part of the running response
            return
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        text = f"{status.value} {status.phrase}"
        head = f"HTTP/1.1 {text}\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
        self.transport.write(f"{head}content-length: {len(text)}\r\n\r\n{text}".encode())
        self.transport.close()

    def _make_room(self) -> None:
        """Close one connection if there are too many: the oldest without a request, else an idle one, else this one."""
        if len(self.connections) <= self.limits.connections:
            return
        oldest = next(iter(self.without_request), None)
        (oldest or self._idle_connection() or self).transport.abort()
        if oldest is not None:
            self.without_request.pop(oldest)

    def _idle_connection(self) -> "LimitedProtocol | None":
        idle = (
            connection
            for connection in self.connections
            if isinstance(connection, LimitedProtocol) and connection.cycle and connection.cycle.response_complete
        )
        return next(idle, None)

    def _expect_request(self) -> None:
        self._reading = self.loop.call_later(self.limits.read_seconds, self.transport.abort)

    def _stop(self) -> None:
        for timer in (self._reading, self._writing):
            if timer is not None:
                timer.cancel()


def protocol_class(limits: HttpLimits) -> type[LimitedProtocol]:
    """Return a protocol class with these limits for one listener; uvicorn needs a class."""
    return type("LimitedProtocol", (LimitedProtocol,), {"limits": limits, "without_request": {}})
