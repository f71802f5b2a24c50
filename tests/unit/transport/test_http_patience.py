"""Who sends or reads nothing over HTTP is cut off; who is only slow is not."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from maestropy.transport.http_listener import HttpListener
from maestropy.transport.http_patience import Patience

SHORT, LONG = 0.3, 60.0
LARGE = 40_000_000


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    response: Response = PlainTextResponse(b"x" * LARGE) if scope["path"] == "/large" else PlainTextResponse(body)
    await response(scope, receive, send)


@contextlib.asynccontextmanager
async def connected(patience: Patience) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    listener = HttpListener(app, host="127.0.0.1", port=0, patience=patience)
    serving = asyncio.ensure_future(listener.serve(tls=None))
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=2**16)
    try:
        yield reader, writer
    finally:
        writer.close()
        listener.stop()
        await serving


async def until_cut(reader: asyncio.StreamReader) -> bytes:
    """Return what still comes; the connection must end."""
    async with asyncio.timeout(20):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET / HTTP/1.1\r\nHost", id="half-a-head"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf", id="half-a-body"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHo", id="half-a-second-request"),
    ],
)
def test_who_never_finishes_a_request_is_cut_off(sent: bytes) -> None:
    async def scenario() -> None:
        async with connected(Patience(read=SHORT, write=LONG)) as (reader, writer):
            writer.write(sent)
            await until_cut(reader)

    asyncio.run(scenario())


def test_who_finished_a_request_may_stay(capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        async with connected(Patience(read=SHORT, write=LONG)) as (reader, writer):
            for number in range(3):
                writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n%d" % number)
                head = await reader.readuntil(b"\r\n\r\n")
                assert b" 200 " in head
                assert await reader.readexactly(1) == b"%d" % number
                await asyncio.sleep(2 * SHORT)  # longer than a request may take: an idle connection is none

    asyncio.run(scenario())
    assert capsys.readouterr().err == ""


def test_who_does_not_read_is_cut_off_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        async with connected(Patience(read=LONG, write=SHORT)) as (reader, writer):
            writer.write(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            # The reader's own buffer is full by now; nothing is taken out of the connection until the end of this.
            async with asyncio.timeout(20):
                while not reader.at_eof() and writer.transport.is_reading():
                    await asyncio.sleep(0.01)
            await asyncio.sleep(4 * SHORT)
            assert len(await until_cut(reader)) < LARGE

    asyncio.run(scenario())
    assert capsys.readouterr().err == ""


def test_who_reads_slowly_gets_everything() -> None:
    async def scenario() -> None:
        async with connected(Patience(read=LONG, write=2.0)) as (reader, writer):
            writer.write(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            left = LARGE
            while left:
                left -= len(await reader.read(2_000_000))
                await asyncio.sleep(0)

    asyncio.run(scenario())
