"""Connect an agent to the server through an MQTT broker.

The broker accepts messages although no server is subscribed. If it reports that (reason code 0x10, no matching
subscribers), `publish` raises `Disconnected`: the agent keeps its status updates and connects again, and a resync
request is not lost while the server starts.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import BrokerPhrase
from maestropy.transport import port, resync_marker
from maestropy.transport.mqtt import connection
from maestropy.transport.mqtt.endpoint import MqttEndpoint
from maestropy.wire import errors, resync
from maestropy.wire.events import event, mqtt_topics
from maestropy.wire.events import mqtt_binding as binding


class MqttTransport:
    """Connects to one broker and subscribes to the spec events of one consumer."""

    def __init__(
        self, endpoint: MqttEndpoint, *, consumer: str, client_id: str, on_problem: Callable[[str], None]
    ) -> None:
        self._endpoint = endpoint
        self._consumer = consumer
        self._client_id = client_id
        self._on_problem = on_problem

    @property
    def address(self) -> str:
        """The configured address."""
        return self._endpoint.broker_host

    @property
    def subscribed_records(self) -> Sequence[port.LogRecord]:
        """The records of the Go agent: the connection, and each topic."""
        qos = self._endpoint.subscribe_qos
        topics = [(BrokerPhrase.MQTT_SUBSCRIBED, {LogKey.TOPIC: topic, LogKey.QOS: qos}) for topic in self._topics()]
        return [(BrokerPhrase.MQTT_CONNECTED, {LogKey.BROKER_HOST: self.address}), *topics]

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[port.AgentConnection]:
        """Open a connection; certificates are read again for each."""
        # The suffix is the Go agent's: ACLs of brokers depend on it.
        name = f"{self._client_id}-client"
        async with connection.connect(self._endpoint, client_id=name, on_messages_lost=_disconnect) as client:
            await client.subscribe(self._topics(), qos=self._endpoint.subscribe_qos)
            yield _MqttConnection(client, self._endpoint, consumer=self._consumer, on_problem=self._on_problem)

    def _topics(self) -> list[str]:
        patterns = self._endpoint.topics
        broadcast = [patterns.source_broadcast] if patterns.source_broadcast else []
        return [mqtt_topics.agent_subscription(patterns, self._consumer), *broadcast]


def _disconnect(client: connection.MqttClient) -> None:
    client.fail(port.Disconnected("the broker may have dropped messages; the resync after the reconnect repairs that"))


class _MqttConnection:
    def __init__(
        self, client: connection.MqttClient, endpoint: MqttEndpoint, *, consumer: str, on_problem: Callable[[str], None]
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._consumer = consumer
        self._on_problem = on_problem
        self._marker = resync_marker.ResyncMarker()

    async def events(self) -> AsyncIterator[event.CloudEvent]:
        async for incoming in self._client.messages():
            message = incoming.message
            try:
                received = binding.decode(message.content_type, properties=message.properties, payload=message.payload)
            except errors.WireError as error:
                self._on_problem(f"a message on {incoming.topic[:200]} is ignored: {error}")
            else:
                self._marker.receive(received)
                yield received
            incoming.acknowledge()

    async def publish(self, sent: event.CloudEvent) -> None:
        if sent.type == event.SPEC_RESYNC_REQUEST:
            await self._request_resync(sent)
        else:
            await self._send(sent)

    async def is_resync_answered(self, *, within: float) -> bool:
        return await self._marker.is_answered(within=within)

    async def _request_resync(self, request: event.CloudEvent) -> None:
        marked = self._marker.mark(request)
        try:
            await self._send(marked)
        except connection.MessageTooLarge:
            max_bytes = self._client.maximum_packet_bytes - resync.ENVELOPE_BYTES
            for part in resync_marker.parts(marked, max_bytes=max_bytes):
                await self._send(part)

    async def _send(self, sent: event.CloudEvent) -> None:
        try:
            topic = self._topic(sent)
            message = binding.encode(sent)
        except errors.WireError as error:
            raise port.PublishRejected(str(error)) from error
        if not await self._client.publish(topic, message, qos=self._endpoint.publish_qos):
            raise port.Disconnected(f"no server is subscribed to {topic}; check the connection of the server")

    def _topic(self, sent: event.CloudEvent) -> str:
        patterns = self._endpoint.topics
        source = sent.optional_text(event.ORIGINAL_SOURCE)
        if source or sent.type != event.SPEC_RESYNC_REQUEST:
            return mqtt_topics.agent_events(patterns, source=source, consumer=self._consumer)
        return mqtt_topics.agent_broadcast(patterns, source=source, consumer=self._consumer)
