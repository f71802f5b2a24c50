"""Check what carries events between servers and agents: `maestro check broker`. Publishes only if it is asked to.

With MQTT and Pub/Sub that is a message broker; with gRPC it is the listener of the server itself.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from maestropy.aio import checks
from maestropy.aio import clock as clocks
from maestropy.flags import SettingsError
from maestropy.server.preflight import SECONDS
from maestropy.server.settings import ServerSettings
from maestropy.server.settings.listener_tls import certificate_files
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt import inspection as mqtt_inspection
from maestropy.transport.mqtt import topic_checks
from maestropy.transport.pubsub import config as pubsub_config
from maestropy.transport.tls import credentials
from maestropy.transport.tls import inspection as tls_inspection

FLAG = "--message-broker-config-file"
_EVERYWHERE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared, not bound


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerQuestions:
    """What else to find out."""

    consumer: str = ""
    """Whether the agent of this consumer can be reached."""
    probe: bool = False
    """Publish an empty message for a consumer that does not exist, to learn who is subscribed (MQTT)."""


async def run(settings: ServerSettings, questions: BrokerQuestions, *, clock: clocks.Clock) -> list[checks.Check]:
    """Check the broker of a server with these settings."""
    kinds = {"mqtt": _mqtt, "pubsub": _pubsub}
    check = kinds.get(settings.message_broker, _listener)

    async def guarded() -> Sequence[checks.Check]:
        try:
            return await check(settings, questions, clock=clock)
        except SettingsError as error:
            return [checks.failed("message-broker-config", str(error))]

    return list(await checks.bounded("message-broker", guarded, seconds=SECONDS, remedy="check address and network"))


async def _mqtt(settings: ServerSettings, questions: BrokerQuestions, *, clock: clocks.Clock) -> Sequence[checks.Check]:
    config = mqtt_config.read(settings.broker.config_file, flag=FLAG)
    client_id = settings.instance.instance_id
    found = [checks.warning("message-broker-config", note) for note in config.notes]
    found += await mqtt_inspection.inspect(config.endpoint, client_id=client_id, flag=FLAG, now=clock.now())
    if checks.has_failed(found):
        return found
    asked = topic_checks.Asked(source=settings.instance.source_id, consumer=questions.consumer, probe=questions.probe)
    return [*found, *(await topic_checks.inspect(config.endpoint, asked, client_id=client_id))[1]]


async def _pubsub(
    settings: ServerSettings, questions: BrokerQuestions, *, clock: clocks.Clock
) -> Sequence[checks.Check]:
    del clock
    try:
        from maestropy.transport.pubsub import inspection  # noqa: PLC0415 - Google's libraries are an extra
    except ModuleNotFoundError as error:
        remedy = "install maestropy with its extra pubsub"
        return [checks.not_seen("message-broker", f"{error.name} is not installed", remedy=remedy)]
    config = pubsub_config.read(settings.broker.config_file, flag=FLAG, role="source", environ=os.environ)
    _, found = await inspection.inspect(config.endpoint, consumer=questions.consumer)
    return [*(checks.warning("message-broker-config", note) for note in config.notes), *found]


async def _listener(
    settings: ServerSettings, questions: BrokerQuestions, *, clock: clocks.Clock
) -> Sequence[checks.Check]:
    host = "localhost" if settings.http.hostname in _EVERYWHERE else settings.http.hostname
    found = [await tls_inspection.reach(host, settings.broker.port, name="grpc-broker")]
    for files in certificate_files(settings):
        if files.flags is credentials.BROKER:
            found += tls_inspection.listener(files, hostname=settings.http.hostname, now=clock.now())
    whose = f"the agent of {questions.consumer} is" if questions.consumer else "agents are"
    remedy = f"run `maestro history {questions.consumer or '--all'} --kind agent --since 24h`"
    return [
        *found,
        checks.not_seen("grpc-broker-agents", f"whether {whose} connected, only the server knows", remedy=remedy),
    ]
