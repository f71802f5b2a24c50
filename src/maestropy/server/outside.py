"""Everything that an outside broker needs in place of the port for agents, built and started together. No logic."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from maestropy.aio import tasks
from maestropy.flags import SettingsError
from maestropy.server.absorb import Absorb
from maestropy.server.broker_mqtt import MqttBroker, Stages
from maestropy.server.ownership import EVERY_SECONDS, Ownership, Rules
from maestropy.server.publish import Publish
from maestropy.server.resyncs import Resyncs
from maestropy.server.settings import ServerSettings
from maestropy.server.world import World
from maestropy.transport import mqtt_config
from maestropy.transport.mqtt_endpoint import Endpoint
from maestropy.wire import errors, topics

_FLAG = "--message-broker-config-file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """The stages around an MQTT broker."""

    publish: Publish
    resyncs: Resyncs
    ownership: Ownership
    broker: MqttBroker

    @classmethod
    def build(
        cls, settings: ServerSettings, world: World, *, absorb: Absorb, delays: Callable[[], Iterator[float]]
    ) -> "Outside":
        """Read the broker's file and build what stands around it."""
        found = mqtt_config.read(settings.broker.config_file, flag=_FLAG)
        _check(found.endpoint, settings)
        for note in found.notes:
            world.journal.warning(note)
        publish = Publish(world, found.endpoint)
        resyncs = Resyncs(world, publish)
        ownership = Ownership(world, _rules(settings), gained=resyncs.ask)
        stages = Stages(absorb=absorb, publish=publish, resyncs=resyncs, ownership=ownership)
        broker = MqttBroker(world, found.endpoint, client_id=world.instance_id, stages=stages, delays=delays)
        return cls(publish=publish, resyncs=resyncs, ownership=ownership, broker=broker)

    async def start(self, crew: tasks.Crew, *, on_error: Callable[[Exception], None]) -> asyncio.Task[None]:
        """Start the stages; returns the task that ends when the broker was told to stop and all is stored."""
        await tasks.attempt(self.ownership.refresh, on_error=on_error)
        crew.start("ownership", tasks.every(EVERY_SECONDS, self.ownership.refresh, on_error=on_error))
        crew.start("publish", self.publish.run())
        crew.start("resyncs", self.resyncs.run())
        return crew.start("broker", self.broker.run())


def _rules(settings: ServerSettings) -> Rules | None:
    delivery = settings.delivery
    if delivery.subscription_type == "shared":
        return None
    return Rules(partitions=delivery.partition_count, replicas=delivery.replication_factor, load=delivery.load)


def _check(endpoint: Endpoint, settings: ServerSettings) -> None:
    origin = f"{_FLAG}={settings.broker.config_file}"
    patterns = endpoint.topics
    try:
        topics.check_source(patterns, settings.instance.source_id)
    except errors.Invalid as error:
        raise SettingsError(f"{origin}: {error}; change topics.agentEvents or --source-id") from error
    is_shared = topics.unshared(patterns.agent_events) != patterns.agent_events
    if is_shared and settings.delivery.subscription_type == "broadcast":
        # Each event would reach one instance, and mostly one that passes it over.
        raise SettingsError(
            f"{origin}: topics.agentEvents begins with $share, but --subscription-type=broadcast needs every instance "
            "to get every event; take $share/<group>/ out, or use --subscription-type=shared"
        )
