"""`maestro check database`: check a database that servers use, also while they run."""

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack

from maestropy.cli import lifecycle
from maestropy.cli.check import output
from maestropy.cli.parsing.settings_commands import SettingsCommand
from maestropy.server import settings as configuration
from maestropy.server.settings.load import FLAGS

EXAMPLES = f"""\
Examples:

  MAESTRO_DB_DSN=postgresql://maestro@db/maestro maestro check database
      a database, by its address

  maestro check database --db-dsn=postgresql://maestro@db/maestro --db-read-dsn=postgresql://maestro@replica/maestro
      and its read replica

  kubectl exec deploy/maestro -- maestro check database --db-host-file=/secrets/rds/db.host -o json
      with the secrets and the network of a pod, for scripts

{output.EXIT_CODES}"""


def execute(values: Mapping[str, str]) -> int:
    """Check the database of a server with these flags."""
    chosen, flags = output.split(values)
    settings, dsn = configuration.locate(configuration.load(flags, os.environ))

    async def check(_: lifecycle.Stop) -> int:
        from maestropy.aio import clock as clocks
        from maestropy.cli.server.database_login import with_login
        from maestropy.server import database_preflight

        async with AsyncExitStack() as stack:
            address = await stack.enter_async_context(with_login(dsn, settings.database)) if dsn is not None else None
            results = await database_preflight.run(settings, address, clock=clocks.Clock())
        return output.write(results, title="check database", output=chosen)

    return lifecycle.run(check)


COMMAND = SettingsCommand(
    name="check database",
    flags=output.flags_with_output(FLAGS),
    execute=execute,
    text="Check the database of servers, also while they run: whether it can be reached and written, privileges, "
    "migrations and indexes, a pooler in between, identity, connections, the queue of notifications, the oldest event "
    "that waits for delivery, clock and read replica. Takes the flags and variables of `maestro server`, and changes "
    "nothing.",
    examples=EXAMPLES,
)
