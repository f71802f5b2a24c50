"""A client that sends or reads nothing is disconnected; a slow client is not."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from maestropy.transport.http.limits import HttpLimits
from maestropy.transport.http.listener import HttpListener
from maestropy.transport.tls import self_signed

SHORT, LONG = 0.3, 60.0
LARGE = 40_000_000


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    response: Response = PlainTextResponse(b"x" * LARGE) if scope["path"] == "/large" else PlainTextResponse(body)
    await response(scope, receive, send)


@contextlib.asynccontextmanager
async def connected(limits: HttpLimits) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    listener = HttpListener(app, host="127.0.0.1", port=0, limits=limits)
    serving = asyncio.ensure_future(listener.serve(tls=None))
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=2**16)
    try:
        yield reader, writer
    finally:
        writer.close()
        listener.stop()
        await serving


async def read_until_closed(reader: asyncio.StreamReader) -> bytes:
    """Return the remaining bytes; the server must close the connection."""
    async with asyncio.timeout(20):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET / HTTP/1.1\r\nHost", id="incomplete-head"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf", id="incomplete-body"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHo", id="incomplete-second-request"),
    ],
)
async def test_connection_with_incomplete_request_is_closed_after_the_read_timeout(sent: bytes) -> None:
    async with connected(HttpLimits(read_seconds=SHORT, write_seconds=LONG)) as (reader, writer):
        writer.write(sent)
        await read_until_closed(reader)


async def test_malformed_request_is_answered_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with connected(HttpLimits(read_seconds=LONG, write_seconds=LONG)) as (reader, writer):
        writer.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        assert b" 400 " in await read_until_closed(reader)
    assert caplog.messages == []


async def test_idle_connection_after_a_request_stays_open(capsys: pytest.CaptureFixture[str]) -> None:
    async with connected(HttpLimits(read_seconds=SHORT, write_seconds=LONG)) as (reader, writer):
        for number in range(3):
            writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n%d" % number)
            head = await reader.readuntil(b"\r\n\r\n")
            assert b" 200 " in head
            assert await reader.readexactly(1) == b"%d" % number
            await asyncio.sleep(2 * SHORT)  # longer than the read timeout, which does not apply to an idle connection
    assert capsys.readouterr().err == ""


async def test_connection_that_is_not_read_is_closed_after_the_write_timeout(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with connected(HttpLimits(read_seconds=LONG, write_seconds=SHORT)) as (reader, writer):
        writer.write(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        # The buffer of the reader is full by now; nothing is read from the connection until the end of this block.
        async with asyncio.timeout(20):
            while not reader.at_eof() and writer.transport.is_reading():  # type: ignore[attr-defined]  # it reads, too
                await asyncio.sleep(0.01)
        await asyncio.sleep(4 * SHORT)
        assert len(await read_until_closed(reader)) < LARGE
    assert capsys.readouterr().err == ""


async def test_slow_reader_gets_the_whole_response() -> None:
    async with connected(HttpLimits(read_seconds=LONG, write_seconds=2.0)) as (reader, writer):
        writer.write(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        remaining = LARGE
        while remaining:
            remaining -= len(await reader.read(2_000_000))
            await asyncio.sleep(0)


async def test_connection_without_tls_handshake_is_closed() -> None:
    tls = self_signed.context(["localhost"], now=dt.datetime.now(dt.UTC))
    listener = HttpListener(app, host="127.0.0.1", port=0, limits=HttpLimits(handshake_seconds=SHORT))
    serving = asyncio.ensure_future(listener.serve(tls=tls))
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    assert await read_until_closed(reader) == b""
    writer.close()
    listener.stop()
    await serving
