"""`maestro server`: the settings, the database and then the server, in one process or in several."""

import os
from collections.abc import Mapping

from maestropy.cli import running
from maestropy.cli.commands import Command
from maestropy.server import settings as configuration
from maestropy.server.settings.load import FLAGS

EXAMPLES = """\
Examples:

  maestro server
      everything on this host, with the embedded PostgreSQL

  MAESTRO_DB_DSN=postgresql://maestro@db/maestro maestro server
      the same on a PostgreSQL of yours

  maestro server --server-hostname= --data-dir=/var/lib/maestro
      for clients on other hosts; the data in a place of your choice

  maestro server --workers=4 -v=4
      four processes on the same ports, and every event in the log"""


def act(given: Mapping[str, str]) -> int:
    """Run the server that the flags describe."""
    from maestropy.cli import serving

    settings, dsn = configuration.locate(configuration.load(given, os.environ))
    return running.run(lambda stop: serving.serve(settings, dsn, given=given, stop=stop))


COMMAND = Command(
    name="server",
    flags=FLAGS,
    act=act,
    text="Run the Maestro server: REST, gRPC for sources, gRPC for agents, metrics and health.",
    examples=EXAMPLES,
)
