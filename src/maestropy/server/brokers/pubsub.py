"""Send events to agents through Google Pub/Sub, and receive theirs.

One topic carries the specs of all consumers, and each agent has a subscription that filters by consumer. All instances
share the subscriptions of the server, so a message reaches one of them. `connected` keeps the connection. A topic that
is missing or denied does not end it: statuses still arrive, and events are sent again later.
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
from maestropy.transport.pubsub import connection
from maestropy.transport.pubsub.endpoint import PubsubEndpoint
from maestropy.wire import errors, resync
from maestropy.wire.events import event, stored_event
from maestropy.wire.events import pubsub_binding as binding


class PubsubBroker(ConnectedBroker[connection.PubsubClient, connection.Incoming]):
    """The broker of agents that connect to Pub/Sub."""

    kind = "pubsub"
    max_event_bytes = resync.EVENT_MAX_BYTES

    def __init__(
        self, context: Context, endpoint: PubsubEndpoint, *, client_id: str, delays: Callable[[], Iterator[float]]
    ) -> None:
        super().__init__(context, address=endpoint.target, client_id=client_id, delays=delays)
        self._endpoint = endpoint

    def problem_with(self, parts: stored_event.StoredParts) -> str:
        """Return why Pub/Sub would reject a resource."""
        return broker_limits.pubsub_problem(parts)

    async def send(self, outgoing: event.CloudEvent, address: port.Address) -> port.SendResult:
        """Publish one event; returns when Pub/Sub has stored it."""
        del address  # the event names its consumer, and subscriptions filter by it
        if self._client is None:
            return port.SendResult(port.Outcome.OFFLINE, "the cloudevents client is not ready")
        topics = self._endpoint.topics
        try:
            topic = topics.broadcast if binding.is_broadcast(outgoing) else topics.events
            await self._client.publish(topic, binding.encode(broker_limits.fitting_deletion(outgoing)))
        except (errors.WireError, transport.PublishRejected) as error:
            return port.SendResult(port.Outcome.NEVER, str(error))
        except transport.Misconfigured as error:
            self.problem = str(error)
            return port.SendResult(port.Outcome.REJECTED, str(error))
        except transport.Disconnected as error:
            return port.SendResult(port.Outcome.OFFLINE, str(error))
        self.problem = ""
        self._context.metrics.event_sent(EventLabels.of(outgoing))
        return port.SENT

    def _connect(self, on_lost: Callable[[object], None]) -> AbstractAsyncContextManager[connection.PubsubClient]:
        del on_lost  # a subscription drops nothing
        return connection.connect(self._endpoint, client_id=self._client_id)

    async def _subscribe(self, client: connection.PubsubClient) -> None:
        del client  # it is connected when the subscriptions can be received from
        for subscription in (self._endpoint.subscriptions.events, self._endpoint.subscriptions.broadcast):
            self._journal.info(BrokerPhrase.PUBSUB_SUBSCRIBED, {LogKey.TOPIC: subscription})

    def _messages(self, client: connection.PubsubClient) -> AsyncIterator[connection.Incoming]:
        return client.messages()

    def _decode(self, incoming: connection.Incoming) -> event.CloudEvent | None:
        received = binding.decode(incoming.message)
        event.check_name(received.text(event.CLUSTER_NAME), label=event.CLUSTER_NAME)
        source = received.optional_text(event.ORIGINAL_SOURCE)
        # A subscription without a filter also delivers the statuses of other sources.
        return None if source and source != self._context.source_id else received
