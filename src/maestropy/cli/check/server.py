"""`maestro check server`: check database, broker and certificates before a server is rolled out."""

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

  MAESTRO_DB_DSN=postgresql://maestro@db/maestro maestro check server
      the database of a server

  maestro check server --message-broker-type=mqtt --message-broker-config-file=mqtt.yaml -o json
      its message broker too, for scripts

  kubectl exec deploy/maestro -- maestro check server --db-host-file=/secrets/rds/db.host
      with the secrets and the network of a pod; give the flags of the Deployment

{output.EXIT_CODES}"""


def execute(values: Mapping[str, str]) -> int:
    """Check what a server with these flags needs."""
    chosen, flags = output.split(values)
    settings, dsn = configuration.locate(configuration.load(flags, os.environ))

    async def check(_: lifecycle.Stop) -> int:
        from maestropy.aio import clock as clocks
        from maestropy.cli.server.database_login import with_login
        from maestropy.server import preflight

        async with AsyncExitStack() as stack:
            address = await stack.enter_async_context(with_login(dsn, settings.database)) if dsn is not None else None
            results = await preflight.run(settings, address, clock=clocks.Clock())
        return output.write(results, title="check server", output=chosen)

    return lifecycle.run(check)


COMMAND = SettingsCommand(
    name="check server",
    flags=output.flags_with_output(FLAGS),
    execute=execute,
    text="Check whether a server with these settings would work: database, migrations, privileges, clock, message "
    "broker and certificates. Takes the flags and variables of `maestro server`, and changes nothing.",
    examples=EXAMPLES,
)
