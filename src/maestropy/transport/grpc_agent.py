"""The agent's way to the server's gRPC broker."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from maestropy.journal.fields import Broker
from maestropy.transport import base
from maestropy.transport.grpc_client import BadCredentials, Endpoint, GrpcClient, StreamTimeout
from maestropy.transport.status import Code, Refused
from maestropy.wire import envelope, errors, event

# The server says no for good.
_FINAL = frozenset((Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION, Code.PERMISSION_DENIED, Code.UNIMPLEMENTED))


# How all gRPC libraries, and our server, say that it never will.
_TOO_LARGE = "received message larger than max"
# Nobody heard it, or not as whom we are.
_LOST = frozenset((Code.UNAVAILABLE, Code.CANCELLED, Code.DEADLINE_EXCEEDED, Code.UNAUTHENTICATED))


class GrpcMedium:
    """Subscribes to one consumer's specs at one address."""

    def __init__(self, endpoint: Endpoint, *, consumer: str) -> None:
        self._endpoint = endpoint
        self._consumer = consumer

    @property
    def address(self) -> str:
        """The address as it was configured."""
        return self._endpoint.url

    @property
    def subscribed(self) -> str:
        """The words of the Go agent."""
        return Broker.GRPC_SUBSCRIBED

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[base.Connection]:
        """Open a connection; certificates and tokens are read anew for each."""
        wanted = envelope.Subscription(cluster_name=self._consumer, data_type=event.MANIFEST_BUNDLES)
        try:
            async with GrpcClient(self._endpoint) as client, client.subscribe(wanted) as events:
                yield _GrpcConnection(client, events)
        except (Refused, StreamTimeout, BadCredentials) as error:
            raise base.Disconnected(str(error)) from error


class _GrpcConnection:
    def __init__(self, client: GrpcClient, events: AsyncIterator[event.Event]) -> None:
        self._client = client
        self._events = events

    async def events(self) -> AsyncIterator[event.Event]:
        try:
            async for received in self._events:
                yield received
        except (Refused, StreamTimeout) as error:
            raise base.Disconnected(str(error)) from error
        except errors.WireError as error:
            raise base.Disconnected(f"the server sent what is not an event: {error}") from error
        raise base.Disconnected("the server ended the subscription")

    async def publish(self, sent: event.Event) -> None:
        try:
            await self._client.publish(sent)
        except Refused as error:
            if error.code in _FINAL or _TOO_LARGE in str(error).lower():
                raise base.Rejected(str(error)) from error
            if error.code in _LOST:
                raise base.Disconnected(str(error)) from error
            # Too much at the moment, or a fault of its own: no reason to end the subscription.
            raise base.Busy(str(error)) from error
        except BadCredentials as error:
            raise base.Disconnected(str(error)) from error

    async def is_answered(self, *, within: float) -> bool:  # noqa: ARG002 - nobody has to wait here
        # The server answers a resync before it returns from taking it.
        return True
