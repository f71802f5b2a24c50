"""A listener without a host serves both families of addresses; one that cannot be bound names its address."""

import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncIterator, Sequence

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from maestropy.transport.http.limits import HttpLimits
from maestropy.transport.http.listener import HttpListener

needs_ipv6 = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this host has no IPv6")


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the address of the client."""
    await PlainTextResponse(scope["client"][0])(scope, receive, send)


@contextlib.asynccontextmanager
async def serving(host: str) -> AsyncIterator[HttpListener]:
    listener = HttpListener(app, host=host, port=0, limits=HttpLimits())
    task = asyncio.ensure_future(listener.serve(tls=None))
    try:
        yield listener
    finally:
        listener.stop()
        await task


async def client_seen_at(address: str, port: int) -> str:
    async with asyncio.timeout(20):
        reader, writer = await asyncio.open_connection(address, port)
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        response = await reader.read()
        writer.close()
    return response.decode().rpartition("\r\n")[2]


@needs_ipv6
@pytest.mark.parametrize("host", ["", "::"])
async def test_all_interfaces_are_those_of_both_families(host: str) -> None:
    async with serving(host) as listener:
        seen = [await client_seen_at(address, listener.port) for address in ("127.0.0.1", "::1")]
    assert seen == ["127.0.0.1", "::1"]


class _WithoutIpv6(socket.socket):
    """A socket of a host whose IPv6 is disabled: it can be created, but has no address."""

    def bind(self, address: Sequence[object], /) -> None:  # type: ignore[override]  # only addresses of TCP
        if self.family == socket.AF_INET6:
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
        super().bind(tuple(address))


@pytest.mark.parametrize("kernel_has_ipv6", [True, False])
async def test_host_without_ipv6_serves_ipv4(kernel_has_ipv6: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: kernel_has_ipv6)
    monkeypatch.setattr(socket, "socket", _WithoutIpv6)
    async with serving("") as listener:
        assert await client_seen_at("127.0.0.1", listener.port) == "127.0.0.1"


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        pytest.param("", r"\*", id="all"),
        pytest.param("::", r"\[::\]", id="all-ipv6", marks=needs_ipv6),
        pytest.param("127.0.0.1", r"127\.0\.0\.1", id="one"),
    ],
)
def test_port_in_use_is_named(host: str, shown: str) -> None:
    first = HttpListener(app, host="127.0.0.1", port=0)
    with pytest.raises(OSError, match=f"cannot listen on {shown}:{first.port}: Address already in use"):
        HttpListener(app, host=host, port=first.port)
    first.stop()


def test_name_without_address_is_named() -> None:
    with pytest.raises(OSError, match=r"cannot listen on no\.such\.invalid:0: "):
        HttpListener(app, host="no.such.invalid", port=0)
