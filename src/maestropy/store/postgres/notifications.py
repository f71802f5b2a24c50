"""Listen for PostgreSQL notifications on a dedicated connection that is probed and replaced.

A notification is only a wake-up. Notifications sent while the connection was lost are missed, so every new connection
begins with `on_gap`, which makes the controllers rescan the tables. LISTEN belongs to a session: the connection must
not pass through a pooler in transaction mode, and must lead to the server that the notifications are sent on.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from maestropy.store import errors
from maestropy.store.postgres import pool, pooler, servers

# A silently dead connection looks like an idle one; the probe finds it within this time.
PROBE_SECONDS = 5.0
PROBE_TIMEOUT_SECONDS = 5.0
APPLICATION_NAME = "maestropy-listener"
"""The name of the listening connection in `pg_stat_activity`."""


async def _is_sending(_process: servers.ServerProcess) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerCallbacks:
    """What a listener calls."""

    on_gap: Callable[[], None]
    """Notifications may have been missed: a new connection listens."""
    on_alive: Callable[[], None]
    """Periodically: until now no notification was missed."""
    on_loss: Callable[[Exception], None]
    """The connection is lost, or of no use; a new one is opened."""
    is_sending: Callable[[servers.ServerProcess], Awaitable[bool]] = _is_sending
    """Whether notifications are sent on a server; when they are not any more, the connection is replaced."""


async def listen(
    connector: servers.Connector,
    *,
    channels: Mapping[str, Callable[[str], None]],
    callbacks: ListenerCallbacks,
    delays: Callable[[], Iterator[float]],
) -> None:
    """Pass notifications to the functions of their channels; reconnect after every loss."""
    waits = delays()
    while True:
        try:
            connection = await pooler.connect(
                connector, command_seconds=PROBE_TIMEOUT_SECONDS, application_name=APPLICATION_NAME
            )
            try:
                for channel, on_notification in channels.items():
                    await connection.add_listener(channel, _callback(on_notification))
                callbacks.on_gap()
                waits = delays()
                await _watch(connection, callbacks)
            finally:
                connection.terminate()
        except errors.StoreError as error:
            callbacks.on_loss(error)
        except errors.DRIVER_ERRORS as error:
            callbacks.on_loss(errors.translate(error))
        await asyncio.sleep(next(waits))


def sent_by(database: pool.Database) -> Callable[[servers.ServerProcess], Awaitable[bool]]:
    """Return whether `database` leads to a server; when it cannot be asked, nothing is sent there either."""

    async def is_sending(process: servers.ServerProcess) -> bool:
        try:
            async with database.connection() as connection:
                return await servers.server_process(connection) == process
        except errors.StoreError:
            return True

    return is_sending


def _callback(on_notification: Callable[[str], None]) -> Callable[[Any, int, str, str], None]:
    def listener(_connection: Any, _pid: int, _channel: str, payload: str) -> None:
        # Maestropy servers put the IDs of many events into one notification; Go servers send one for each.
        for event_id in payload.split(","):
            on_notification(event_id)

    return listener


async def _watch(connection: Any, callbacks: ListenerCallbacks) -> None:
    """Probe the connection; raise when it no longer responds, or no longer gets the notifications."""
    lost = asyncio.Event()
    connection.add_termination_listener(lambda _connection: lost.set())
    process, backend = await servers.server_process(connection), await servers.backend(connection)
    while True:
        if not await callbacks.is_sending(process):
            raise errors.DatabaseUnavailable(
                "notifications are sent on another PostgreSQL server than this one, or in another database"
            )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PROBE_SECONDS):
                await lost.wait()
        async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):
            if await servers.backend(connection) != backend:
                raise errors.DatabaseUnavailable(
                    "a connection pooler has given the backend of this session to another client; LISTEN needs a "
                    "session of its own: give --db-listen-dsn the address of PostgreSQL itself"
                )
        callbacks.on_alive()
