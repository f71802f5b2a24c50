"""A network that fails on command: a TCP proxy between any two parts of the system.

It stands before a TCP port or a unix socket and does to each direction what a test asks for: passes, holds, delays,
throttles, damages. It can also cut every connection, or strand them: a stranded connection carries nothing any more
and is never closed, which is what both ends see of a host that lost its network. It knows no protocol.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

_CHUNK_BYTES = 65536
_RESET = struct.pack("ii", 1, 0)

Target = Path | tuple[str, int]
"""A unix socket, or host and port."""


@dataclass(eq=False)
class Lane:
    """What happens to bytes that travel one way."""

    delay_seconds: float = 0.0
    bytes_per_second: float = 0.0
    """0: as fast as they come."""
    damage: Callable[[bytes], bytes] | None = None
    """What becomes of a piece; one that is made shorter is the last that its connection carries this way."""
    carried: int = 0
    _open: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._open.set()

    def hold(self) -> None:
        """Let nothing through; what comes meanwhile waits."""
        self._open.clear()

    def release(self) -> None:
        """Let what waited through, and all that follows."""
        self._open.set()

    async def wait_open(self) -> None:
        """Wait until nothing is held."""
        await self._open.wait()

    async def carry(self, data: bytes) -> bytes:
        """Return `data` when it may go on."""
        await self._open.wait()
        if self.delay_seconds:
            await asyncio.sleep(self.delay_seconds)
        if self.bytes_per_second:
            await asyncio.sleep(len(data) / self.bytes_per_second)
        await self._open.wait()
        self.carried += len(data)
        return self.damage(data) if self.damage else data


@dataclass(eq=False)
class _Connection:
    """The two halves of one connection."""

    client: asyncio.StreamWriter
    target: asyncio.StreamWriter | None = None
    stranded: bool = False
    marked: bool = False

    def abort(self) -> None:
        for writer in (self.client, self.target):
            if writer is None:
                continue
            with contextlib.suppress(OSError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()


class FaultProxy:
    """`async with FaultProxy(target) as proxy:` listens on `proxy.port`; `up` leads to the target, `down` away."""

    def __init__(self, target: Target, *, port: int = 0) -> None:
        self.target = target
        """May be changed at any time; counts for new connections."""
        self.port = port
        self.up = Lane()
        self.down = Lane()
        self.accepted = 0
        self.mark = b"nothing says this"
        """Connections whose client says this are marked; see `strand`."""
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=2048)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.port}"

    @property
    def open_connections(self) -> int:
        """How many connections there are, stranded ones included."""
        return len(self._connections)

    def partition(self) -> None:
        """Hold both directions, and new connections too: they are accepted and hear nothing."""
        self.up.hold()
        self.down.hold()

    def heal(self) -> None:
        """Pass everything again, undamaged and at full speed."""
        for lane in (self.up, self.down):
            lane.delay_seconds = lane.bytes_per_second = 0.0
            lane.damage = None
            lane.release()

    def cut(self) -> None:
        """Reset every connection."""
        for connection in list(self._connections):
            connection.abort()

    def strand(self, *, only_marked: bool = False) -> int:
        """Let today's connections carry nothing for ever, and never close them; new ones work. Returns how many."""
        chosen = [each for each in self._connections if each.marked or not only_marked]
        for connection in chosen:
            connection.stranded = True
        return len(chosen)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        self.accepted += 1
        connection = _Connection(client=writer)
        self._connections.add(connection)
        try:
            await self._join(connection, reader)
        except (OSError, asyncio.CancelledError):
            pass  # the target is not there, or the test is over: the client sees a reset
        finally:
            connection.abort()
            self._connections.discard(connection)
            self._tasks.discard(task)

    async def _join(self, connection: _Connection, reader: asyncio.StreamReader) -> None:
        # A target behind a partition is not even dialled: who asks hears nothing, no refusal either.
        await self.up.wait_open()
        opened = (
            asyncio.open_unix_connection(str(self.target))
            if isinstance(self.target, Path)
            else asyncio.open_connection(*self.target)
        )
        answers, connection.target = await opened
        async with asyncio.TaskGroup() as group:
            up = group.create_task(self._pump(connection, reader, connection.target, lane=self.up))
            down = group.create_task(self._pump(connection, answers, connection.client, lane=self.down))
            await asyncio.wait([up, down], return_when=asyncio.FIRST_COMPLETED)
            # What the one side said before it left still goes to the other.
            await asyncio.wait([up, down], timeout=0.2)
            up.cancel()
            down.cancel()

    async def _pump(
        self, connection: _Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, lane: Lane
    ) -> None:
        while True:
            try:
                data = await reader.read(_CHUNK_BYTES)
            except OSError:
                data = b""
            connection.marked |= lane is self.up and self.mark in data
            carried = await lane.carry(data)
            if connection.stranded:
                await asyncio.Event().wait()
            if not carried:
                return
            try:
                writer.write(carried)
                await writer.drain()
            except OSError:
                return
            if len(carried) < len(data):
                return  # as over TCP, nothing arrives behind a gap


@contextlib.asynccontextmanager
async def proxies(*targets: Target) -> AsyncIterator[list[FaultProxy]]:
    """Run one proxy before each target."""
    async with contextlib.AsyncExitStack() as stack:
        yield [await stack.enter_async_context(FaultProxy(target)) for target in targets]
