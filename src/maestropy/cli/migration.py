"""`maestro migration`: bring the schema of a database up to date."""

import os
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack

from maestropy.cli import running
from maestropy.cli.commands import Command
from maestropy.cli.failure import CommandError
from maestropy.server import settings as configuration
from maestropy.server.settings.load import FLAGS
from maestropy.store.dsn import Dsn

EXAMPLES = """\
Examples:

  maestro migration
      the embedded PostgreSQL

  MAESTRO_DB_DSN=postgresql://maestro@db/maestro maestro migration
      a PostgreSQL of yours; safe to repeat, and while servers run"""

MIGRATION_FLAGS = {name: flag for name, flag in FLAGS.items() if flag.group in {"database", "log"}}


def act(given: Mapping[str, str]) -> int:
    """Migrate the database that the flags describe."""
    settings = configuration.load(given, os.environ)
    return running.run(lambda stop: _migrate(settings, stop=stop))


async def _migrate(settings: configuration.ServerSettings, *, stop: running.Stop) -> int:
    from maestropy.sandbox.postgres import EmbeddedPostgres

    _, dsn = configuration.locate(settings)
    async with AsyncExitStack() as stack:
        embedded = EmbeddedPostgres(settings.database.data_dir)
        address = await stack.enter_async_context(embedded) if dsn is None else dsn
        await running.until(stop, _migrate_and_tell(address))
    return 0


async def _migrate_and_tell(address: Dsn) -> None:
    from maestropy.store.errors import StoreError
    from maestropy.store.migrate import migrate

    try:
        report = await migrate(address)
    except StoreError as error:
        raise CommandError(f"{address} cannot be migrated: {error}; check the --db flags and the database") from error
    for name in report.applied:
        sys.stdout.write(f"applied {name}\n")
    sys.stdout.write(f"{len(report.applied)} applied, {len(report.already_there)} were already there\n")


COMMAND = Command(
    name="migration",
    flags=MIGRATION_FLAGS,
    act=act,
    text="Bring the schema of the database up to date.",
    examples=EXAMPLES,
)
