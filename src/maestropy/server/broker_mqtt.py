"""Stage: the connection to an MQTT broker, kept for as long as the server lives, and what arrives on it.

A report is acknowledged when it is stored, or known to change nothing; a resync request when it is answered. What was
not acknowledged when the connection broke is found by the resync that follows every connection, or given to another
instance where the subscription is a shared one.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from maestropy.aio import batches
from maestropy.journal.fields import Absorb as Phrase
from maestropy.journal.fields import Broker, Key, Life, Logger, Resync
from maestropy.server import describe
from maestropy.server.absorb import Absorb
from maestropy.server.decide import admission, intake
from maestropy.server.metrics import EventLabels
from maestropy.server.ownership import Ownership
from maestropy.server.publish import Publish
from maestropy.server.resyncs import Question, Resyncs
from maestropy.server.world import World
from maestropy.store import errors as store_errors
from maestropy.transport import base, mqtt
from maestropy.transport.mqtt_endpoint import Endpoint
from maestropy.wire import errors, event, storable, topics
from maestropy.wire import mqtt as binding

# With the longest pause of five seconds about three minutes; a database that is away for longer is asked about by the
# resync.
_ATTEMPTS = 40
# Enough to fill the transactions that store reports; what waits beyond that costs only its bytes.
_HANDLERS = 1024
# Long enough for a broker that is restarted, short compared with the time in which a dead instance is noticed.
_PATIENCE_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """What the messages lead to."""

    absorb: Absorb
    publish: Publish
    resyncs: Resyncs
    ownership: Ownership


class MqttBroker:
    """Stays connected, receives, and lets the other stages send."""

    def __init__(
        self,
        world: World,
        endpoint: Endpoint,
        *,
        client_id: str,
        stages: Stages,
        delays: Callable[[], Iterator[float]],
    ) -> None:
        self._world = world
        self._journal = world.journal.bind({Key.LOGGER: Logger.SERVER})
        self._endpoint = endpoint
        self._client_id = client_id
        self._stages = stages
        self._delays = delays
        self._waits = delays()
        self._slots = asyncio.Semaphore(_HANDLERS)
        self._stopping = asyncio.Event()
        self._offline_since: float | None = world.clock.monotonic()

    def is_in_reach(self) -> bool:
        """Say whether reports arrive here, or will in a moment."""
        since = self._offline_since
        return since is None or self._world.clock.monotonic() - since < _PATIENCE_SECONDS

    async def run(self) -> None:
        """Stay connected until `stop`; then finish what has been received."""
        self._journal.info(Life.MESSAGE_QUEUE_STARTING, {Key.BROKER_HOST: self._endpoint.broker_host})
        # What was received outlives the connection it came by: a report is worth storing even then.
        async with asyncio.TaskGroup() as handlers:
            connecting = handlers.create_task(self._stay_connected(handlers), name="mqtt connection")
            await self._stopping.wait()
            connecting.cancel()

    def stop(self) -> None:
        """Receive nothing new."""
        self._stopping.set()

    async def _stay_connected(self, handlers: asyncio.TaskGroup) -> None:
        while True:
            try:
                async with mqtt.connect(
                    self._endpoint, client_id=self._client_id, on_relief=lambda _: self._ask_again(handlers)
                ) as client:
                    await self._converse(client, handlers)
            except base.Disconnected as error:
                self._journal.error(Broker.DISCONNECTED, {Key.BROKER_HOST: self._endpoint.broker_host}, err=error)
            except store_errors.StoreError as error:
                self._journal.error(Broker.SUBSCRIBE_FAILED, err=error)
            await asyncio.sleep(next(self._waits))
            self._world.metrics.broker_reconnected(self._client_id)
            self._journal.info(Broker.RECONNECTING, v=2)

    async def _converse(self, client: mqtt.Client, handlers: asyncio.TaskGroup) -> None:
        patterns = self._endpoint.topics
        wanted = [patterns.agent_events, *([patterns.agent_broadcast] if patterns.agent_broadcast else [])]
        self._journal.info(Broker.MQTT_CONNECTED, {Key.BROKER_HOST: self._endpoint.broker_host})
        await client.subscribe(wanted, qos=self._endpoint.subscribe_qos)
        for topic in wanted:
            self._journal.info(Broker.MQTT_SUBSCRIBED, {Key.TOPIC: topic, Key.QOS: self._endpoint.subscribe_qos})
        self._waits = self._delays()
        self._stages.publish.attach(client)
        self._offline_since = None
        try:
            self._stages.resyncs.ask(await self._stages.ownership.owned())
            async for incoming in client.messages():
                await self._slots.acquire()
                handlers.create_task(self._handle(incoming), name="mqtt message")
        finally:
            self._offline_since = self._world.clock.monotonic()
            self._stages.publish.detach()

    async def _handle(self, incoming: mqtt.Incoming) -> None:
        try:
            await self._take(incoming)
        except Exception as error:  # noqa: BLE001 - a bug that one message brings to light must not end the server
            self._journal.error("a message failed unexpectedly", {Key.TOPIC: incoming.topic[:256]}, err=error)
            incoming.acknowledge()
        finally:
            self._slots.release()

    def _ask_again(self, handlers: asyncio.TaskGroup) -> None:
        async def ask() -> None:
            try:
                self._stages.resyncs.ask(await self._stages.ownership.owned())
            except store_errors.StoreError as error:
                self._journal.error(Resync.CONSUMERS_UNKNOWN, err=error)

        self._journal.warning("more messages waited than a broker keeps; agents are asked for what was lost")
        handlers.create_task(ask(), name="mqtt ask again")

    async def _take(self, incoming: mqtt.Incoming) -> None:
        try:
            received = binding.decode(
                incoming.message.content_type,
                properties=incoming.message.properties,
                payload=incoming.message.payload,
            )
            kind = event.parse_type(received.type)
            self._check(incoming.topic, received, kind)
            self._world.metrics.event_received(EventLabels.of(received))
            if kind.action == event.Action.RESYNC_REQUEST:
                self._answer(received, incoming.acknowledge)
                return
            is_stored = await self._report(received)
        except errors.WireError as error:
            # Anybody who may write to the topic may write this; it will not become better by being sent again.
            told = {Key.TOPIC: incoming.topic[:256], Key.REASON: str(error)}
            self._journal.warning(Broker.INVALID_EVENT, told)
            is_stored = True
        if is_stored:
            incoming.acknowledge()

    def _check(self, topic: str, received: event.Event, kind: event.EventType) -> None:
        if kind.data_type != event.MANIFEST_BUNDLES:
            raise errors.Unsupported(f"unsupported event data type {kind.data_type[:256]}")
        is_question = kind.action == event.Action.RESYNC_REQUEST
        if (kind.subresource == event.Subresource.SPEC) != is_question:
            raise errors.Unsupported(f"unsupported event type {received.type[:256]}: agents send statuses")
        consumer = received.text(event.CLUSTER_NAME)
        event.check_name(consumer, what=event.CLUSTER_NAME)
        if not topics.may_speak_for(self._endpoint.topics, topic, consumer=consumer):
            raise errors.Malformed(f"an event about cluster {consumer} must not arrive on this topic")
        self._tell(received)

    def _answer(self, received: event.Event, acknowledge: Callable[[], None]) -> None:
        """Every instance that hears a question answers it: if only the owner did, a dead owner would leave it open.

        Who asks was away, and whatever we asked meanwhile has reached nobody: the owner asks in return.
        """
        consumer = received.text(event.CLUSTER_NAME)
        question = Question(source=received.source, body=received.data, answered=acknowledge)
        self._stages.resyncs.answer(consumer, question)
        if self._stages.ownership.owns(consumer):
            self._stages.resyncs.ask([consumer])

    async def _report(self, received: event.Event) -> bool:
        """Store a report; returns whether it needs not be sent again."""
        storable.check_json(received.data or b"{}", what="event data")
        operation_id = admission.operation_id(received)
        report = intake.read_report(received, source_id=self._world.source_id, operation_id=operation_id)
        if not self._stages.ownership.owns(report.consumer):
            self._journal.info(Phrase.NOT_OWNED, describe.with_operation(operation_id, report.id), v=4)
            return True
        for pause in itertools.islice(self._delays(), _ATTEMPTS):
            try:
                await self._stages.absorb.submit(report)
            except batches.Stopped:
                return False
            except (batches.Overloaded, store_errors.StoreError):
                await asyncio.sleep(pause)
            else:
                return True
        fields = describe.with_operation(operation_id, report.id)
        self._journal.error(Phrase.HANDLE_FAILED, fields, err="the database could not be reached for too long")
        return True

    def _tell(self, received: event.Event) -> None:
        if self._journal.enabled(2):
            fields = describe.event_fields(self._journal, received, whole_from=5)
            self._journal.info(Phrase.RECEIVED, fields, v=2)
