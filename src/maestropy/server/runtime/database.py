"""Open the database of a server, and check at start what would fail later: migrations, writes, sessions."""

from collections.abc import Callable

from maestropy.journal import emit
from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import DatabasePhrase, LifecyclePhrase
from maestropy.server.context import Context
from maestropy.server.decide.read_routing import Reason
from maestropy.server.read_replica import ReadReplica, ReplicaSettings
from maestropy.server.settings import ServerSettings, listening_address, reading_address
from maestropy.store import data_safety, errors
from maestropy.store import dsn as dsns
from maestropy.store.migrations import migrate
from maestropy.store.postgres import notifications, pool, pooler, remedies, servers

# For the first answer of the replica: a wrong address must be an error of the start also on a busy host.
_OPEN_SECONDS = 15.0


class DatabaseUnusable(Exception):
    """The server cannot start with this database; the message has its address, without the password."""


class NotMigrated(DatabaseUnusable):
    """The database lacks migrations of this version."""


async def open_database(settings: ServerSettings, dsn: dsns.Dsn, *, journal: emit.Journal) -> pool.Database:
    """Migrate if asked to, and return a pool; raises `DatabaseUnusable` with the flag and the remedy."""
    journal = journal.bind({LogKey.LOGGER: Logger.SERVER})
    try:
        return await _open(settings, dsn, journal=journal)
    except errors.StoreError as error:
        raise DatabaseUnusable(remedies.explain(dsn, error, failed="cannot be used")) from error


async def open_replica(settings: ServerSettings, context: Context, *, dsn: dsns.Dsn) -> ReadReplica | None:
    """Return the read replica, if there is one; raises `DatabaseUnusable` for that of another database.

    A replica that does not respond, or was promoted, does not keep a server from starting: the primary answers.
    """
    address = reading_address(settings, dsn)
    if address is None:
        return None
    replica = ReadReplica(
        context,
        ReplicaSettings(
            address=address,
            max_lag=settings.database.read_max_lag.total_seconds(),
            wait=settings.database.read_wait.total_seconds(),
            max_connections=settings.database.read_max_open_connections,
        ),
    )
    problem = await replica.check(seconds=_OPEN_SECONDS)
    if problem is not None and problem.reason is Reason.OTHER_DATABASE:
        await replica.close()
        raise DatabaseUnusable(
            f"--db-read-dsn={address} is no replica of {dsn}: {problem.text}; give the address of a streaming replica, "
            "or leave it out"
        )
    return replica


async def _open(settings: ServerSettings, dsn: dsns.Dsn, *, journal: emit.Journal) -> pool.Database:
    if settings.database.auto_migrate:
        report = await migrate.migrate(dsn, on_wait=_log_wait(journal))
        if report.applied:
            journal.info(LifecyclePhrase.MIGRATED, {LogKey.MIGRATIONS: list(report.applied)})
        if report.repaired:
            journal.warning(DatabasePhrase.SCHEMA_REPAIRED, {LogKey.REPAIRED: list(report.repaired)})
    pooling = await pooler.detect(dsn)
    if pooling is not pooler.Pooling.NONE:
        journal.info(DatabasePhrase.POOLER, {LogKey.REASON: f"{pooling.value} mode"})
    database = await pool.connect(
        dsn,
        max_connections=settings.database.max_open_connections,
        has_sessions=pooling is pooler.Pooling.NONE,
        on_move=_log_move(journal),
    )
    try:
        await _check_schema(dsn, database=database, journal=journal)
        await _check(settings, dsn, database=database, pooling=pooling)
        async with database.connection() as connection:
            database_id = await data_safety.identity(connection)
    except BaseException:
        await database.close()
        raise
    journal.info(DatabasePhrase.IN_USE, {LogKey.DATABASE_ADDRESS: str(dsn), LogKey.DATABASE_ID: database_id})
    return database


async def _check_schema(dsn: dsns.Dsn, *, database: pool.Database, journal: emit.Journal) -> None:
    async with database.connection() as connection:
        problem = await servers.write_problem(connection)
    if problem:
        raise errors.DatabaseReadOnly(f"it {problem}")
    state = await migrate.compare(database)
    remedy = "run `maestro migration` with the same database flags, or start the server with --auto-migrate"
    if state.missing:
        raise NotMigrated(
            f"the database {dsn} lacks {len(state.missing)} migrations, the first is {state.missing[0]}; {remedy}"
        )
    if state.absent_columns:
        raise NotMigrated(
            f"the database {dsn} is half migrated: migration {next(iter(state.defects))} is recorded, but "
            f"{', '.join(state.absent_columns)} is absent; {remedy}"
        )
    if state.unusable_indexes:
        journal.warning(DatabasePhrase.UNUSABLE_INDEXES, {LogKey.INDEXES: list(state.unusable_indexes)})
    if state.newer:
        journal.warning(DatabasePhrase.NEWER_SCHEMA, {LogKey.MIGRATIONS: list(state.newer)})


async def _check(settings: ServerSettings, dsn: dsns.Dsn, *, database: pool.Database, pooling: pooler.Pooling) -> None:
    if settings.database.listen_dsn is not None:
        await _check_listening(listening_address(settings, dsn), dsn, database=database)
    elif pooling is pooler.Pooling.TRANSACTION:
        raise DatabaseUnusable(
            f"the database {dsn} is behind a connection pooler (PgBouncer) in transaction mode, where notifications "
            "(LISTEN) do not arrive; give --db-listen-dsn or MAESTRO_DB_LISTEN_DSN the address of PostgreSQL itself "
            "for the one connection that listens"
        )


async def _check_listening(address: dsns.Dsn, dsn: dsns.Dsn, *, database: pool.Database) -> None:
    try:
        pooling = await pooler.detect(address)
        is_same = await notifications.sent_by(database)(await servers.process_at(address))
    except errors.StoreError as error:
        raise DatabaseUnusable(
            f"--db-listen-dsn={address} cannot be used: {error}; give the address of PostgreSQL itself, and check "
            "user and password"
        ) from error
    if pooling is pooler.Pooling.TRANSACTION:
        raise DatabaseUnusable(
            f"--db-listen-dsn={address} is behind a connection pooler in transaction mode too; give the address of "
            "PostgreSQL itself, or of a pooler in session mode"
        )
    if not is_same:
        raise DatabaseUnusable(
            f"--db-listen-dsn={address} leads to another PostgreSQL server or database than {dsn}, so that "
            "notifications would never arrive; give both the same database"
        )


def _log_wait(journal: emit.Journal) -> Callable[[str], None]:
    return lambda holder: journal.info(DatabasePhrase.WAITING_FOR_MIGRATION, {LogKey.HOLDER: holder})


def _log_move(journal: emit.Journal) -> Callable[[str], None]:
    return lambda host: journal.warning(DatabasePhrase.MOVED, {LogKey.DATABASE_HOST: host})
