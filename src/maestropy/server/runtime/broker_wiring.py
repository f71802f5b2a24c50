"""Build and start what a message broker needs in place of the gRPC port for agents. No logic.

The spec dispatcher, the resync and the status intake are the same for every broker. A message broker adds three parts:
the ownership of consumers, a queue that repeats resyncs, and the receiver of the agents' messages.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from maestropy.aio import tasks
from maestropy.flags import SettingsError
from maestropy.server.brokers import port
from maestropy.server.brokers.mqtt import MqttBroker
from maestropy.server.context import Context
from maestropy.server.controllers.agents.agent_messages import AgentMessages, Handlers
from maestropy.server.controllers.agents.agent_presence import AgentPresence
from maestropy.server.controllers.agents.resync import Resync
from maestropy.server.controllers.agents.resync_queue import ResyncQueue, SpecResyncRequest
from maestropy.server.controllers.instances.consumer_ownership import EVERY_SECONDS, ConsumerOwnership, RingRules
from maestropy.server.controllers.spec.spec_dispatcher import SpecDispatcher
from maestropy.server.controllers.status.status_intake import StatusIntake
from maestropy.server.controllers.status.status_writer import StatusWriter
from maestropy.server.settings import ServerSettings
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt.endpoint import MqttEndpoint
from maestropy.transport.pubsub import config as pubsub_config
from maestropy.wire import errors
from maestropy.wire.events import event, mqtt_topics

_FLAG = "--message-broker-config-file"


def open_message_broker(
    settings: ServerSettings, context: Context, *, delays: Callable[[], Iterator[float]]
) -> port.MessageBroker | None:
    """Read the configuration file of the broker, if there is one; the connection is opened by `MessageBroker.run`."""
    match settings.message_broker:
        case "mqtt":
            return _open_mqtt(settings, context, delays=delays)
        case "pubsub":
            return _open_pubsub(settings, context, delays=delays)
        case _:
            return None


def _open_mqtt(settings: ServerSettings, context: Context, *, delays: Callable[[], Iterator[float]]) -> MqttBroker:
    config = mqtt_config.read(settings.broker.config_file, flag=_FLAG)
    _check(config.endpoint, settings)
    _log_notes(config.notes, context)
    return MqttBroker(context, config.endpoint, client_id=context.instance_id, delays=delays)


def _open_pubsub(
    settings: ServerSettings, context: Context, *, delays: Callable[[], Iterator[float]]
) -> port.MessageBroker:
    config = pubsub_config.read(settings.broker.config_file, flag=_FLAG, role="source", environ=os.environ)
    if settings.delivery.subscription_type == "broadcast":
        # Each event reaches one instance only, and mostly one that does not own the consumer.
        raise SettingsError(
            "--subscription-type=broadcast needs every instance to get every event, but instances share a Pub/Sub "
            "subscription; use --subscription-type=shared"
        )
    _log_notes(config.notes, context)
    # Google's libraries are in an extra of their own and take long to import.
    from maestropy.server.brokers.pubsub import PubsubBroker  # noqa: PLC0415  the reason is the line above

    return PubsubBroker(context, config.endpoint, client_id=context.instance_id, delays=delays)


def _log_notes(notes: Iterable[str], context: Context) -> None:
    for note in notes:
        context.journal.warning(note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The controllers that the messages of a broker lead to; the same for every broker."""

    spec_dispatcher: SpecDispatcher
    resync: Resync
    status_writer: StatusWriter
    presence: AgentPresence


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageBrokerControllers:
    """The controllers that only a message broker needs."""

    broker: port.MessageBroker
    intake: StatusIntake
    queue: ResyncQueue
    ownership: ConsumerOwnership
    messages: AgentMessages

    @classmethod
    def build(
        cls,
        settings: ServerSettings,
        context: Context,
        broker: port.MessageBroker,
        *,
        targets: Targets,
        delays: Callable[[], Iterator[float]],
    ) -> "MessageBrokerControllers":
        """Connect the controllers with each other."""
        queue = ResyncQueue(
            context,
            answer=targets.resync.answer,
            request_statuses=targets.resync.request_statuses,
            wait_online=broker.wait_online,
        )
        ownership = ConsumerOwnership(context, _rules(settings), on_gained=queue.request_statuses)
        intake = StatusIntake(context, submit=targets.status_writer.submit, owns=ownership.owns)

        def answer_resync(received: event.CloudEvent, acknowledge: Callable[[], None]) -> None:
            request = SpecResyncRequest(source=received.source, body=received.data, acknowledge=acknowledge)
            queue.answer(received.text(event.CLUSTER_NAME), request)

        handlers = Handlers(
            intake=intake,
            answer_resync=answer_resync,
            request_statuses=queue.request_statuses,
            dispatch_pending=targets.spec_dispatcher.on_online,
            owns=ownership.owns,
            owned=ownership.owned,
            note_seen=targets.presence.note,
        )
        messages = AgentMessages(context, handlers, delays=delays)
        return cls(broker=broker, intake=intake, queue=queue, ownership=ownership, messages=messages)

    async def start(self, task_owner: tasks.TaskOwner, *, on_error: Callable[[Exception], None]) -> asyncio.Task[None]:
        """Start the controllers; returns the task that ends after `stop`, when every received message is stored."""
        await tasks.attempt(self.ownership.refresh, on_error=on_error)
        task_owner.start("ownership", tasks.run_periodically(EVERY_SECONDS, self.ownership.refresh, on_error=on_error))
        task_owner.start("resync queue", self.queue.run())
        return task_owner.start("broker", self.broker.run(self.messages))

    def request_statuses(self, consumer: str) -> None:
        """Request the statuses of a consumer, if this instance stores them."""
        if self.ownership.owns(consumer):
            self.queue.request_statuses([consumer])

    def stop(self) -> None:
        """Receive no more messages."""
        self.broker.stop()


def _rules(settings: ServerSettings) -> RingRules | None:
    delivery = settings.delivery
    if delivery.subscription_type == "shared":
        return None
    return RingRules(partitions=delivery.partition_count, replicas=delivery.replication_factor, load=delivery.load)


def _check(endpoint: MqttEndpoint, settings: ServerSettings) -> None:
    origin = f"{_FLAG}={settings.broker.config_file}"
    patterns = endpoint.topics
    try:
        mqtt_topics.check_source(patterns, settings.instance.source_id)
    except errors.InvalidContent as error:
        raise SettingsError(f"{origin}: {error}; change topics.agentEvents or --source-id") from error
    is_shared = mqtt_topics.without_share_prefix(patterns.agent_events) != patterns.agent_events
    if is_shared and settings.delivery.subscription_type == "broadcast":
        # Each event would reach one instance only, and mostly one that does not own the consumer.
        raise SettingsError(
            f"{origin}: topics.agentEvents begins with $share, but --subscription-type=broadcast needs every instance "
            "to get every event; take $share/<group>/ out, or use --subscription-type=shared"
        )
