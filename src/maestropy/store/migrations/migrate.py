"""Migrate a database to the schema of this version.

The numbered files are the migrations of Go Maestro with their IDs, recorded in its table: a database of a Go server
can be taken over, and a Go server accepts one of ours. Files that begin with `maestropy_` add tables and indexes that
only maestropy uses; they are recorded in a table of their own, which a Go server ignores.

One process at a time migrates, Go or Python, under the advisory lock of the Go server. Go takes it since September
2026; what an older one creates at the same time makes this one begin again. A Go server takes it for its session; here
a connection of its own takes it in a transaction that stays open, because a session has no locks behind a pooler in
transaction mode. That transaction is idle and has no snapshot, so an index that is built meanwhile does not wait for
it. Migrations that are recorded are compared with the database, and what it lacks of them is repaired.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

import asyncpg

from maestropy.store import dsn as dsns
from maestropy.store import errors, sql
from maestropy.store.migrations import objects, schema
from maestropy.store.postgres import locks, pool, pooler, servers

names = schema.names

OnWait = Callable[[str], None]

_UPGRADES = sql.load("upgrades")
_POLL_SECONDS: Final = 1.0
_LOCK_TIMEOUT: Final = "5s"
"""How long a step waits for the transactions of others before the migration fails and can be repeated."""

_OTHER_SCHEMA: Final = (
    asyncpg.UndefinedColumnError,
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedObjectError,
    asyncpg.DuplicateColumnError,
    asyncpg.DuplicateTableError,
    asyncpg.DuplicateObjectError,
    asyncpg.DatatypeMismatchError,
    asyncpg.WrongObjectTypeError,
)
"""Errors of a statement that fits the recorded schema, but not the real one."""

_REMEDY: Final = (
    "find transactions that are open for long (SELECT pid, state, query FROM pg_stat_activity ORDER BY xact_start), "
    "end them, and run `maestro migration` again, which also repairs what is half done"
)

_ATTEMPTS_BESIDE_OTHERS: Final = 5
_COLLISIONS: Final = (asyncpg.DuplicateTableError, asyncpg.DuplicateColumnError, asyncpg.DuplicateObjectError)


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationReport:
    """Migrations that a run applied, and those that were present."""

    applied: tuple[str, ...]
    already_there: tuple[str, ...]
    repaired: tuple[str, ...] = ()
    """Columns and indexes of recorded migrations that the database lacked."""
    absent: tuple[objects.SchemaObject, ...] = ()
    """What recorded migrations create, and the database lacks also after this run, as after an interrupted restore."""
    newer: tuple[str, ...] = ()
    """Recorded migrations that this version does not know."""


async def migrate(address: dsns.Dsn, *, on_wait: OnWait = lambda _holder: None) -> MigrationReport:
    """Apply every migration that the database at `address` lacks; `on_wait` gets the process that it waits for."""
    connector = servers.Connector(address)
    try:
        async with _only_migrator(connector, on_wait=on_wait), _connected(connector) as connection:
            return await _migrate_beside_others(connection)
    except errors.DRIVER_ERRORS as error:
        raise errors.translate(error) from error


async def compare(database: pool.Database) -> schema.SchemaState:
    """Return how the database differs from the migrations of this version."""
    async with database.connection() as connection:
        return await schema.compare(connection)


@asynccontextmanager
async def _connected(connector: servers.Connector) -> AsyncIterator[pool.Connection]:
    connection = await pooler.connect(connector, command_seconds=None)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def _only_migrator(connector: servers.Connector, *, on_wait: OnWait) -> AsyncIterator[None]:
    """Wait until no other process migrates, and keep others from it."""
    reported = ""
    async with _connected(connector) as connection:
        for attempt in itertools.count():
            transaction = connection.transaction()
            await transaction.start()
            if await schema.try_lock(connection):
                # As the last statement, by the simple protocol: the portal of the one before keeps a snapshot until
                # then, and `CREATE INDEX CONCURRENTLY` would wait for it.
                await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                break
            # A short wait is not worth a line.
            holder = await schema.lock_holder(connection) if attempt else ""
            await transaction.rollback()
            if holder and holder != reported:
                reported = holder
                on_wait(holder)
            # Without an open statement: the other process may build an index, which waits for statements.
            await asyncio.sleep(_POLL_SECONDS)
        yield
        await transaction.rollback()


async def _migrate_beside_others(connection: pool.Connection) -> MigrationReport:
    """Begin again after a collision with a Go server of before September 2026, which migrates without the lock."""
    for _ in range(_ATTEMPTS_BESIDE_OTHERS - 1):
        try:
            return await _migrate(connection)
        except (asyncpg.PostgresError, errors.StoreError) as error:
            if not _is_collision(error):
                raise
        await asyncio.sleep(_POLL_SECONDS)
    try:
        return await _migrate(connection)
    except asyncpg.UniqueViolationError as error:
        if not _is_collision(error):
            raise
        raise errors.StatementError(
            f"{error.args[0]}; another program, such as a Go Maestro of before September 2026, migrates this database "
            "at the same time without the lock of migrations: wait until it ends, then run `maestro migration` again"
        ) from error


def _is_collision(error: BaseException | None) -> bool:
    """Return whether another program has just created, or recorded, the same."""
    if isinstance(error, errors.StoreError):
        return _is_collision(error.__cause__)
    if isinstance(error, asyncpg.UniqueViolationError):
        constraint = error.constraint_name or ""
        return constraint.startswith("pg_") or constraint == "migrations_pkey"
    return isinstance(error, _COLLISIONS)


async def _migrate(connection: pool.Connection) -> MigrationReport:
    async with _locked_transaction(connection):
        await _rename_tables_of_0_1(connection)
        await connection.execute("CREATE TABLE IF NOT EXISTS migrations (id varchar(255) PRIMARY KEY)")
        await connection.execute("CREATE TABLE IF NOT EXISTS maestropy_migrations (id text PRIMARY KEY)")
    before = await schema.compare(connection)
    applied: list[str] = []
    for name in before.missing:
        with _explained(name, applied):
            if await _apply(connection, schema.read(name)):
                applied.append(name)
    for name in before.defects:
        with _explained(name, applied):
            await _execute(connection, schema.read(name))
    return MigrationReport(
        applied=tuple(applied),
        already_there=tuple(name for name in names() if name not in applied),
        repaired=(*before.absent_columns, *before.unusable_indexes),
        absent=(await schema.compare(connection)).absent,
        newer=before.newer,
    )


@contextmanager
def _explained(name: str, applied: Sequence[str]) -> Iterator[None]:
    """Name the migration that does not fit the database, and those that this run has applied before it."""
    try:
        yield
    except _OTHER_SCHEMA as error:
        done = f"Applied before it, and recorded: {', '.join(applied)}" if applied else "Nothing was applied before it"
        raise errors.StatementError(
            f"migration {name} failed: {error}. The schema differs from the one that the recorded migrations create. "
            f"{done}. Compare `pg_dump --schema-only` of this database with that of an empty one after `maestro "
            "migration`, make the tables equal, and run `maestro migration` again"
        ) from error


@asynccontextmanager
async def _locked_transaction(connection: pool.Connection) -> AsyncIterator[None]:
    """Begin a transaction under the lock of earlier versions, which migrate file by file."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1, $2)", *locks.MIGRATIONS)
        yield


async def _rename_tables_of_0_1(connection: pool.Connection) -> None:
    """Give our own tables their name of today; reject a database that has both, since rows would be left behind."""
    tables = await connection.fetch(_UPGRADES["tables_of_0_1"])
    taken = [f"{table['old_name']} and {table['new_name']}" for table in tables if table["is_taken"]]
    if taken:
        raise errors.StatementError(
            f"the database has tables of version 0.1 beside those of this version: {'; '.join(taken)}. Nothing was "
            "changed. If a server of version 0.1 was started after the upgrade, stop it, copy the rows you need from "
            "the tables that begin with pymaestro_, drop those tables, and run `maestro migration` again"
        )
    await connection.execute(_UPGRADES["rename_tables_of_0_1"])


async def _apply(connection: pool.Connection, migration: schema.Migration) -> bool:
    """Apply and record one migration; return False if another instance has applied it meanwhile."""
    record = (
        "INSERT INTO maestropy_migrations (id) VALUES ($1)"
        if migration.is_own
        else "INSERT INTO migrations (id) VALUES ($1)"
    )
    if migration.steps:
        # Recorded after the last step: what an interrupted run leaves behind is repaired by the next one.
        await _execute(connection, migration)
    async with _locked_transaction(connection):
        if migration.id in await schema.recorded_ids(connection):
            return False
        if not migration.steps:
            await connection.execute(migration.transaction)
        await connection.execute(record, migration.id)
    return True


async def _execute(connection: pool.Connection, migration: schema.Migration) -> None:
    """Execute a migration that has steps outside a transaction; it may be repeated."""
    try:
        if migration.transaction:
            async with _locked_transaction(connection):
                await connection.execute(migration.transaction)
        async with _bounded_waits(connection):
            for step in migration.steps:
                await _execute_step(connection, migration, step)
    except asyncpg.LockNotAvailableError as error:
        raise errors.RowLocked(
            f"migration {migration.id} waited {_LOCK_TIMEOUT} for another transaction and was not applied; {_REMEDY}"
        ) from error


async def _execute_step(connection: pool.Connection, migration: schema.Migration, step: schema.Step) -> None:
    if step.index:
        if step.index not in (await schema.defects_of(connection, migration)).indexes:
            return
        # An interrupted build leaves an invalid index, which would be in the way.
        await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {step.index}")
    await connection.execute(step.statement)


@asynccontextmanager
async def _bounded_waits(connection: pool.Connection) -> AsyncIterator[None]:
    """Bound how long each step waits for a lock; behind a pooler there is no session to set this for."""
    if await servers.backend(connection) != connection.get_server_pid():
        yield
        return
    rows = await connection.fetch("SHOW lock_timeout")
    await connection.execute("SELECT set_config('lock_timeout', $1, false)", _LOCK_TIMEOUT)
    try:
        yield
    finally:
        if not connection.is_closed():
            await connection.execute("SELECT set_config('lock_timeout', $1, false)", rows[0]["lock_timeout"])
