"""Detect a connection pooler, such as PgBouncer, between this process and PostgreSQL.

A pooler announces a process ID of its own instead of the backend's. In transaction mode it gives the backend to another
client after every transaction: prepared statements, settings, session locks and LISTEN then belong to nobody.
"""

import asyncio
from enum import Enum, unique

from maestropy.store import dsn as dsns
from maestropy.store import errors
from maestropy.store.postgres import servers

# A pooler that keeps sessions may have no free backend for a second client: then it waits.
_WAIT_SECONDS = 2.0
_ATTEMPTS = 3
_COMMAND_SECONDS = 10.0


@unique
class Pooling(Enum):
    """What lies between this process and a backend of PostgreSQL."""

    NONE = "none"
    SESSION = "session"
    TRANSACTION = "transaction"


async def detect(address: dsns.Dsn, *, accepts_standby: bool = False) -> Pooling:
    """Return what kind of pooler `address` leads to; raises `StoreError` without a database."""
    connector = servers.Connector(address, accepts_standby=accepts_standby)
    connection = await connect(connector, command_seconds=_COMMAND_SECONDS)
    try:
        return await _pooling(connection, connector)
    except errors.DRIVER_ERRORS as error:
        raise errors.translate(error) from error
    finally:
        connection.terminate()


async def connect(
    connector: servers.Connector, *, command_seconds: float | None, application_name: str = "maestropy"
) -> servers.Connection:
    """Open a connection that leaves nothing behind on a backend that it may share; no command takes longer."""
    return await connector.connect(
        statement_cache_size=0,
        command_timeout=command_seconds,
        server_settings={"application_name": application_name},
    )


async def _pooling(connection: servers.Connection, connector: servers.Connector) -> Pooling:
    if await servers.backend(connection) == connection.get_server_pid():
        return Pooling.NONE
    for _ in range(_ATTEMPTS):
        if not await _has_session(connection, connector):
            return Pooling.TRANSACTION
    return Pooling.SESSION


async def _has_session(connection: servers.Connection, connector: servers.Connector) -> bool:
    """Return whether `connection` keeps its backend while another client needs one."""
    before = await servers.backend(connection)
    try:
        async with asyncio.timeout(_WAIT_SECONDS):
            other = await connect(connector, command_seconds=_COMMAND_SECONDS)
            try:
                async with other.transaction():
                    taken = await servers.backend(other)
                    is_kept = taken != before and await servers.backend(connection) == before
            finally:
                other.terminate()
    except TimeoutError:
        # Either it keeps the only backend, or all of them are busy: the listener finds out later.
        return True
    return is_kept
