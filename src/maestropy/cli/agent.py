"""`maestro agent`: the settings, and then the agent of one cluster until it is told to stop."""

import os
from collections.abc import Mapping

from maestropy.agent import settings as configuration
from maestropy.cli import running
from maestropy.cli.commands import Command

EXAMPLES = """\
Examples:

  maestro agent --consumer-name=cluster1 --grpc-url=localhost:8091
      the cluster of your kubeconfig, and a server on this host

  maestro agent --consumer-name=cluster1 --workload-source-config=/secrets/grpc/config.yaml
      the cluster it runs in, as Maestro's charts start it; the file holds the address and the credentials

  maestro agent --consumer-name=cluster1 --grpc-url=localhost:8091 --listen=127.0.0.1:8443 -v=4
      metrics without a token for this host alone, and every event in the log"""


def act(given: Mapping[str, str]) -> int:
    """Run the agent that the flags describe."""
    settings = configuration.load(given, os.environ)
    return running.run(lambda stop: _serve(settings, stop=stop))


async def _serve(settings: configuration.AgentSettings, *, stop: running.Stop) -> int:
    from maestropy.agent.main import run

    await running.until(stop, run(settings))
    return 0


COMMAND = Command(
    name="agent",
    flags=configuration.FLAGS,
    act=act,
    text="Run the agent of one cluster: apply what the server wants there, and report what became of it.",
    examples=EXAMPLES,
)
