"""The proxy does what it is told: everything else in this folder rests on that."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.faults.fault_proxy import FaultProxy


@asynccontextmanager
async def echo() -> AsyncIterator[FaultProxy]:
    """Put a proxy before a server that says everything back."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1000):
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with FaultProxy(("127.0.0.1", server.sockets[0].getsockname()[1])) as proxy:
        yield proxy
    server.close()


class Client:
    """One connection through the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, proxy: FaultProxy) -> "Client":
        return cls(*await asyncio.open_connection("127.0.0.1", proxy.port))

    async def says(self, text: bytes) -> None:
        self.writer.write(text)
        await self.writer.drain()

    async def hears(self, text: bytes) -> None:
        async with asyncio.timeout(5):
            assert await self.reader.readexactly(len(text)) == text

    async def hears_nothing(self) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await self.reader.read(1)


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[tuple[FaultProxy, Client]]:
    async with echo() as proxy:
        client = await Client.open(proxy)
        await client.says(b"one")
        await client.hears(b"one")
        yield proxy, client
        client.writer.close()


async def test_hold_and_heal() -> None:
    async with connected() as (proxy, client):
        proxy.partition()
        late = await Client.open(proxy)
        for each in (client, late):
            await each.says(b"two")
            await each.hears_nothing()
        proxy.heal()
        for each in (client, late):
            await each.hears(b"two")
        late.writer.close()


async def test_one_way() -> None:
    async with connected() as (proxy, client):
        proxy.down.hold()
        carried = proxy.up.carried
        await client.says(b"two")
        await client.hears_nothing()
        assert proxy.up.carried == carried + 3
        proxy.heal()
        await client.hears(b"two")


async def test_cut() -> None:
    async with connected() as (proxy, client):
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            async with asyncio.timeout(5):
                await client.reader.read(1)


async def test_strand() -> None:
    async with connected() as (proxy, client):
        assert proxy.strand() == 1
        await client.says(b"two")
        await client.hears_nothing()
        proxy.heal()
        await client.hears_nothing()
        fresh = await Client.open(proxy)
        await fresh.says(b"three")
        await fresh.hears(b"three")
        fresh.writer.close()


async def test_only_marked_ones_are_stranded() -> None:
    async with connected() as (proxy, client):
        proxy.mark = b"marked"
        other = await Client.open(proxy)
        await other.says(b"I am marked")
        await other.hears(b"I am marked")
        assert proxy.strand(only_marked=True) == 1
        await client.says(b"two")
        await client.hears(b"two")
        await other.says(b"more")
        await other.hears_nothing()
        other.writer.close()


async def test_nothing_follows_a_piece_that_lost_its_end() -> None:
    async with connected() as (proxy, client):
        proxy.down.damage = lambda data: data[:2]
        await client.says(b"two")
        await client.hears(b"tw")
        proxy.heal()
        await client.says(b"three")
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(5):
                assert await client.reader.read() == b""


async def test_slow_and_damaged() -> None:
    async with connected() as (proxy, client):
        proxy.up.delay_seconds = 0.2
        proxy.down.bytes_per_second = 100
        proxy.down.damage = bytes.upper
        began = asyncio.get_running_loop().time()
        await client.says(b"x" * 20)
        await client.hears(b"X" * 20)
        assert asyncio.get_running_loop().time() - began >= 0.39
