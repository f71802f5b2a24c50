"""The connection pool: who holds a connection, for how long, and what its errors mean.

One rule keeps the pool from locking itself up: a task that holds a connection never asks for a second one.
`Database` enforces it, so the mistake fails in the first test instead of under load.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import asyncpg

from maestropy.store import dsn as dsns
from maestropy.store import errors

# asyncpg ships no types; the alias marks what is a connection without pretending to know its methods.
Connection = Any

_holding: ContextVar[bool] = ContextVar("maestropy_store_holding", default=False)

# Long enough for a slow disk, short enough that a caller learns of a stuck database before its own deadline.
COMMAND_TIMEOUT_SECONDS = 15.0
ACQUIRE_TIMEOUT_SECONDS = 10.0
# Locks are held for milliseconds. Who holds one longer is frozen or cut off, and must not hold up a whole group; when
# the group is taken apart, one by one, those that are free need no patience at all.
LOCK_TIMEOUT_MS = 500
SHORT_LOCK_TIMEOUT_MS = 50
# What a transaction holds is held for as long as PostgreSQL believes in its client; of one whose host vanished it would
# for hours. Lists are read as fast as their readers are, who may take half a minute.
IDLE_TRANSACTION_MS = 20_000
IDLE_READER_MS = 45_000
# While the database is known not to answer, callers but one learn it this soon.
DOUBT_TIMEOUT_SECONDS = 1.0
CLOSE_TIMEOUT_SECONDS = 5.0
# For undoing what was given up; a connection that cannot even do that is closed, which undoes it too.
UNDO_TIMEOUT_SECONDS = 1.0
# Beyond this many, whoever asks is told at once: a queue for a database that does not answer is only memory.
MAX_WAITING = 2000


class Database:
    """A pool of connections to one Maestro database."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._waiting = 0
        self._is_doubted = False
        self._is_explored = False

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Lend a connection in autocommit mode; each statement is its own transaction."""
        if _holding.get():
            raise errors.Misuse("this task already holds a database connection; pass it on instead")
        connection = await self._acquire()
        token = _holding.set(True)
        try:
            try:
                yield connection
            except TimeoutError:
                # A path that is silently dead takes all connections with it; each would be found out one by one.
                self._is_doubted = True
                await self._pool.expire_connections()
                raise
            finally:
                _holding.reset(token)
                await self._pool.release(connection, timeout=UNDO_TIMEOUT_SECONDS)
        except errors.DRIVER_ERRORS as error:
            raise errors.translate(error) from error

    async def _acquire(self) -> Connection:
        if self._waiting >= MAX_WAITING:
            raise errors.Unavailable("too many wait for a connection to the database")
        # When the database did not answer, one caller at a time finds out whether it does again, with all patience;
        # the others hear soon that it does not. Or a queue of groups would wait one full time after the other.
        is_in_vain = self._is_doubted and self._is_explored
        explores = self._is_doubted and not self._is_explored
        self._is_explored |= explores
        self._waiting += 1
        try:
            found = await self._pool.acquire(timeout=DOUBT_TIMEOUT_SECONDS if is_in_vain else ACQUIRE_TIMEOUT_SECONDS)
        except errors.DRIVER_ERRORS as error:
            self._is_doubted = True
            raise errors.translate(error) from error
        finally:
            self._waiting -= 1
            self._is_explored &= not explores
        self._is_doubted = False
        return found

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """Lend a connection that sees one moment of the database, for readers that may be slow."""
        async with self.connection() as connection, _within(connection, isolation="repeatable_read", readonly=True):
            await connection.execute(f"SET LOCAL idle_in_transaction_session_timeout TO {IDLE_READER_MS}")
            yield connection

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True, patient: bool = True) -> AsyncIterator[Connection]:
        """Lend a connection inside a transaction that commits when the block ends without an error.

        `durable=False` is for facts that a later sweep would find again (delivery marks, heartbeats): the commit
        does not wait for the disk. `patient=False` hardly waits for locks.
        """
        async with self.connection() as connection, _within(connection):
            if not durable:
                await connection.execute("SET LOCAL synchronous_commit TO off")
            if not patient:
                await connection.execute(f"SET LOCAL lock_timeout TO {SHORT_LOCK_TIMEOUT_MS}")
            yield connection

    async def close(self) -> None:
        """Close every connection; those still busy after a short grace are cut."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_SECONDS):
                await self._pool.close()
        except errors.DRIVER_ERRORS:
            self._pool.terminate()


@asynccontextmanager
async def _within(connection: Connection, **kind: object) -> AsyncIterator[None]:
    """Run the block in a transaction; what is given up does not wait long for the database to hear of it.

    The driver's own block would: a ROLLBACK on a dead connection takes as long as the statement that failed on it.
    """
    transaction = connection.transaction(**kind)
    await transaction.start()
    try:
        yield
    except BaseException:
        try:
            async with asyncio.timeout(UNDO_TIMEOUT_SECONDS):
                await transaction.rollback()
        except errors.DRIVER_ERRORS:
            connection.terminate()
        raise
    await transaction.commit()


async def _keep_as_it_is(_connection: Connection) -> None:
    """Skip the clean-up round trip after every use: nothing here leaves a session changed.

    Settings are `SET LOCAL`, advisory locks belong to transactions, and listeners have connections of their own.
    """


async def connect(address: dsns.Dsn, *, max_connections: int, application_name: str = "maestropy") -> Database:
    """Open a pool of up to `max_connections` connections to the database at `address`."""
    try:
        pool = await asyncpg.create_pool(
            **address.connect_kwargs(),
            # None is kept for its own sake: the driver would replace a lost one at once, and print how that failed.
            min_size=0,
            max_size=max_connections,
            command_timeout=COMMAND_TIMEOUT_SECONDS,
            max_inactive_connection_lifetime=60.0,
            reset=_keep_as_it_is,
            server_settings={
                "application_name": application_name,
                "jit": "off",
                "lock_timeout": str(LOCK_TIMEOUT_MS),
                "idle_in_transaction_session_timeout": str(IDLE_TRANSACTION_MS),
            },
        )
    except errors.DRIVER_ERRORS as error:
        raise errors.translate(error) from error
    return Database(pool)
