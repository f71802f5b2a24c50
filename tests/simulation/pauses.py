"""An operator pauses the delivery to a consumer, and resumes it after a while; nothing may be lost by that."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from maestropy.store import actions, errors, rows
from maestropy.store.postgres import pool
from tests.simulation.memory_postgres import Pool
from tests.simulation.schedule import Step

if TYPE_CHECKING:
    from tests.simulation.play import Run

_ATTEMPTS = 600
_PAUSE_SECONDS = 0.1


async def pause_consumer(run: "Run", step: Step) -> None:
    """Pause a consumer for some seconds."""
    pause = rows.Pause(step.who, run.loop.clock().now(), "operator", "simulated")

    async def write(connection: pool.Connection) -> None:
        await actions.pause(connection, pause)

    await _repeated(run, write)
    await asyncio.sleep(step.number)
    await _resume(run, step.who)


async def resume_all(run: "Run") -> None:
    """Resume the consumers that a database has as paused: one that was restored, or was away when they were resumed."""
    for consumer in list(run.engine.tables["maestropy_pauses"]):
        await _resume(run, str(consumer))


async def _resume(run: "Run", consumer: str) -> None:
    async def write(connection: pool.Connection) -> None:
        if await actions.resume(connection, consumer):
            await actions.queue_works(connection, consumer, now=run.loop.clock().now())

    await _repeated(run, write)


async def _repeated(run: "Run", write: Callable[[pool.Connection], Awaitable[None]]) -> None:
    """Write in a transaction; an operator repeats a command whose connection ends, as when the database is replaced."""
    for _ in range(_ATTEMPTS):
        try:
            async with pool.Database(Pool(run.engine, "operator")).transaction() as connection:
                await write(connection)
        except errors.StoreError:
            await asyncio.sleep(_PAUSE_SECONDS)
        else:
            return
    raise AssertionError("the database does not come back")
