"""A batch of events is announced once among maestropy servers, and event by event while a Go server is there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import asyncpg

from maestropy.store import instances
from maestropy.store.dsn import Dsn
from maestropy.store.postgres import pool, servers
from maestropy.store.postgres.notifications import ListenerCallbacks, listen
from tests import waiting

NOW = datetime(2026, 11, 17, tzinfo=UTC)
EVENTS = [f"00000000-0000-0000-0000-{number:012}" for number in range(450)]
NOTIFY = "SELECT maestropy_notify('events', $1::text[])"


@asynccontextmanager
async def opened_with_own_instance(database: Dsn) -> AsyncIterator[pool.Database]:
    opened = await pool.connect(database, max_connections=2)
    async with opened.connection() as connection:
        await instances.write_heartbeat(connection, "ours", now=NOW, ready=True)
        await instances.register_own(connection, "ours", now=NOW)
    try:
        yield opened
    finally:
        await opened.close()


async def payloads_of(address: Dsn, store: pool.Database) -> list[str]:
    """Return the payloads of the notifications for `EVENTS`."""
    payloads: list[str] = []
    listener = await asyncpg.connect(**address.connect_kwargs())
    try:
        await listener.add_listener("events", lambda *arguments: payloads.append(arguments[3]))
        async with store.connection() as connection:
            await connection.execute(NOTIFY, EVENTS)
        await waiting.until(lambda: sum(len(payload.split(",")) for payload in payloads) == len(EVENTS))
    finally:
        await listener.close()
    return payloads


async def test_maestropy_servers_get_many_events_in_one_notification(database: Dsn) -> None:
    async with opened_with_own_instance(database) as store:
        payloads = await payloads_of(database, store)
    assert [len(payload.split(",")) for payload in payloads] == [200, 200, 50]
    assert ",".join(payloads).split(",") == EVENTS


async def test_go_server_gets_one_notification_for_each_event(database: Dsn) -> None:
    async with opened_with_own_instance(database) as store:
        async with store.connection() as connection:
            await instances.write_heartbeat(connection, "go", now=NOW, ready=False)
        assert await payloads_of(database, store) == EVENTS


async def test_listener_passes_on_each_event(database: Dsn) -> None:
    async with opened_with_own_instance(database) as store:
        received: list[str] = []
        listening = asyncio.Event()
        callbacks = ListenerCallbacks(on_gap=listening.set, on_alive=lambda: None, on_loss=lambda _: None)
        task = asyncio.ensure_future(
            listen(
                servers.Connector(database),
                channels={"events": received.append},
                callbacks=callbacks,
                delays=lambda: iter(()),
            )
        )
        try:
            await listening.wait()
            async with store.connection() as connection:
                await connection.execute(NOTIFY, EVENTS)
                await connection.execute(NOTIFY, [])
            await waiting.until(lambda: len(received) == len(EVENTS))
        finally:
            task.cancel()
        assert received == EVENTS
