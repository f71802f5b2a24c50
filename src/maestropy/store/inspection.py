"""Inspect a database before a server uses it: version, writes, migrations, privileges, clock. Changes nothing."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from maestropy.store import data_safety, errors, replicas, sql
from maestropy.store import dsn as dsns
from maestropy.store.migrations import schema
from maestropy.store.postgres import servers

_STATEMENTS = sql.load("servers")
_COMMAND_SECONDS: Final = 5.0
_TABLES: Final = (
    "resources",
    "events",
    "status_events",
    "event_instances",
    "server_instances",
    "consumers",
    "delete_recovery_schedule",
    "delete_recovery_consumers",
    "renditions",
    "maestropy_instances",
    "maestropy_holds",
    "maestropy_adoptions",
    "maestropy_pauses",
    "maestropy_agents",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What was found in a database."""

    version: str
    user: str
    write_problem: str
    """Why it takes no writes, as the end of a sentence; empty if it takes them."""
    missing_privileges: tuple[str, ...]
    """Tables and the privileges on them that the user lacks."""
    schema_name: str
    may_create: bool
    """Whether the user may create tables, as a migration does."""
    host_ahead_seconds: float
    """How far this host is ahead of the database."""
    answer_seconds: float
    """How long it took to answer one statement."""


async def inspect(address: dsns.Dsn, *, epoch: Callable[[], float]) -> Inspection:
    """Return what a server would find; raises `StoreError` if it cannot connect. `epoch` is the clock of this host."""
    async with _connected(address) as connection:
        before = epoch()
        row = await connection.fetchrow(_STATEMENTS["inspect"])
        after = epoch()
        return Inspection(
            version=row["version"],
            user=row["user"],
            write_problem=await servers.write_problem(connection),
            missing_privileges=tuple(
                found[0] for found in await connection.fetch(_STATEMENTS["missing_privileges"], list(_TABLES))
            ),
            schema_name=row["schema"] or "public",
            may_create=row["may_create"],
            host_ahead_seconds=(before + after) / 2 - row["seconds"],
            answer_seconds=max(0.0, after - before),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How full a database is, what waits in it, and which one it is."""

    connections: int
    max_connections: int
    notification_queue: float
    """The used share of the queue of notifications."""
    invalid_indexes: tuple[str, ...]
    oldest_transaction_seconds: float
    pending: int | None
    """Spec events that wait for delivery; None if there are no tables."""
    oldest_pending_seconds: float
    identity: str
    """Empty if the database has none: it is that of a Go server, or not migrated."""


async def load(address: dsns.Dsn) -> Load:
    """Return how a database is used; raises `StoreError` if it cannot connect."""
    async with _connected(address) as connection:
        row = await connection.fetchrow(_STATEMENTS["load"])
        pending, seconds = None, 0.0
        if row["has_events"]:
            name = "oldest_pending_not_paused" if row["has_pauses"] else "oldest_pending"
            pending, seconds = await connection.fetchrow(_STATEMENTS[name])
        identity = await data_safety.identity(connection) if row["has_identity"] else ""
        return Load(
            connections=row["connections"],
            max_connections=row["max_connections"],
            notification_queue=row["notification_queue"],
            invalid_indexes=tuple(row["invalid_indexes"]),
            oldest_transaction_seconds=row["oldest_transaction_seconds"],
            pending=pending,
            oldest_pending_seconds=seconds,
            identity=identity,
        )


async def replica_state(address: dsns.Dsn) -> replicas.ReplicaState:
    """Return how a read replica describes itself; raises `StoreError` if it cannot connect."""
    async with _connected(address, accepts_standby=True) as connection:
        return await replicas.state(connection)


async def schema_state(address: dsns.Dsn) -> schema.SchemaState:
    """Return what the database lacks of this version's migrations; raises `StoreError` if it cannot connect."""
    async with _connected(address) as connection:
        return await schema.compare(connection)


@asynccontextmanager
async def _connected(address: dsns.Dsn, *, accepts_standby: bool = False) -> AsyncIterator[servers.Connection]:
    connector = servers.Connector(address, accepts_standby=accepts_standby)
    connection = await connector.connect(statement_cache_size=0, command_timeout=_COMMAND_SECONDS)
    try:
        yield connection
    except errors.DRIVER_ERRORS as error:
        raise errors.translate(error) from error
    finally:
        connection.terminate()
