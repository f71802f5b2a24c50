"""Connect to a read replica: a standby of the primary that lists are read from.

A standby answers with old data as if they were new. So nothing is read from it before it has replayed a given position,
which is checked on the connection that reads.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from maestropy.store import data_safety, errors, sql
from maestropy.store import dsn as dsns
from maestropy.store.postgres import pool, pooler
from maestropy.wire import positions

_STATEMENTS = sql.load("replicas")

APPLICATION_NAME = "maestropy-reader"
"""The name of these connections in `pg_stat_activity`."""

_FIRST_PAUSE_SECONDS = 0.002
_LONGEST_PAUSE_SECONDS = 0.05
# For the answer of a replica to a statement that reads nothing.
_ANSWER_SECONDS = 1.0
_UNSIGNED = 2**64


class Behind(errors.DatabaseUnavailable):
    """The replica has not replayed a position in time."""


class NotAStandby(errors.DatabaseUnavailable):
    """The server is no standby any more."""


class ReplicaState(NamedTuple):
    """A read replica, as it describes itself."""

    is_standby: bool
    system: int
    timeline: int
    replayed: int
    database_id: str


async def primary_position(database: pool.Database) -> positions.Position:
    """Return the position that everything committed before has on the primary."""
    async with database.connection() as connection:
        system, timeline, lsn = await connection.fetchrow(_STATEMENTS["primary_position"])
    return positions.Position(system=system % _UNSIGNED, timeline=int(timeline, 16), lsn=lsn)


async def state(connection: pool.Connection) -> ReplicaState:
    """Return how a replica describes itself."""
    is_standby, system, timeline, replayed = await connection.fetchrow(_STATEMENTS["state"])
    try:
        database_id = await data_safety.identity(connection)
    except errors.DRIVER_ERRORS as error:
        # A database without our tables is another one, not one that is unavailable.
        if not isinstance(errors.translate(error), errors.StatementError):
            raise
        database_id = ""
    return ReplicaState(is_standby, system % _UNSIGNED, timeline, replayed, database_id)


async def connect(address: dsns.Dsn, *, max_connections: int) -> pool.Database:
    """Open a pool of connections to a read replica, also through a connection pooler; raises `StoreError`."""
    pooling = await pooler.detect(address, accepts_standby=True)
    return await pool.connect(
        address,
        max_connections=max_connections,
        has_sessions=pooling is pooler.Pooling.NONE,
        application_name=APPLICATION_NAME,
        accepts_standby=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshots:
    """Snapshots of a replica that hold everything up to a position."""

    database: pool.Database
    lsn: int
    wait_seconds: float
    """How long to wait for a replica that is a little behind."""

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[pool.Connection]:
        """Yield a connection in a read-only snapshot; raises `Behind` or another `StoreError` before it does."""
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(self.wait_seconds + _ANSWER_SECONDS):
                    connection = await stack.enter_async_context(self.database.snapshot(before=self._reach))
            except TimeoutError as error:
                raise errors.DatabaseUnavailable("the read replica did not respond in time") from error
            yield connection

    async def _reach(self, connection: pool.Connection) -> None:
        """Return when the position is replayed. The snapshot is taken afterwards, so it holds the position."""
        clock = asyncio.get_running_loop().time
        deadline, pause = clock() + self.wait_seconds, _FIRST_PAUSE_SECONDS
        while True:
            is_standby, replayed = await connection.fetchrow(_STATEMENTS["replayed"])
            if not is_standby:
                raise NotAStandby("the read replica is no standby any more")
            if replayed >= self.lsn:
                return
            if clock() + pause > deadline:
                raise Behind(f"the read replica has not reached the position in {self.wait_seconds:g} s")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
