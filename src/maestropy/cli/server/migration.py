"""`maestro migration`: migrate the schema of the database."""

import os
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from maestropy.cli import lifecycle
from maestropy.cli.errors import CommandError
from maestropy.cli.parsing.settings_commands import SettingsCommand
from maestropy.cli.server.database_login import with_login
from maestropy.server import settings as configuration
from maestropy.server.settings.load import FLAGS
from maestropy.store.dsn import Dsn

EXAMPLES = """\
Examples:

  maestro migration
      the embedded PostgreSQL

  MAESTRO_DB_DSN=postgresql://maestro@db/maestro maestro migration
      an existing PostgreSQL; safe to repeat, also while servers run

Exit codes: 0 migrated, 1 failed or the schema is incomplete, 2 a mistake in the command line."""

MIGRATION_FLAGS = {name: flag for name, flag in FLAGS.items() if flag.group in {"database", "log"}}


def execute(values: Mapping[str, str]) -> int:
    """Migrate the database of the flags."""
    settings = configuration.load(values, os.environ)
    return lifecycle.run(lambda stop: _migrate(settings, stop=stop))


async def _migrate(settings: configuration.ServerSettings, *, stop: lifecycle.Stop) -> int:
    _, dsn = configuration.locate(settings)
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(_embedded(settings)) if dsn is None else dsn
        address = await stack.enter_async_context(with_login(address, settings.database))
        await lifecycle.run_until(stop, _migrate_and_report(address))
    return 0


def _embedded(settings: configuration.ServerSettings) -> AbstractAsyncContextManager[Dsn]:
    # Imported here: the production image has no sandbox.
    from maestropy.sandbox.postgres import EmbeddedPostgres

    return EmbeddedPostgres(settings.database.data_dir)


async def _migrate_and_report(address: Dsn) -> None:
    from maestropy.store.errors import StoreError
    from maestropy.store.migrations import objects
    from maestropy.store.migrations.migrate import migrate
    from maestropy.store.postgres import remedies

    try:
        report = await migrate(address, on_wait=_report_wait)
    except StoreError as error:
        raise CommandError(remedies.explain(address, error, failed="cannot be migrated")) from error
    for name in report.applied:
        sys.stdout.write(f"applied {name}\n")
    for name in report.repaired:
        sys.stdout.write(f"repaired {name}\n")
    sys.stdout.write(f"{len(report.applied)} applied, {len(report.already_there)} were already there\n")
    if incomplete := objects.needed(report.absent):
        raise CommandError(
            f"the schema of {address} is incomplete although its migrations are recorded: {incomplete}; "
            f"{objects.REMEDY}"
        )
    if report.absent:
        names = ", ".join(each.name for each in report.absent)
        sys.stderr.write(f"warning: indexes are absent: {names}; statements are slow; {objects.REMEDY}\n")
    if report.newer:
        sys.stderr.write(
            f"warning: the database has migrations that this version does not know: {', '.join(report.newer)}. A newer "
            "Maestro has migrated it. Nothing of it was changed; upgrade this version when you can\n"
        )


def _report_wait(holder: str) -> None:
    sys.stderr.write(f"waiting for another migration of this database: {holder} holds its lock\n")


COMMAND = SettingsCommand(
    name="migration",
    flags=MIGRATION_FLAGS,
    execute=execute,
    text="Migrate the database schema to the version of this server.",
    examples=EXAMPLES,
)
