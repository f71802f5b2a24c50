"""Steps that change what the actors rely on: an older, empty or wrong database, another clock, another consumer.

Nothing may be deleted on ignorance, and nothing acknowledged may be lost but what the database has lost; that is
reported. `ledger` and `play` check it.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tests.simulation.memory_postgres import Contents
from tests.simulation.schedule import Step

if TYPE_CHECKING:
    from tests.simulation.play import Run

CLOCK_ERRORS = (-86_400.0, -3_600.0, -30.0, -2.0, 2.0, 30.0, 3_600.0, 86_400.0)
"""By how many seconds the clock of an agent jumps."""
_POLL_SECONDS = 0.1
_POLLS = 300


async def restore_backup(run: "Run", step: Step) -> None:
    """Restore a backup that is some seconds old; the identity of the database stays."""
    run.engine.restore(run.loop.now - step.number)
    _note_change(run)
    await _restart_servers(run)


async def empty_database(run: "Run", step: Step) -> None:
    """Go on with an empty database, at first with its consumers or without; the servers notice by themselves."""
    run.engine.swap(_empty(run, with_consumers=bool(step.number)))
    _note_change(run)


async def wrong_database(run: "Run", step: Step) -> None:
    """Use an empty database by mistake for a while, and then the right one again."""
    right = run.engine.swap(_empty(run, with_consumers=bool(step.number % 2)))
    _note_change(run)
    await _restart_servers(run)
    await asyncio.sleep(step.number)
    run.engine.swap(right)
    _note_change(run)
    await _restart_servers(run)


async def recreate_consumer(run: "Run", step: Step, *, delete: Callable[..., Awaitable[None]]) -> None:
    """Delete the resources of a consumer, then the consumer, and create it again after a while."""
    resources = [resource for resource in run.resources.values() if resource.consumer == step.who]
    await asyncio.gather(*(delete(run, Step(at=step.at, kind="delete", who=each.name)) for each in resources))
    consumers = run.engine.tables["consumers"]
    for _ in range(_POLLS):
        rows = run.engine.tables["resources"].values()
        if not any(row["consumer_name"] == step.who for row in rows) and run.engine.tables["consumers"] is consumers:
            row = consumers.pop(step.who, None)
            await asyncio.sleep(step.number)
            if row is not None:
                consumers[step.who] = row
            return
        await asyncio.sleep(_POLL_SECONDS)


async def jump_clock(run: "Run", step: Step) -> None:
    """Let the clock of an agent be wrong; half of the agents are restarted with it."""
    agent = run.agents[step.who]
    agent.clock_error = CLOCK_ERRORS[step.number]
    if step.number % 2:
        await agent.kill()
        await agent.start()


def create_missing_consumers(run: "Run") -> None:
    """Create the consumers that the database does not have, as an operator does in the end."""
    for consumer in run.clusters:
        run.engine.tables["consumers"].setdefault(consumer, _consumer(run, consumer))


def _empty(run: "Run", *, with_consumers: bool) -> Contents:
    tables: dict[str, dict[object, dict[str, object]]] = defaultdict(dict)
    if with_consumers:
        tables["consumers"] = {consumer: _consumer(run, consumer) for consumer in run.clusters}
    return Contents(f"database-{run.ledger.upheavals}", tables, [])


def _consumer(run: "Run", consumer: str) -> dict[str, object]:
    return {"id": consumer, "name": consumer, "created_at": run.loop.clock().now()}


async def _restart_servers(run: "Run") -> None:
    """Restart the servers: a running one notices within a heartbeat that the database lost older heartbeats of it."""
    for server in run.servers.values():
        await server.kill()
    for server in run.servers.values():
        await server.start()


def _note_change(run: "Run") -> None:
    run.ledger.database_changed()
    for source in run.sources:
        # Clients list their resources again.
        run.network.break_wires(source)
