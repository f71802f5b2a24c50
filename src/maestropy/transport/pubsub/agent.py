"""Connect an agent to the server through Google Pub/Sub.

Status updates go to the topic of agent events, spec resync requests to that of broadcasts, which every server receives.
Requests of servers reach every agent, so events about other clusters are dropped here. The subscriptions keep what
arrives while the agent is away, and Pub/Sub accepts events although no server runs.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import BrokerPhrase
from maestropy.transport import port, resync_marker
from maestropy.transport.pubsub import connection
from maestropy.transport.pubsub.endpoint import PubsubEndpoint
from maestropy.wire import errors, resync
from maestropy.wire.events import event
from maestropy.wire.events import pubsub_binding as binding

# Pub/Sub keeps no order: specs of a resync may follow its end, normally within a fraction of a second.
_SETTLE_SECONDS = 2.0
_REQUEST_MAX_BYTES = binding.MESSAGE_MAX_BYTES - resync.ENVELOPE_BYTES


class PubsubTransport:
    """Connects to Pub/Sub and receives the spec events of one consumer."""

    def __init__(
        self, endpoint: PubsubEndpoint, *, consumer: str, client_id: str, on_problem: Callable[[str], None]
    ) -> None:
        self._endpoint = endpoint
        self._consumer = consumer
        self._client_id = client_id
        self._on_problem = on_problem

    @property
    def address(self) -> str:
        """Nothing, as for Go agents: the names of AppliedManifestWorks are derived from it."""
        return ""

    @property
    def subscribed_records(self) -> Sequence[port.LogRecord]:
        """The record that is logged when the subscriptions can be received from."""
        return [(BrokerPhrase.PUBSUB_SUBSCRIBED, {LogKey.BROKER_HOST: self.address})]

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[port.AgentConnection]:
        """Open a connection; credentials are read again for each."""
        async with connection.connect(self._endpoint, client_id=self._client_id) as client:
            yield _PubsubConnection(client, self._endpoint, consumer=self._consumer, on_problem=self._on_problem)


class _PubsubConnection:
    def __init__(
        self,
        client: connection.PubsubClient,
        endpoint: PubsubEndpoint,
        *,
        consumer: str,
        on_problem: Callable[[str], None],
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._consumer = consumer
        self._on_problem = on_problem
        self._marker = resync_marker.ResyncMarker(settle_seconds=_SETTLE_SECONDS)

    async def events(self) -> AsyncIterator[event.CloudEvent]:
        async for incoming in self._client.messages():
            try:
                received = binding.decode(incoming.message)
            except errors.WireError as error:
                self._on_problem(f"a message of {incoming.topic} is ignored: {error}")
            else:
                if received.optional_text(event.CLUSTER_NAME) == self._consumer:
                    self._marker.receive(received)
                    yield received
            incoming.acknowledge()

    async def publish(self, sent: event.CloudEvent) -> None:
        if sent.type != event.SPEC_RESYNC_REQUEST:
            await self._send(sent)
            return
        request = self._marker.mark(sent)
        is_large = len(request.data) > _REQUEST_MAX_BYTES
        for part in resync_marker.parts(request, max_bytes=_REQUEST_MAX_BYTES) if is_large else (request,):
            await self._send(part)

    async def is_resync_answered(self, *, within: float) -> bool:
        return await self._marker.is_answered(within=within)

    async def _send(self, sent: event.CloudEvent) -> None:
        topics = self._endpoint.topics
        try:
            topic = topics.broadcast if binding.is_broadcast(sent) else topics.events
            message = binding.encode(sent)
        except errors.WireError as error:
            raise port.PublishRejected(str(error)) from error
        await self._client.publish(topic, message)
