"""Carry the connections of one port-forward between a WebSocket and local ports, until either side ends.

| protocol | client | connections of one WebSocket |
|---|---|---|
| `SPDY/3.1+portforward.k8s.io` | kubectl since 1.31 | many: two SPDY streams each, for data and for an error |
| `v4.channel.k8s.io` | `maestro trace`, clients in browsers | one: channel 0 for data, channel 1 for an error |

Nothing is buffered beyond one frame: a local program that does not read stops the WebSocket, and with it the other
connections of the same port-forward, as long as it does not read.
"""

import asyncio
import contextlib
import struct
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp
from aiohttp import web

from maestropy.aio import tasks
from maestropy.sandbox.kubeapi.streams import spdy
from maestropy.sandbox.kubeapi.streams.targets import NoTarget, port_number

SPDY = "SPDY/3.1+portforward.k8s.io"
CHANNELS = "v4.channel.k8s.io"
PROTOCOLS = (SPDY, CHANNELS)
MAX_MESSAGE_BYTES = 4 << 20

_CHUNK = 32 * 1024
_MAX_STREAMS = 512
"""Streams that are open at once, two for each connection."""
_CONNECT_SECONDS = 5.0
_DATA, _ERROR = 0, 1

Targets = Callable[[int], int]
"""The local port of a port of the pod; raises NoTarget."""


async def carry_spdy(socket: web.WebSocketResponse, targets: Targets) -> None:
    """Carry the connections of a port-forward of kubectl."""
    async with asyncio.TaskGroup() as group:
        session = _SpdySession(socket, targets, group=group)
        try:
            await session.run()
        finally:
            await session.close()


@dataclass(slots=True)
class _Connection:
    """One forwarded connection: its two streams, and the local socket once it is open."""

    error: int = 0
    data: int = 0
    writer: asyncio.StreamWriter | None = None
    sending: asyncio.Task[None] | None = None


class _SpdySession:
    def __init__(self, socket: web.WebSocketResponse, targets: Targets, *, group: asyncio.TaskGroup) -> None:
        self._socket, self._targets, self._group = socket, targets, group
        self._reader, self._writer = spdy.SpdyReader(), spdy.SpdyWriter()
        # Headers are compressed in one stream: frames are sent in the order in which they were written.
        self._order = asyncio.Lock()
        self._requests: dict[str, _Connection] = {}
        self._streams: dict[int, str] = {}
        """The request of each open stream."""

    async def run(self) -> None:
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.BINARY:
                return
            try:
                for frame in self._reader.feed(message.data):
                    await self._handle(frame)
            except spdy.SpdyError:
                await self._send(spdy.GoAway())
                return

    async def close(self) -> None:
        """End every connection."""
        for connection in list(self._requests.values()):
            await self._end(connection)
        self._requests.clear()

    async def _handle(self, frame: spdy.Frame) -> None:
        match frame:
            case spdy.OpenStream():
                await self._open(frame)
            case spdy.StreamData(stream, data, is_last=is_last):
                await self._receive(stream, data, is_last=is_last)
            case spdy.StreamReset(stream):
                await self._forget(self._streams.get(stream, ""))
            case spdy.Ping():
                await self._send(frame)
            case _:
                pass

    async def _open(self, frame: spdy.OpenStream) -> None:
        request, kind = frame.headers.get("requestid", ""), frame.headers.get("streamtype", "")
        if len(self._streams) >= _MAX_STREAMS or not request or kind not in ("error", "data"):
            await self._send(spdy.StreamReset(frame.stream, spdy.REFUSED_STREAM))
            return
        connection = self._requests.setdefault(request, _Connection())
        if kind == "data" and not connection.error:
            # Without the stream for errors nobody could be told why the connection fails.
            del self._requests[request]
            await self._send(spdy.StreamReset(frame.stream, spdy.PROTOCOL_ERROR))
            return
        self._streams[frame.stream] = request
        await self._send(spdy.StreamReply(frame.stream))
        if kind == "error":
            connection.error = frame.stream
            return
        connection.data = frame.stream
        try:
            local = self._targets(port_number(frame.headers.get("port", "")))
            reader, connection.writer = await _connected(local)
        except NoTarget as error:
            await self._finish(request, connection, str(error))
            return
        sending = self._deliver(request, connection, reader)
        connection.sending = tasks.start_in_group(self._group, f"port-forward to local port {local}", sending)

    async def _receive(self, stream: int, data: bytes, *, is_last: bool) -> None:
        connection = self._requests.get(self._streams.get(stream, ""))
        if connection is None or connection.writer is None or stream != connection.data:
            return
        with contextlib.suppress(OSError):
            connection.writer.write(data)
            if is_last and connection.writer.can_write_eof():
                connection.writer.write_eof()
            await connection.writer.drain()

    async def _deliver(self, request: str, connection: _Connection, reader: asyncio.StreamReader) -> None:
        """Send what the local program writes, and its end."""
        problem = ""
        try:
            while chunk := await reader.read(_CHUNK):
                await self._send(spdy.StreamData(connection.data, chunk))
        except OSError as error:
            problem = f"the local program ended the connection: {error}"
        with contextlib.suppress(ConnectionError):
            await self._finish(request, connection, problem)

    async def _finish(self, request: str, connection: _Connection, problem: str) -> None:
        """Tell the client why a connection ends, and end both streams."""
        await self._send(spdy.StreamData(connection.error, problem.encode(), is_last=True))
        await self._send(spdy.StreamData(connection.data, b"", is_last=True))
        connection.sending = None
        await self._forget(request)

    async def _forget(self, request: str) -> None:
        connection = self._requests.pop(request, None)
        if connection is not None:
            self._streams.pop(connection.error, None)
            self._streams.pop(connection.data, None)
            await self._end(connection)

    async def _end(self, connection: _Connection) -> None:
        if connection.sending is not None:
            connection.sending.cancel()
            await asyncio.gather(connection.sending, return_exceptions=True)
        if connection.writer is not None:
            connection.writer.close()

    async def _send(self, frame: spdy.Frame) -> None:
        async with self._order:
            await self._socket.send_bytes(self._writer.write(frame))


async def carry_channels(socket: web.WebSocketResponse, *, port: int, targets: Targets) -> None:
    """Carry the one connection of a WebSocket with channels; the first message of each channel is the port."""
    for channel in (_DATA, _ERROR):
        await socket.send_bytes(bytes([channel]) + struct.pack("<H", port))
    try:
        reader, writer = await _connected(targets(port))
    except NoTarget as error:
        await socket.send_bytes(bytes([_ERROR]) + str(error).encode())
        return
    try:
        await tasks.wait_for_first([_to_program(socket, writer), _to_client(reader, socket)])
    except OSError:
        pass
    finally:
        writer.close()


async def _to_program(socket: web.WebSocketResponse, writer: asyncio.StreamWriter) -> None:
    async for message in socket:
        if message.type is aiohttp.WSMsgType.BINARY and message.data[:1] == bytes([_DATA]):
            writer.write(message.data[1:])
            await writer.drain()


async def _to_client(reader: asyncio.StreamReader, socket: web.WebSocketResponse) -> None:
    while chunk := await reader.read(_CHUNK):
        await socket.send_bytes(bytes([_DATA]) + chunk)


async def _connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            return await asyncio.open_connection("127.0.0.1", port)
    except (OSError, TimeoutError) as error:
        cause = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise NoTarget(f"the local port {port} that stands in for the pod cannot be reached: {cause}") from error
