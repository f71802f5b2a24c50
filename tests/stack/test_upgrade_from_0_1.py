"""A database that version 0.1 made, under the project's former name, keeps its rows when this version takes it over."""

import asyncpg
import pytest

from maestropy.store import errors
from maestropy.store.dsn import Dsn
from maestropy.store.migrations import migrate

_BACK_TO_0_1 = """
ALTER TABLE maestropy_migrations RENAME TO pymaestro_migrations;
UPDATE pymaestro_migrations SET id = replace(id, 'maestropy_', 'pymaestro_');
ALTER TABLE maestropy_instances RENAME TO pymaestro_instances;
ALTER TABLE maestropy_reminders RENAME TO pymaestro_reminders;
ALTER INDEX maestropy_resources_order RENAME TO pymaestro_resources_order;
INSERT INTO server_instances (id, last_heartbeat, ready) VALUES ('old', now(), true);
INSERT INTO pymaestro_instances (id, started_at) VALUES ('old', now());
"""


async def test_tables_of_version_0_1_are_renamed_and_keep_their_rows(database: Dsn) -> None:
    connection = await asyncpg.connect(**database.connect_kwargs())
    await connection.execute(_BACK_TO_0_1)
    first, second = await migrate.migrate(database), await migrate.migrate(database)
    assert first.applied == second.applied == ()
    assert await connection.fetchval("SELECT id FROM maestropy_instances") == "old"
    assert await connection.fetchval("SELECT count(*) FROM pg_class WHERE relname LIKE 'pymaestro%'") == 0
    await connection.close()


async def test_half_renamed_tables_of_version_0_1_keep_their_rows(database: Dsn) -> None:
    connection = await asyncpg.connect(**database.connect_kwargs())
    await connection.execute(_BACK_TO_0_1 + "ALTER TABLE pymaestro_migrations RENAME TO maestropy_migrations;")
    assert (await migrate.migrate(database)).applied == ()
    assert await connection.fetchval("SELECT id FROM maestropy_instances") == "old"
    assert await connection.fetchval("SELECT count(*) FROM maestropy_migrations WHERE id LIKE 'pymaestro%'") == 0
    await connection.close()


async def test_tables_of_both_versions_are_rejected_and_unchanged(database: Dsn) -> None:
    connection = await asyncpg.connect(**database.connect_kwargs())
    await connection.execute("CREATE TABLE pymaestro_reminders (id text); INSERT INTO pymaestro_reminders VALUES ('a')")
    with pytest.raises(errors.StatementError, match="pymaestro_reminders and maestropy_reminders"):
        await migrate.migrate(database)
    assert await connection.fetchval("SELECT id FROM pymaestro_reminders") == "a"
    await connection.close()
