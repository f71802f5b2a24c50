"""A pool of PostgreSQL connections with timeouts, transactions and translated errors.

A task that holds a connection must not acquire a second one: under load the pool would deadlock. `Database` enforces
this, so the mistake fails in the first test.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import asyncpg

from maestropy.store import dsn as dsns
from maestropy.store import errors
from maestropy.store.postgres import servers

Connection = servers.Connection

_has_connection: ContextVar[bool] = ContextVar("maestropy_store_holding", default=False)

# Long enough for a slow disk, shorter than the deadlines of callers.
COMMAND_TIMEOUT_SECONDS = 15.0
ACQUIRE_TIMEOUT_SECONDS = 10.0
# Locks are held for milliseconds. An instance that holds one longer is frozen or disconnected, and must not delay a
# whole batch. When the items of a batch are then written one by one, the free rows need no wait.
LOCK_TIMEOUT_MS = 500
SHORT_LOCK_TIMEOUT_MS = 50
# PostgreSQL keeps the locks of a vanished client for hours; the idle timeout ends its transaction. A slow reader of a
# list may take half a minute.
IDLE_TRANSACTION_MS = 20_000
IDLE_READER_MS = 45_000
# A search that no index serves ends here, before the driver gives up: that would count as a dead database.
READER_STATEMENT_MS = 10_000
# While the database does not respond, all callers but one fail after this time.
FAIL_FAST_TIMEOUT_SECONDS = 1.0
CLOSE_TIMEOUT_SECONDS = 5.0
# For a rollback; a connection that cannot roll back in time is closed, which rolls back too.
ROLLBACK_TIMEOUT_SECONDS = 1.0
# A session that was opened while the database was read-only may stay so: sessions are replaced, this often at most.
REPLACE_EVERY_SECONDS = 1.0
# The driver keeps this many prepared statements for each connection.
CACHED_STATEMENTS = 100
# Further callers fail at once: a queue for a database that does not respond only takes memory.
MAX_WAITING = 2000


_SETTINGS = {
    "jit": "off",
    "lock_timeout": str(LOCK_TIMEOUT_MS),
    "idle_in_transaction_session_timeout": str(IDLE_TRANSACTION_MS),
}


class Snapshots(Protocol):
    """Whatever gives a reader a snapshot: the primary, or a read replica that is new enough."""

    def snapshot(self) -> AbstractAsyncContextManager[Connection]:
        """Yield a connection in a read-only snapshot."""


async def _nothing(_connection: Connection) -> None:
    """Do nothing before a snapshot is taken."""


class Database:
    """A pool of connections to one Maestro database."""

    def __init__(self, pool: Any, *, connector: servers.Connector | None = None, has_sessions: bool = True) -> None:
        """Wrap a pool of the driver; without sessions every transaction sets what a session would have."""
        self._pool = pool
        self.connector = connector
        self._transaction_settings = {} if has_sessions else _SETTINGS
        self._replaced_at: float | None = None
        self._waiting = 0
        self._is_unreachable = False
        self._is_probed = False

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Yield a connection in autocommit mode; each statement is its own transaction."""
        if _has_connection.get():
            raise errors.StatementError("this task already holds a database connection; pass it on instead")
        connection = await self._acquire()
        token = _has_connection.set(True)
        try:
            try:
                yield connection
            except TimeoutError:
                # A silently dead network path breaks all connections; without this each would time out in turn.
                self._is_unreachable = True
                await self._pool.expire_connections()
                raise
            except asyncpg.ReadOnlySQLTransactionError:
                await self.replace_connections()
                raise
            finally:
                _has_connection.reset(token)
                await self._pool.release(connection, timeout=ROLLBACK_TIMEOUT_SECONDS)
        except errors.DRIVER_ERRORS as error:
            raise errors.translate(error) from error

    async def replace_connections(self) -> None:
        """Open new connections from now on: another host may take writes, or this one again in a new session."""
        now = asyncio.get_running_loop().time()
        if self._replaced_at is None or now - self._replaced_at >= REPLACE_EVERY_SECONDS:
            self._replaced_at = now
            await self._pool.expire_connections()

    async def _acquire(self) -> Connection:
        if self._waiting >= MAX_WAITING:
            raise errors.DatabaseUnavailable("too many requests wait for a database connection; try again later")
        # When the database did not respond, one caller at a time probes it with the full timeout and the others fail
        # soon. Otherwise queued batches would wait one full timeout after the other.
        fails_fast = self._is_unreachable and self._is_probed
        is_probe = self._is_unreachable and not self._is_probed
        self._is_probed |= is_probe
        self._waiting += 1
        try:
            connection = await self._pool.acquire(
                timeout=FAIL_FAST_TIMEOUT_SECONDS if fails_fast else ACQUIRE_TIMEOUT_SECONDS
            )
        except errors.StoreError:  # of the connector
            self._is_unreachable = True
            raise
        except errors.DRIVER_ERRORS as error:
            self._is_unreachable = True
            raise errors.translate(error) from error
        finally:
            self._waiting -= 1
            self._is_probed &= not is_probe
        self._is_unreachable = False
        return connection

    @asynccontextmanager
    async def snapshot(
        self, *, before: Callable[[Connection], Awaitable[None]] = _nothing
    ) -> AsyncIterator[Connection]:
        """Yield a connection in a read-only snapshot, for readers that may be slow; `before` is called first."""
        async with self.connection() as connection:
            await before(connection)
            async with _transaction(connection, isolation="repeatable_read", readonly=True):
                limits = {
                    "idle_in_transaction_session_timeout": IDLE_READER_MS,
                    "statement_timeout": READER_STATEMENT_MS,
                }
                await self._set(connection, {name: str(limit) for name, limit in limits.items()})
                yield connection

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True, waits_for_locks: bool = True) -> AsyncIterator[Connection]:
        """Yield a connection in a transaction that commits when the block ends without an error.

        `durable=False` is for facts that maintenance would find again (delivery marks, heartbeats): the commit does
        not wait for the disk. `waits_for_locks=False` gives up a locked row almost at once.
        """
        settings = {} if durable else {"synchronous_commit": "off"}
        if not waits_for_locks:
            settings["lock_timeout"] = str(SHORT_LOCK_TIMEOUT_MS)
        async with self.connection() as connection, _transaction(connection):
            await self._set(connection, settings)
            yield connection

    async def _set(self, connection: Connection, settings: Mapping[str, str]) -> None:
        """Set settings for the rest of the transaction, in one round trip."""
        settings = {**self._transaction_settings, **settings}
        if settings:
            await connection.execute(";".join(f"SET LOCAL {name} TO {value}" for name, value in settings.items()))

    async def close(self) -> None:
        """Close every connection; those still busy after a short grace period are terminated."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_SECONDS):
                await self._pool.close()
        except errors.DRIVER_ERRORS:
            self._pool.terminate()


@asynccontextmanager
async def _transaction(connection: Connection, **kind: object) -> AsyncIterator[None]:
    """Run the block in a transaction with a short rollback timeout.

    The driver's own block has none: a ROLLBACK on a dead connection takes as long as the statement that failed on it.
    """
    transaction = connection.transaction(**kind)
    await transaction.start()
    try:
        yield
    except BaseException:
        try:
            async with asyncio.timeout(ROLLBACK_TIMEOUT_SECONDS):
                await transaction.rollback()
        except errors.DRIVER_ERRORS:
            connection.terminate()
        raise
    await transaction.commit()


async def _skip_reset(_connection: Connection) -> None:
    """Skip the reset round trip after every use: no statement of the store changes a session.

    Settings are `SET LOCAL`, advisory locks belong to transactions, and listeners have their own connections.
    """


async def connect(
    address: dsns.Dsn,
    *,
    max_connections: int,
    has_sessions: bool = True,
    application_name: str = "maestropy",
    on_move: Callable[[str], None] = lambda _host: None,
    accepts_standby: bool = False,
) -> Database:
    """Open a pool of up to `max_connections` connections to the database at `address`.

    `has_sessions=False` is for a connection pooler: no prepared statements, and settings for each transaction.
    """
    connector = servers.Connector(address, on_move=on_move, accepts_standby=accepts_standby)
    try:
        pool = await asyncpg.create_pool(
            connect=lambda _dsn, **options: connector.connect(**options),
            # With a minimum the driver would replace a lost connection at once and print how that failed.
            min_size=0,
            max_size=max_connections,
            command_timeout=COMMAND_TIMEOUT_SECONDS,
            max_inactive_connection_lifetime=60.0,
            reset=_skip_reset,
            statement_cache_size=CACHED_STATEMENTS if has_sessions else 0,
            # PgBouncer rejects other settings at the start of a connection.
            server_settings={"application_name": application_name, **(_SETTINGS if has_sessions else {})},
        )
    except errors.DRIVER_ERRORS as error:
        raise errors.translate(error) from error
    return Database(pool, connector=connector, has_sessions=has_sessions)
