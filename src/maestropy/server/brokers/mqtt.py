"""Send events to agents through an MQTT broker, and receive theirs.

Messages that were not acknowledged when the connection broke are found by the resync that follows every connection, or
delivered to another instance where the subscription is a shared one. `connected` keeps the connection.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager

from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import BrokerPhrase
from maestropy.server.brokers import port
from maestropy.server.brokers.connected import ConnectedBroker
from maestropy.server.context import Context
from maestropy.server.decide import broker_limits
from maestropy.server.telemetry.metrics import EventLabels
from maestropy.transport import port as transport
from maestropy.transport.mqtt import connection
from maestropy.transport.mqtt.endpoint import MqttEndpoint
from maestropy.wire import errors, resync
from maestropy.wire.events import event, mqtt_topics, stored_event
from maestropy.wire.events import mqtt_binding as binding


class MqttBroker(ConnectedBroker[connection.MqttClient, connection.Incoming]):
    """The broker of agents that connect to an MQTT broker."""

    kind = "mqtt"

    def __init__(
        self, context: Context, endpoint: MqttEndpoint, *, client_id: str, delays: Callable[[], Iterator[float]]
    ) -> None:
        super().__init__(context, address=endpoint.broker_host, client_id=client_id, delays=delays)
        self._endpoint = endpoint
        self._max_packet_bytes = connection.UNLIMITED_BYTES

    @property
    def max_event_bytes(self) -> int:
        """The largest event that should be sent: what is common, or less where the broker said so."""
        return min(resync.EVENT_MAX_BYTES, self._max_packet_bytes)

    def problem_with(self, parts: stored_event.StoredParts) -> str:
        """Return why the broker, with the limits of its last connection, would reject a resource."""
        return broker_limits.problem(parts, max_packet_bytes=self._max_packet_bytes)

    async def send(self, outgoing: event.CloudEvent, address: port.Address) -> port.SendResult:
        """Publish one event; returns when the broker has acknowledged it."""
        if self._client is None:
            return port.SendResult(port.Outcome.OFFLINE, "the cloudevents client is not ready")
        try:
            topic = mqtt_topics.source_events(
                self._endpoint.topics, source=self._context.source_id, consumer=address.consumer
            )
            message = binding.encode(outgoing)
            has_listener = await self._client.publish(topic, message, qos=self._endpoint.publish_qos)
        except (errors.WireError, connection.MessageTooLarge) as error:
            return port.SendResult(port.Outcome.NEVER, str(error))
        except transport.PublishRejected as error:
            return port.SendResult(port.Outcome.REJECTED, str(error))
        except transport.Disconnected as error:
            return port.SendResult(port.Outcome.OFFLINE, str(error))
        self._context.metrics.event_sent(EventLabels.of(outgoing))
        return port.SENT if has_listener else port.SendResult(port.Outcome.NO_SUBSCRIBER)

    def _connect(self, on_lost: Callable[[object], None]) -> AbstractAsyncContextManager[connection.MqttClient]:
        return connection.connect(self._endpoint, client_id=self._client_id, on_messages_lost=on_lost)

    async def _subscribe(self, client: connection.MqttClient) -> None:
        patterns = self._endpoint.topics
        topics = [patterns.agent_events, *([patterns.agent_broadcast] if patterns.agent_broadcast else [])]
        self._journal.info(BrokerPhrase.MQTT_CONNECTED, {LogKey.BROKER_HOST: self._endpoint.broker_host})
        await client.subscribe(topics, qos=self._endpoint.subscribe_qos)
        for topic in topics:
            self._journal.info(
                BrokerPhrase.MQTT_SUBSCRIBED, {LogKey.TOPIC: topic, LogKey.QOS: self._endpoint.subscribe_qos}
            )
        self._max_packet_bytes = client.maximum_packet_bytes

    def _messages(self, client: connection.MqttClient) -> AsyncIterator[connection.Incoming]:
        return client.messages()

    def _decode(self, incoming: connection.Incoming) -> event.CloudEvent:
        message = incoming.message
        received = binding.decode(message.content_type, properties=message.properties, payload=message.payload)
        self._check_topic(incoming.topic, received)
        return received

    def _check_topic(self, topic: str, received: event.CloudEvent) -> None:
        consumer = received.text(event.CLUSTER_NAME)
        event.check_name(consumer, label=event.CLUSTER_NAME)
        if not mqtt_topics.may_publish_for(self._endpoint.topics, topic, consumer=consumer):
            raise errors.MalformedMessage(f"an event about cluster {consumer} must not arrive on this topic")
