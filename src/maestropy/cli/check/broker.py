"""`maestro check broker`: check what carries events between servers and agents."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from maestropy.cli import lifecycle
from maestropy.cli.check import output
from maestropy.cli.parsing.settings_commands import SettingsCommand
from maestropy.flags.declaration import flag, flags_of
from maestropy.flags.overrides import override
from maestropy.server import settings as configuration
from maestropy.server.settings.load import FLAGS

EXAMPLES = f"""\
Examples:

  maestro check broker --message-broker-type=mqtt --message-broker-config-file=mqtt.yaml
      an MQTT broker: TLS, login, topics and what it tells of itself

  maestro check broker --message-broker-type=mqtt --message-broker-config-file=mqtt.yaml --probe
      also who is subscribed: publishes an empty message for a consumer that does not exist

  maestro check broker --message-broker-type=pubsub --message-broker-config-file=pubsub.yaml --consumer=cluster1 -o json
      topics and subscriptions of Pub/Sub, and whether cluster1 has one; for scripts

  maestro check broker
      the gRPC listener of a server on this host

{output.EXIT_CODES}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSettings:
    """Questions"""

    consumer: str = field(default="", metadata=flag("--consumer"))
    """Also check the topics or the subscription of the agent of this consumer."""

    probe: bool = field(default=False, metadata=flag("--probe"))
    """MQTT: publish an empty message to the topics of a consumer that does not exist. The broker then tells whether a
    server is subscribed and whether messages are accepted. No agent gets it; servers log that it cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerCheckSettings:
    """The settings of the command itself."""

    questions: QuestionSettings = field(default_factory=QuestionSettings)


_OWN_FLAGS: Final = {found.name: found for found in flags_of(BrokerCheckSettings)}


def execute(values: Mapping[str, str]) -> int:
    """Check the broker of a server with these flags."""
    chosen, flags = output.split(values)
    own = {name: value for name, value in flags.items() if name in _OWN_FLAGS}
    asked = override(BrokerCheckSettings(), own, flags=_OWN_FLAGS, command="check").questions
    settings = configuration.load({name: value for name, value in flags.items() if name not in own}, os.environ)
    configuration.check_broker_file(settings)

    async def check(_: lifecycle.Stop) -> int:
        from maestropy.aio import clock as clocks
        from maestropy.server import broker_preflight

        questions = broker_preflight.BrokerQuestions(consumer=asked.consumer, probe=asked.probe)
        results = await broker_preflight.run(settings, questions, clock=clocks.Clock())
        return output.write(results, title="check broker", output=chosen)

    return lifecycle.run(check)


COMMAND = SettingsCommand(
    name="check broker",
    flags=output.flags_with_output(FLAGS) | _OWN_FLAGS,
    execute=execute,
    text="Check what carries events between servers and agents: an MQTT broker, Pub/Sub, or the gRPC listener of a "
    "server. Whether it can be reached, certificates, login, topics and subscriptions. Takes the flags and variables "
    "of `maestro server`, and changes nothing.",
    examples=EXAMPLES,
)
