"""Open a transaction that holds the advisory locks of resources: the locks, and their metrics, of a Go server."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Literal

from maestropy.server.context import Context
from maestropy.store import resources
from maestropy.store.postgres import locks, pool

LockKind = Literal["resources", "resource_status"]
_KEYS = {"resources": locks.RESOURCES, "resource_status": locks.RESOURCE_STATUS}


@asynccontextmanager
async def locked(
    context: Context, ids: Collection[str], *, kind: LockKind, waits_for_locks: bool
) -> AsyncIterator[pool.Connection]:
    """Lend a connection in a transaction that holds the locks of `ids`; without `waits_for_locks` it gives up soon."""
    with context.metrics.holding_locks(kind, monotonic=context.clock.monotonic):
        async with context.database.transaction(waits_for_locks=waits_for_locks) as connection:
            await resources.lock(connection, ids, kind=_KEYS[kind])
            yield connection
