"""Hear PostgreSQL's notifications, on a connection of our own that is watched and replaced.

A notification only wakes; what was missed while the connection was gone is found by looking at the tables again, so
every new connection begins with `on_gap`.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import asyncpg

from maestropy.store import dsn as dsns
from maestropy.store import errors

# A silently dead connection looks like a quiet one; this is how long it may fool us.
PROBE_SECONDS = 5.0
PROBE_TIMEOUT_SECONDS = 5.0


async def listen(
    address: dsns.Dsn,
    *,
    channels: Mapping[str, Callable[[str], None]],
    on_gap: Callable[[], None],
    on_alive: Callable[[], None],
    on_loss: Callable[[Exception], None],
    delays: Callable[[], Iterator[float]],
) -> None:
    """Pass notifications to the channels' callbacks for ever; reconnect after every loss.

    `on_alive` is told from time to time that until now nothing was missed.
    """
    waits = delays()
    while True:
        try:
            connection = await asyncpg.connect(**address.connect_kwargs(), timeout=10)
            try:
                for channel, heard in channels.items():
                    await connection.add_listener(channel, _callback(heard))
                on_gap()
                waits = delays()
                await _watch(connection, on_alive=on_alive)
            finally:
                connection.terminate()
        except errors.DRIVER_ERRORS as error:
            on_loss(errors.translate(error))
        await asyncio.sleep(next(waits))


def _callback(heard: Callable[[str], None]) -> Callable[[Any, int, str, str], None]:
    def call(_connection: Any, _pid: int, _channel: str, payload: str) -> None:
        heard(payload)

    return call


async def _watch(connection: Any, *, on_alive: Callable[[], None]) -> None:
    """Raise when the connection no longer answers."""
    lost = asyncio.Event()
    connection.add_termination_listener(lambda _connection: lost.set())
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PROBE_SECONDS):
                await lost.wait()
        async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):
            await connection.execute("SELECT 1")
        on_alive()
