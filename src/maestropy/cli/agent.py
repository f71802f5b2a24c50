"""`maestro agent`: load the settings and run the agent of one cluster until it is stopped."""

import os
from collections.abc import Mapping

from maestropy.agent import settings as configuration
from maestropy.cli import lifecycle
from maestropy.cli.parsing.settings_commands import SettingsCommand

EXAMPLES = """\
Examples:

  maestro agent --consumer-name=cluster1 --grpc-url=localhost:8091
      the cluster of the current kubeconfig, and a server on this host

  maestro agent --consumer-name=cluster1 --workload-source-config=/secrets/grpc/config.yaml
      the cluster it runs in, as Maestro's charts start it; the file contains the address and the credentials

  maestro agent --consumer-name=cluster1 --workload-source-driver=pubsub --workload-source-config=pubsub.yaml
      behind Google Pub/Sub

  maestro agent --consumer-name=cluster1 --grpc-url=localhost:8091 --listen=127.0.0.1:8443 -v=4
      metrics without a token on this host only, and every event in the log

  maestro agent status
      whether the agent on this host is ready, and which dependency is the reason if not"""


def execute(values: Mapping[str, str]) -> int:
    """Run the agent with the settings of the flags."""
    settings = configuration.load(values, os.environ)
    return lifecycle.run(lambda stop: _serve(settings, stop=stop))


async def _serve(settings: configuration.AgentSettings, *, stop: lifecycle.Stop) -> int:
    from maestropy.agent.main import run

    await lifecycle.run_until(stop, run(settings))
    return 0


COMMAND = SettingsCommand(
    name="agent",
    flags=configuration.FLAGS,
    execute=execute,
    text="Run the agent of one cluster: apply its works and report their status.",
    examples=EXAMPLES,
)
