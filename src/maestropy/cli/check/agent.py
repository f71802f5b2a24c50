"""`maestro check agent`: check cluster, permissions, server and certificates before an agent is rolled out."""

import os
from collections.abc import Mapping

from maestropy.agent import settings as configuration
from maestropy.cli import lifecycle
from maestropy.cli.check import output
from maestropy.cli.parsing.settings_commands import SettingsCommand

EXAMPLES = f"""\
Examples:

  maestro check agent --consumer-name=cluster1 --grpc-url=maestro-grpc-broker.example.com:443
      the cluster of the current kubeconfig, and a server

  maestro check agent --consumer-name=cluster1 --workload-source-config=/secrets/grpc/config.yaml -o json
      with the certificates of a configuration file, for scripts

  kubectl exec deploy/maestro-agent -- maestro check agent --consumer-name=cluster1 --grpc-url=localhost:8091
      with the service account and the network of the pod; give the flags of the Deployment

{output.EXIT_CODES}"""


def execute(values: Mapping[str, str]) -> int:
    """Check what an agent with these flags needs."""
    chosen, flags = output.split(values)
    settings = configuration.load(flags, os.environ)

    async def check(_: lifecycle.Stop) -> int:
        from maestropy.agent import preflight
        from maestropy.aio import clock as clocks

        results = await preflight.run(settings, clock=clocks.Clock())
        return output.write(results, title="check agent", output=chosen)

    return lifecycle.run(check)


COMMAND = SettingsCommand(
    name="check agent",
    flags=output.flags_with_output(configuration.FLAGS),
    execute=execute,
    text="Check whether an agent with these settings would work: API server, permissions, clock, server or broker, and "
    "certificates. Takes the flags of `maestro agent`, and changes nothing.",
    examples=EXAMPLES,
)
