"""Connect to the PostgreSQL server that takes writes, among the hosts of an address.

A standby is never used, but by a connector that accepts one: what it returns may be old, and agents would be sent back
to it. The host that worked last is
tried first, so that a host that does not respond delays only the connections that find the new primary. When that is
another host, the connections to the former one end at once: a server never works on two hosts, nor waits for one that
does not respond.
"""

import asyncio
import weakref
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

import asyncpg

from maestropy.store import dsn as dsns
from maestropy.store import errors, sql

# asyncpg has no type hints; the alias marks a connection without declaring its methods.
Connection = Any

# For all hosts together; shorter than the wait for a connection of the pool.
CONNECT_TIMEOUT_SECONDS = 9.0

STANDBY = "is a standby, which takes no writes"
NO_STANDBY = "is no standby"
READ_ONLY = "takes no writes: default_transaction_read_only is on"

_STATEMENTS = sql.load("servers")


class ServerProcess(NamedTuple):
    """The PostgreSQL server, since its last start, and the database that a connection leads to."""

    started_at: datetime
    database: str


class Connector:
    """Opens connections to the primary of a database."""

    def __init__(
        self,
        address: dsns.Dsn,
        *,
        on_move: Callable[[str], None] = lambda _host: None,
        accepts_standby: bool = False,
    ) -> None:
        """Prepare; `on_move` is called with a host when connections lead to another one than before."""
        self._accepts_standby = accepts_standby
        self._address = address
        self._hosts = address.hosts
        self._on_move = on_move
        self._opened: weakref.WeakSet[Connection] = weakref.WeakSet()

    async def connect(self, **options: Any) -> Connection:
        """Return a connection to the first host that can be used; raises `StoreError` if there is none."""
        problems: list[tuple[dsns.Host, errors.StoreError]] = []
        for host in self._hosts:
            try:
                connection = await self._connect(host, options)
            except errors.StoreError as error:
                problems.append((host, error))
                continue
            if host != self._hosts[0]:
                self._move(host)
            self._opened.add(connection)
            return connection
        raise _summary(problems)

    def _move(self, host: dsns.Host) -> None:
        self._hosts = (host, *(other for other in self._hosts if other != host))
        former, self._opened = self._opened, weakref.WeakSet()
        for connection in list(former):
            connection.terminate()
        self._on_move(str(host))

    async def _connect(self, host: dsns.Host, options: dict[str, Any]) -> Connection:
        timeout = CONNECT_TIMEOUT_SECONDS / len(self._hosts)
        try:
            connection = await asyncpg.connect(**self._address.connect_kwargs(host), timeout=timeout, **options)
            try:
                async with asyncio.timeout(timeout):
                    problem = await self._problem(connection)
            except BaseException:
                connection.terminate()
                raise
        except errors.DRIVER_ERRORS as error:
            raise errors.translate(error) from error
        if problem:
            connection.terminate()
            if problem == NO_STANDBY:
                raise errors.DatabaseUnavailable(f"{host} {problem}")
            raise errors.DatabaseReadOnly(f"{host} {problem}")
        return connection

    async def _problem(self, connection: Connection) -> str:
        if self._accepts_standby:
            # Of several hosts one that is no standby is passed over; a single one is left to the caller to judge.
            is_standby = len(self._hosts) == 1 or await write_problem(connection) == STANDBY
            return "" if is_standby else NO_STANDBY
        # Asked, not taken from what the server reports at login: a pooler repeats what it once heard.
        problem = await write_problem(connection)
        return problem if self._address.needs_writable_host or problem == STANDBY else ""


async def write_problem(connection: Connection) -> str:
    """Return why the server of a connection takes no writes, as the end of a sentence; empty if it takes them."""
    row = await connection.fetchrow(_STATEMENTS["write_access"])
    if row["is_standby"]:
        return STANDBY
    return READ_ONLY if row["is_read_only"] else ""


async def timeline(connection: Connection) -> str:
    """Return the timeline of a server, another one after a promotion; empty on a standby."""
    return await connection.fetchval(_STATEMENTS["timeline"]) or ""


async def server_process(connection: Connection) -> ServerProcess:
    """Return the server process and the database that a connection leads to."""
    return ServerProcess._make(await connection.fetchrow(_STATEMENTS["server_process"]))


async def process_at(address: dsns.Dsn) -> ServerProcess:
    """Return the server process and the database at `address`."""
    connection = await Connector(address).connect(statement_cache_size=0, command_timeout=CONNECT_TIMEOUT_SECONDS)
    try:
        return await server_process(connection)
    except errors.DRIVER_ERRORS as error:
        raise errors.translate(error) from error
    finally:
        connection.terminate()


async def backend(connection: Connection) -> int:
    """Return the process ID of the backend that executes this statement."""
    return int(await connection.fetchval(_STATEMENTS["backend"]))


def _summary(problems: list[tuple[dsns.Host, errors.StoreError]]) -> errors.StoreError:
    """Return one error for the errors of all hosts; that of a single host is kept as it is."""
    if len(problems) == 1:
        return problems[0][1]
    parts = [
        str(error) if isinstance(error, errors.DatabaseReadOnly) else f"{host}: {error}" for host, error in problems
    ]
    is_read_only = any(isinstance(error, errors.DatabaseReadOnly) for _, error in problems)
    kind = errors.DatabaseReadOnly if is_read_only else errors.DatabaseUnavailable
    return kind(f"none of the {len(parts)} hosts can be used: {'; '.join(parts)}")
