"""Send events to the agents that have subscribed to this instance over gRPC.

The events go into the mailboxes of the subscriptions, and `api.grpc.subscriptions` writes them to the streams. An agent
that is connected to another instance is not reached from here.
"""

from collections.abc import Collection

from maestropy.server.brokers import port
from maestropy.server.brokers.subscribers import Subscriber, Subscribers
from maestropy.wire import errors, resync
from maestropy.wire.events import event, grpc_binding, stored_event

_CAPABILITIES = port.Capabilities(
    reaches_every_consumer=False,
    reports_subscriptions=True,
    needs_claims=False,
    waits_for_acknowledgement=False,
    agents_get_errors=True,
)


class GrpcStreams:
    """The broker of agents that connect to the server itself."""

    capabilities = _CAPABILITIES
    max_event_bytes = resync.EVENT_MAX_BYTES

    def __init__(self, subscribers: Subscribers) -> None:
        self._subscribers = subscribers

    @property
    def is_online(self) -> bool:
        """Whether an agent is connected."""
        return bool(self._subscribers.topics())

    async def wait_online(self) -> None:
        """Return at once: there is no connection to wait for."""

    def consumers(self) -> Collection[str]:
        """Return the consumers whose agents are connected here."""
        return self._subscribers.topics()

    def reaches(self, consumer: str) -> bool:
        """Return whether an agent of `consumer` is connected here."""
        return consumer in self._subscribers

    def has_room(self, consumer: str) -> bool:
        """Return whether an agent of `consumer` is connected and reads."""
        return self._subscribers.has_room(consumer)

    async def wait_for_room(self, consumer: str) -> None:
        """Wait until an agent of `consumer` reads, or all have gone."""
        await self._subscribers.wait_for_room(consumer)

    def problem_with(self, parts: stored_event.StoredParts) -> str:
        """Return nothing: the limits of gRPC were checked when the source sent the resource."""
        del parts
        return ""

    async def send(self, outgoing: event.CloudEvent, address: port.Address) -> port.SendResult:
        """Queue an event for every agent of the consumer; an agent whose mailbox overflows is disconnected."""
        receivers = self._receivers(address)
        if not receivers:
            return port.SendResult(port.Outcome.OFFLINE, "no agent of this consumer is connected to this instance")
        try:
            message = grpc_binding.encode_event(outgoing)
        except errors.WireError as error:
            return port.SendResult(port.Outcome.NEVER, str(error))
        for subscriber in receivers:
            subscriber.send(address.key, message)
        return port.SENT

    def _receivers(self, address: port.Address) -> Collection[Subscriber]:
        subscribers = self._subscribers.of(address.consumer)
        if not address.subscription_id:
            return subscribers
        return [subscriber for subscriber in subscribers if subscriber.id == address.subscription_id]
