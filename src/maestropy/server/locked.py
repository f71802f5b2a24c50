"""One transaction under the advisory locks of some bundles, the same that a Go server takes, and measured as there."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Literal

from maestropy.server.world import World
from maestropy.store import locks, pool, resources

Kind = Literal["resources", "resource_status"]
_KEYS = {"resources": locks.RESOURCES, "resource_status": locks.RESOURCE_STATUS}


@asynccontextmanager
async def locked(world: World, ids: Collection[str], *, kind: Kind, patient: bool) -> AsyncIterator[pool.Connection]:
    """Lend a connection in a transaction that holds the locks of `ids`; `patient=False` hardly waits for them."""
    with world.metrics.holding_locks(kind, monotonic=world.clock.monotonic):
        async with world.database.transaction(patient=patient) as connection:
            await resources.lock(connection, ids, kind=_KEYS[kind])
            yield connection
