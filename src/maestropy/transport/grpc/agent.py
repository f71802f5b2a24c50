"""Connect an agent to the gRPC broker of the server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import BrokerPhrase
from maestropy.transport import port
from maestropy.transport.grpc.client import BadCredentials, GrpcClient, GrpcEndpoint, StreamTimeout
from maestropy.transport.grpc.status import CallRejected, StatusCode
from maestropy.wire import errors, resync
from maestropy.wire.events import event, grpc_binding

# The server will never accept the event.
_FINAL = frozenset((StatusCode.INVALID_ARGUMENT, StatusCode.PERMISSION_DENIED, StatusCode.UNIMPLEMENTED))
# All gRPC libraries, and our server, use this text for a message that is too large.
_TOO_LARGE = "received message larger than max"
# The event did not reach the server, or the server did not authenticate the agent.
_LOST = frozenset(
    (StatusCode.UNAVAILABLE, StatusCode.CANCELLED, StatusCode.DEADLINE_EXCEEDED, StatusCode.UNAUTHENTICATED)
)


class GrpcTransport:
    """Connects to one server and subscribes to the spec events of one consumer."""

    def __init__(self, endpoint: GrpcEndpoint, *, consumer: str) -> None:
        self._endpoint = endpoint
        self._consumer = consumer

    @property
    def address(self) -> str:
        """The address as it was configured."""
        return self._endpoint.url

    @property
    def subscribed_records(self) -> Sequence[port.LogRecord]:
        """The record of the Go agent."""
        return [(BrokerPhrase.GRPC_SUBSCRIBED, {LogKey.BROKER_HOST: self.address})]

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[port.AgentConnection]:
        """Open a connection; certificates and tokens are read again for each."""
        subscription = grpc_binding.Subscription(cluster_name=self._consumer, data_type=event.MANIFEST_BUNDLES)
        try:
            async with GrpcClient(self._endpoint) as client, client.subscribe(subscription) as events:
                yield _GrpcConnection(client, events)
        except (CallRejected, StreamTimeout, BadCredentials) as error:
            raise port.Disconnected(str(error)) from error


class _GrpcConnection:
    def __init__(self, client: GrpcClient, events: AsyncIterator[event.CloudEvent]) -> None:
        self._client = client
        self._events = events

    async def events(self) -> AsyncIterator[event.CloudEvent]:
        try:
            async for received in self._events:
                yield received
        except (CallRejected, StreamTimeout) as error:
            raise port.Disconnected(str(error)) from error
        except errors.WireError as error:
            raise port.Disconnected(f"the server sent a message that is not an event: {error}") from error
        raise port.Disconnected("the server ended the subscription")

    async def publish(self, sent: event.CloudEvent) -> None:
        if sent.type == event.SPEC_RESYNC_REQUEST:
            # The orphan deletion of this work ends the answer, and tells the agent which database gave it.
            sent = replace(sent, data=resync.with_marker(sent.data, sent.id))
        try:
            await self._client.publish(sent)
        except CallRejected as error:
            if error.code in _FINAL or _TOO_LARGE in str(error).lower():
                raise port.PublishRejected(str(error)) from error
            if error.code in _LOST:
                raise port.Disconnected(str(error)) from error
            if error.code == StatusCode.FAILED_PRECONDITION:
                raise port.NotAccepted(f"FailedPrecondition: {error}") from error
            # The server is overloaded or has an internal error: no reason to end the subscription.
            raise port.Busy(str(error)) from error
        except BadCredentials as error:
            raise port.Disconnected(str(error)) from error

    async def is_resync_answered(self, *, within: float) -> bool:  # noqa: ARG002 - there is nothing to wait for
        # The server sends the resync response before it completes the publish call.
        return True
