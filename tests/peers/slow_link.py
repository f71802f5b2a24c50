"""A slow and lossy link to a server on loopback, as a proxy: all pieces are late, some as late as a lost packet.

TCP hides a loss behind a pause, the time until it sends again. Here a piece of the stream waits for so long, and what
follows waits behind it. The link can be cut.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

DELAY_SECONDS = 0.15
"""One way: a round trip of 300 ms."""
LOSS = 0.01
RESEND_SECONDS = 0.6
"""The round trip, and as much again until the loss is noticed."""
_PIECE = 1400


@dataclass(kw_only=True)
class SlowLink:
    """A link to one port; `lost` counts what was sent twice."""

    target: int
    delay: float = DELAY_SECONDS
    loss: float = LOSS
    port: int = 0
    lost: int = 0
    is_cut: bool = False
    _random: random.Random = field(default_factory=lambda: random.Random(7))
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    def cut(self) -> None:
        """End all connections, and take none."""
        self.is_cut = True
        for writer in self._open:
            writer.transport.abort()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        if self.is_cut:
            writer.transport.abort()
            return
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.target)
        ours = {writer, server_writer}
        self._open |= ours
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry(reader, server_writer), name="to the server")
                group.create_task(self._carry(server_reader, writer), name="to the browser")
        except* (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open -= ours
            for one in ours:
                one.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        late: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(512)

        async def deliver() -> None:
            while True:
                due, piece = await late.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                if not piece:
                    writer.transport.abort()
                    return
                writer.write(piece)
                await writer.drain()

        async with asyncio.TaskGroup() as group:
            group.create_task(deliver(), name="deliver")
            piece = b"first"
            while piece:
                piece = await reader.read(_PIECE)
                is_lost = bool(piece) and self._random.random() < self.loss
                self.lost += is_lost
                await late.put((loop.time() + self.delay + (RESEND_SECONDS if is_lost else 0.0), piece))


@contextlib.asynccontextmanager
async def slow_link(target: int) -> AsyncIterator[SlowLink]:
    """Run a link to a port of this computer."""
    link = SlowLink(target=target)
    tasks: set[asyncio.Task[None]] = set()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(link.accept(reader, writer), name="connection")
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accepted, "127.0.0.1", 0)
    link.port = server.sockets[0].getsockname()[1]
    try:
        yield link
    finally:
        server.close()
        link.cut()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
