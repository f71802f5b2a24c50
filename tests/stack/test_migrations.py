"""Migrations of September 2026: under Go's lock, by their IDs; half done ones and early revisions are repaired."""

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from maestropy.cli.errors import CommandError
from maestropy.cli.server import migration
from maestropy.journal import emit
from maestropy.server import settings as configuration
from maestropy.server.runtime import database as databases
from maestropy.store import errors
from maestropy.store.dsn import Dsn
from maestropy.store.migrations import migrate, schema
from tests import waiting

LABELS, RECOVERY = "202609101040", "202609141000"
INDEXES = {
    "idx_resources_payload_labels": "USING gin ((((payload -> 'metadata'::text) -> 'labels'::text)) jsonb_path_ops)",
    "idx_resources_delete_recovery_bootstrap": "(deleted_at, id) "
    "WHERE ((deleted_at IS NOT NULL) AND (delete_retry_at IS NULL))",
    "idx_resources_delete_recovery_due": "(consumer_name, delete_retry_at, id) "
    "WHERE ((deleted_at IS NOT NULL) AND (delete_retry_at IS NOT NULL))",
    "idx_events_pending_resource_delete": "(source_id) WHERE ((source = 'Resources'::text) "
    "AND (event_type = 'Delete'::text) AND (reconciled_date IS NULL))",
    "idx_delete_recovery_consumers_due": "(next_at, consumer_name)",
}
GO_LOCK = "SELECT pg_try_advisory_lock(hashtext('maestro'), hashtext('migrations'))"
BEFORE_SEPTEMBER = f"""
DELETE FROM migrations WHERE id IN ('{LABELS}', '{RECOVERY}');
DROP TABLE delete_recovery_consumers, delete_recovery_schedule;
ALTER TABLE resources DROP COLUMN delete_retry_at, DROP COLUMN delete_retry_delay;
DROP INDEX idx_resources_payload_labels, idx_events_pending_resource_delete;
"""
FIRST_REVISION = "ALTER TABLE delete_recovery_schedule DROP COLUMN cooldown_pending"
INVALID = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = $1::text::regclass"


@contextlib.asynccontextmanager
async def connected(address: Dsn) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(**address.connect_kwargs())
    try:
        yield connection
    finally:
        await connection.close()


async def index_definitions(connection: Any) -> dict[str, str]:
    rows = await connection.fetch(
        """SELECT c.relname, pg_get_indexdef(i.indexrelid) AS definition
           FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indisvalid"""
    )
    return {row["relname"]: row["definition"] for row in rows}


async def test_september_schema(database: Dsn) -> None:
    async with connected(database) as connection:
        found = await index_definitions(connection)
        assert {name: found[name].endswith(definition) for name, definition in INDEXES.items()} == dict.fromkeys(
            INDEXES, True
        )
        assert "maestropy_resources_labels" not in found, "the same index twice"
        columns = await connection.fetch(
            """SELECT table_name || '.' || column_name AS name, data_type, is_nullable, column_default
               FROM information_schema.columns
               WHERE table_name LIKE 'delete_recovery%' OR column_name LIKE 'delete_retry%' ORDER BY 1"""
        )
        assert [tuple(row) for row in columns] == [
            ("delete_recovery_consumers.consumer_name", "text", "NO", None),
            ("delete_recovery_consumers.next_at", "timestamp with time zone", "NO", None),
            ("delete_recovery_schedule.cooldown_pending", "boolean", "NO", "false"),
            ("delete_recovery_schedule.id", "integer", "NO", None),
            ("delete_recovery_schedule.next_at", "timestamp with time zone", "NO", None),
            ("resources.delete_retry_at", "timestamp with time zone", "YES", None),
            ("resources.delete_retry_delay", "bigint", "YES", None),
        ]
        assert await connection.fetchval("SELECT count(*) FROM delete_recovery_schedule WHERE id = 1") == 1
        ids = await connection.fetch("SELECT id FROM migrations ORDER BY id")
        assert [row["id"] for row in ids][-2:] == [LABELS, RECOVERY]


async def test_database_of_an_older_go_server_is_migrated_while_it_is_used(database: Dsn) -> None:
    """An open transaction that has only read does not block the indexes."""
    async with connected(database) as connection, connected(database) as user:
        await connection.execute(BEFORE_SEPTEMBER)
        await user.execute("BEGIN")
        await user.execute("SELECT 1")
        assert (await migrate.migrate(database)).applied == (LABELS, RECOVERY)
        assert set(INDEXES) <= set(await index_definitions(connection))


async def test_revision_without_cooldown_gets_its_column(database: Dsn) -> None:
    async with connected(database) as connection:
        await connection.execute(FIRST_REVISION)
        report = await migrate.migrate(database)
        assert (report.applied, report.repaired) == ((), ("delete_recovery_schedule.cooldown_pending",))
        assert await connection.fetchval("SELECT cooldown_pending FROM delete_recovery_schedule") is False
        assert (await migrate.migrate(database)).repaired == ()


@pytest.mark.parametrize("is_recorded", [True, False])
async def test_invalid_index_of_an_interrupted_migration_is_built_again(database: Dsn, *, is_recorded: bool) -> None:
    name = "idx_resources_delete_recovery_due"
    async with connected(database) as connection:
        await connection.execute(INVALID, name)
        if not is_recorded:
            await connection.execute("DELETE FROM migrations WHERE id = $1", RECOVERY)
        before = await connection.fetchval("SELECT 'idx_events_pending_resource_delete'::regclass::oid")
        report = await migrate.migrate(database)
        assert (report.applied, report.repaired) == (((), (name,)) if is_recorded else ((RECOVERY,), ()))
        assert name in await index_definitions(connection)
        after = await connection.fetchval("SELECT 'idx_events_pending_resource_delete'::regclass::oid")
        assert before == after, "valid indexes stay"


@pytest.mark.long
async def test_migration_waits_for_a_go_server_that_migrates(database: Dsn) -> None:
    async with connected(database) as connection, connected(database) as go:
        await connection.execute(BEFORE_SEPTEMBER)
        assert await go.fetchval(GO_LOCK) is True
        migrating = asyncio.create_task(migrate.migrate(database))
        done, _ = await asyncio.wait([migrating], timeout=1.5)
        assert not done
        # What the Go server does meanwhile does not wait for the one that polls.
        await go.execute("SET lock_timeout = '5s'")
        await go.execute(schema.read(LABELS).steps[0].statement)
        await go.execute("INSERT INTO migrations VALUES ($1)", LABELS)
        await go.execute("SELECT pg_advisory_unlock(hashtext('maestro'), hashtext('migrations'))")
        assert (await migrating).applied == (RECOVERY,)


EMPTY = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"
GO_TABLE = "CREATE TABLE migrations (id varchar(255) PRIMARY KEY)"


async def is_blocked(connection: Any) -> bool:
    blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    return bool(await connection.fetchval(blocked))


async def test_older_go_server_that_migrates_without_the_lock_makes_the_migration_begin_again(database: Dsn) -> None:
    async with connected(database) as go, connected(database) as observer:
        await go.execute(EMPTY)
        async with go.transaction():
            await go.execute(GO_TABLE)
            migrating = asyncio.ensure_future(migrate.migrate(database))
            await waiting.until(lambda: is_blocked(observer), what="a migration that creates the same table")
        report = await migrating
    assert report.applied == tuple(migrate.names())


async def test_collision_that_lasts_names_the_other_program(database: Dsn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "_POLL_SECONDS", 0.0)

    async def collide(connection: Any) -> None:
        await connection.execute("INSERT INTO migrations (id) SELECT id FROM migrations LIMIT 1")

    monkeypatch.setattr(migrate, "_migrate", collide)
    with pytest.raises(errors.StatementError, match=r"migrations_pkey\"; another program.* again"):
        await migrate.migrate(database)


async def test_command_names_the_process_that_it_waits_for(
    database: Dsn, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "_POLL_SECONDS", 0.02)
    async with connected(database) as go:
        await go.execute("SET application_name = 'maestro-go'")
        assert await go.fetchval(GO_LOCK) is True
        migrating = asyncio.create_task(migration._migrate_and_report(database))
        lines = ""

        async def is_reported() -> bool:
            nonlocal lines
            lines += capsys.readouterr().err
            return bool(lines)

        await waiting.until(is_reported, what="the line about the wait")
        await asyncio.sleep(0.1)  # further attempts say nothing
        assert not migrating.done()
        await go.execute("SELECT pg_advisory_unlock_all()")
        await migrating
        assert lines + capsys.readouterr().err == (
            f"waiting for another migration of this database: pid {go.get_server_pid()} "
            f"(application maestro-go, user {database.user}) holds its lock\n"
        )


@pytest.mark.parametrize(
    ("statements", "reason", "remedy"),
    [
        pytest.param(
            ("GRANT USAGE ON SCHEMA public TO limited", "DROP TABLE maestropy_migrations"),
            "permission denied for schema public",
            'GRANT USAGE, CREATE ON SCHEMA public TO "limited"',
            id="schema",
        ),
        pytest.param(
            ("GRANT USAGE, CREATE ON SCHEMA public TO limited",),
            r"permission denied for table \w+",
            r'the role limited must own Maestro.s tables: .* ALTER TABLE \w+ OWNER TO "limited"',
            id="table",
        ),
        pytest.param(
            ("REVOKE ALL ON SCHEMA public FROM PUBLIC",),
            "no schema has been selected to create in",
            'GRANT USAGE, CREATE ON SCHEMA public TO "limited"',
            id="no-schema",
        ),
    ],
)
async def test_missing_permission_is_explained(
    database: Dsn, statements: tuple[str, ...], reason: str, remedy: str
) -> None:
    limited = replace(database, user="limited")
    async with connected(database) as connection:
        await connection.execute("DO $$ BEGIN CREATE ROLE limited LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
        for statement in statements:
            await connection.execute(statement)
    message = f"the database postgresql://limited@.* cannot be migrated: {reason}; .*{remedy}"
    with pytest.raises(CommandError, match=message) as raised:
        await migration._migrate_and_report(limited)
    assert "--db flags" not in str(raised.value)


async def test_server_explains_missing_permissions(database: Dsn) -> None:
    async with connected(database) as connection:
        await connection.execute("DO $$ BEGIN CREATE ROLE limited LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
    message = (
        "postgresql://limited@.* cannot be used: permission denied for table migrations; the role limited must own"
    )
    with pytest.raises(databases.DatabaseUnusable, match=message):
        await start(replace(database, user="limited"))


async def test_command_explains_a_read_only_database(database: Dsn) -> None:
    async with connected(database) as connection:
        await connection.execute(f"ALTER DATABASE {database.database} SET default_transaction_read_only = on")
    with pytest.raises(CommandError, match=r"is read-only: .*; give the address of the primary.*database writable"):
        await migration._migrate_and_report(database)


async def test_go_server_waits_for_our_migration(database: Dsn) -> None:
    """The lock is held while an index waits for a transaction of somebody else."""
    async with connected(database) as connection, connected(database) as writer, connected(database) as go:
        await connection.execute("DROP INDEX idx_resources_payload_labels")
        await writer.execute("BEGIN")
        await writer.execute("DELETE FROM resources")
        migrating = asyncio.create_task(migrate.migrate(database))
        building = (
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND datname = $1"
        )

        async def is_building() -> bool:
            return bool(await connection.fetchval(building, database.database))

        await waiting.until(is_building, what="the index")
        assert await go.fetchval(GO_LOCK) is False
        await writer.execute("ROLLBACK")
        await migrating
        assert await go.fetchval(GO_LOCK) is True


async def test_blocked_migration_fails_with_the_remedy_and_can_be_repeated(
    database: Dsn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "_LOCK_TIMEOUT", "200ms")
    async with connected(database) as connection, connected(database) as writer:
        await connection.execute(BEFORE_SEPTEMBER)
        await writer.execute("BEGIN")
        await writer.execute("DELETE FROM resources")
        with pytest.raises(errors.RowLocked, match=f"migration {LABELS} waited .* run `maestro migration` again"):
            await migrate.migrate(database)
        recorded = await connection.fetchval("SELECT count(*) FROM migrations WHERE id = $1", LABELS)
        with pytest.raises(CommandError, match=r"cannot be migrated: .*which also repairs what is half done$"):
            await migration._migrate_and_report(database)
        assert (recorded, "idx_resources_payload_labels" in await index_definitions(connection)) == (0, False)
        await writer.execute("ROLLBACK")
        assert (await migrate.migrate(database)).applied == (LABELS, RECOVERY)
        assert "idx_resources_payload_labels" in await index_definitions(connection)


@pytest.mark.parametrize(
    ("statements", "migration_name", "reason", "applied"),
    [
        pytest.param(
            ("ALTER TABLE resources DROP COLUMN source", "DELETE FROM maestropy_migrations WHERE id = '{name}'"),
            "maestropy_0010_searches",
            'column "source" does not exist',
            "Nothing was applied before it",
            id="column",
        ),
        pytest.param(
            (
                "ALTER TABLE resources DROP COLUMN source",
                "DELETE FROM maestropy_migrations WHERE id IN ('maestropy_0009_creations', '{name}')",
            ),
            "maestropy_0010_searches",
            'column "source" does not exist',
            "Applied before it, and recorded: maestropy_0009_creations",
            id="column-after-another-migration",
        ),
        pytest.param(
            ("DROP TABLE status_events CASCADE", "DELETE FROM maestropy_migrations WHERE id = '{name}'"),
            "maestropy_0009_creations",
            'relation "status_events" does not exist',
            "Nothing was applied before it",
            id="table",
        ),
    ],
)
async def test_database_that_differs_from_its_recorded_migrations_is_explained(
    database: Dsn, statements: tuple[str, ...], migration_name: str, reason: str, applied: str
) -> None:
    async with connected(database) as connection:
        for statement in statements:
            await connection.execute(statement.format(name=migration_name))
    message = (
        f"cannot be migrated: migration {migration_name} failed: {reason}. The schema differs from .*{applied}. Comp"
    )
    with pytest.raises(CommandError, match=message):
        await migration._migrate_and_report(database)


async def start(address: Dsn) -> list[str]:
    """Open the database as a server does at its start; return the lines of the log."""
    log = io.BytesIO()
    journal = emit.Journal(log, clock=lambda: 0.0, verbosity=2)
    opened = await databases.open_database(configuration.load({}, {}), address, journal=journal)
    await opened.close()
    journal.flush()
    return log.getvalue().decode().splitlines()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        pytest.param(
            FIRST_REVISION,
            f"half migrated: migration {RECOVERY} is recorded, but delete_recovery_schedule.cooldown_pending is absent",
            id="earlier-revision",
        ),
        pytest.param(
            "DELETE FROM delete_recovery_schedule",
            f"half migrated: migration {RECOVERY} is recorded, but the row of delete_recovery_schedule is absent",
            id="no-schedule",
        ),
        pytest.param(
            "DROP TABLE delete_recovery_consumers",
            f"half migrated: migration {RECOVERY} is recorded, but delete_recovery_consumers.next_at is absent",
            id="no-table",
        ),
        pytest.param(
            f"DELETE FROM migrations WHERE id = '{RECOVERY}'",
            f"lacks 1 migrations, the first is {RECOVERY}",
            id="not-recorded",
        ),
    ],
)
async def test_server_does_not_start_on_a_half_migrated_database_until_it_is_repaired(
    database: Dsn, statement: str, message: str
) -> None:
    async with connected(database) as connection:
        await connection.execute(statement)
    with pytest.raises(databases.NotMigrated, match=message) as raised:
        await start(database)
    assert "run `maestro migration`" in str(raised.value)
    await migrate.migrate(database)
    await start(database)


async def test_server_starts_without_a_valid_index_and_warns(database: Dsn) -> None:
    async with connected(database) as connection:
        await connection.execute(INVALID, "idx_resources_payload_labels")
    warning = next(line for line in await start(database) if "lacks valid indexes" in line)
    assert "idx_resources_payload_labels" in warning


async def test_newer_migration_is_left_alone_with_a_warning(database: Dsn, capsys: pytest.CaptureFixture[str]) -> None:
    async with connected(database) as connection:
        await connection.execute("INSERT INTO migrations VALUES ('203001010000'), ('202312191105')")
        warning = next(line for line in await start(database) if "a newer Maestro has migrated" in line)
        assert ("203001010000" in warning, "202312191105" in warning) == (True, False)
        await migration._migrate_and_report(database)
        assert "does not know: 203001010000." in capsys.readouterr().err
        assert await connection.fetchval("SELECT count(*) FROM migrations WHERE id = '203001010000'") == 1


async def test_command_reports_what_it_repaired(database: Dsn, capsys: pytest.CaptureFixture[str]) -> None:
    async with connected(database) as connection:
        await connection.execute(FIRST_REVISION)
    await migration._migrate_and_report(database)
    assert "repaired delete_recovery_schedule.cooldown_pending\n" in capsys.readouterr().out
    with pytest.raises(CommandError, match=r"cannot be migrated: .* check the --db flags"):
        await migration._migrate_and_report(replace(database, database="absent"))
