"""Serve the CloudEventService over gRPC: decode requests, pass events to a service, write its messages to streams.

The module handles listeners, limits, status codes, metadata and streams; the service interprets the events. Messages to
subscribers are passed in serialised form, so that one status event is encoded once for all streams.

A client is authenticated by its certificate and metadata before the message of its call is read. Both methods are
therefore registered as methods that read a stream: for those the library does not read a message ahead. On the wire
there is no difference.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import grpc

from maestropy.transport import peer_identity, peer_limits
from maestropy.transport.grpc import check_calls, requests
from maestropy.transport.grpc.limits import MAX_METADATA_BYTES, GrpcLimits
from maestropy.transport.grpc.status import CallRejected, StatusCode
from maestropy.wire import errors
from maestropy.wire.events import event, grpc_binding

Method = Literal["Publish", "Subscribe"]
Metadata = Sequence[tuple[str, str]]
"""What a response carries besides its message."""

_METADATA_OVERHEAD = 32
"""What HTTP/2 adds to the size of each field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An open subscription: its ID is sent as initial metadata, then its messages."""

    id: str
    messages: AsyncIterator[Sequence[bytes]]


class CloudEventService(Protocol):
    """The service behind one port."""

    async def authenticate(self, peer: peer_identity.Peer) -> peer_identity.PeerIdentity:
        """Return the identity of the peer before its message is read; raise `CallRejected` when there is none."""

    async def publish(self, received: event.CloudEvent, peer: peer_identity.Peer) -> Metadata | None:
        """Handle one event; return when it is stored, raise `CallRejected` when it is rejected."""

    async def malformed(self, problem: errors.WireError, peer: peer_identity.Peer) -> CallRejected:
        """Log a request that cannot be decoded, and return its rejection."""

    def subscribe(
        self, subscription: grpc_binding.Subscription, peer: peer_identity.Peer
    ) -> AbstractAsyncContextManager[Stream]:
        """Open a subscription that ends with the context."""


class CallObserver(Protocol):
    """Metrics and error log of calls."""

    def called(self, method: Method, source: str) -> None:
        """Count a call that has started."""

    def finished(self, method: Method, source: str, *, code: str, seconds: float) -> None:
        """Observe a call that has ended."""

    def sent(self, method: Method, source: str, *, count: int) -> None:
        """Count messages that were sent to the caller."""

    def crashed(self, method: str, error: Exception) -> None:
        """Log an unexpected error in a call."""


class GrpcListener:
    """One gRPC port with one service behind it."""

    def __init__(
        self,
        service: CloudEventService,
        *,
        limits: GrpcLimits,
        observer: CallObserver,
        monotonic: Callable[[], float],
        authenticating: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
    ) -> None:
        self._service = service
        self._authenticating = authenticating
        self._limits = limits
        self._observer = observer
        self._monotonic = monotonic
        self._subscriptions = peer_limits.OpenLimit(
            total=limits.max_subscriptions, per_peer=limits.max_subscriptions_per_client
        )
        self._server = grpc.aio.server(options=limits.options())
        handlers = {
            "Publish": grpc.stream_unary_rpc_method_handler(self._publish),
            "Subscribe": grpc.stream_stream_rpc_method_handler(self._subscribe),
        }
        methods = grpc.method_handlers_generic_handler(grpc_binding.SERVICE, handlers)
        self._server.add_generic_rpc_handlers((_BoundedMetadata(methods),))

    def bind(self, address: str, *, credentials: grpc.ServerCredentials | None) -> int:
        """Bind `host:port` and return the port; raise OSError when the address is in use."""
        try:
            if credentials is None:
                port = self._server.add_insecure_port(address)
            else:
                port = self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}: {error}") from error
        if port == 0:
            raise OSError(f"cannot listen on {address}: the address is in use or does not belong to this host")
        return int(port)

    async def start(self) -> None:
        """Start to serve calls."""
        await self._server.start()

    async def stop(self, *, grace_seconds: float) -> None:
        """Reject new calls at once, let running ones finish for `grace_seconds`, then cancel them."""
        await self._server.stop(grace_seconds)

    async def _publish(self, _: object, context: Any) -> bytes:
        started = self._monotonic()
        source, code = "", "OK"
        try:
            peer = await self._authenticate("Publish", context)
            try:
                received = grpc_binding.decode_publish(await requests.read(context, self._limits))
            except errors.WireError as problem:
                self._observer.called("Publish", source)
                raise await self._service.malformed(problem, peer) from problem
            source = received.source
            self._observer.called("Publish", source)
            metadata = await self._service.publish(received, peer)
            if metadata:
                context.set_trailing_metadata(metadata)
        except CallRejected as rejection:
            code = rejection.code.name
            _end(context, rejection.code, str(rejection))
        except Exception as error:  # noqa: BLE001 - a bug must end one call, not the process
            code = StatusCode.INTERNAL.name
            self._observer.crashed("Publish", error)
            _end(context, StatusCode.INTERNAL, "internal error; the server's log has the details")
        finally:
            self._observer.finished("Publish", source, code=code, seconds=self._monotonic() - started)
        return b""

    async def _authenticate(self, method: Method, context: Any) -> peer_identity.Peer:
        peer = peer_identity.read_peer(
            context.auth_context(), metadata=context.invocation_metadata() or (), address=context.peer()
        )
        try:
            with self._authenticating(context.peer()):
                return replace(peer, identity=await self._service.authenticate(peer))
        except CallRejected:
            self._observer.called(method, "")  # the source of the call is not known
            raise

    async def _subscribe(self, _: object, context: Any) -> None:
        started = self._monotonic()
        source, code = "", "OK"
        try:
            peer = await self._authenticate("Subscribe", context)
            with self._subscriptions.held(_client(peer)):
                try:
                    request = await requests.read(context, self._limits)
                    subscription = grpc_binding.decode_subscription(request)
                except errors.WireError as problem:
                    raise await self._service.malformed(problem, peer) from problem
                source = subscription.source
                self._observer.called("Subscribe", source)
                await self._stream(subscription, peer, context)
        except peer_limits.TooMany as limit:
            code = StatusCode.RESOURCE_EXHAUSTED.name
            _end(context, StatusCode.RESOURCE_EXHAUSTED, f"{limit}; close some, or raise --grpc-max-subscriptions")
        except CallRejected as rejection:
            code = rejection.code.name
            _end(context, rejection.code, str(rejection))
        except Exception as error:  # noqa: BLE001 - a bug must end one stream, not the process
            code = StatusCode.INTERNAL.name
            self._observer.crashed("Subscribe", error)
            _end(context, StatusCode.INTERNAL, "internal error; the server's log has the details")
        finally:
            self._observer.finished("Subscribe", source, code=code, seconds=self._monotonic() - started)

    async def _stream(self, subscription: grpc_binding.Subscription, peer: peer_identity.Peer, context: Any) -> None:
        async with self._service.subscribe(subscription, peer) as stream:
            await context.send_initial_metadata(((check_calls.SUBSCRIPTION_ID, stream.id),))
            async for messages in stream.messages:
                for message in messages:
                    await context.write(message)
                self._observer.sent("Subscribe", subscription.source, count=len(messages))


class _BoundedMetadata(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # it takes none at run time
    """Rejects calls whose metadata exceed the limit of the library, which enforces it late."""

    def __init__(self, methods: Any) -> None:
        self._methods = methods

    def service(self, details: Any) -> Any:
        """Return the handler of a call, which reads the metadata once more; that of a rejected call does not."""
        metadata = details.invocation_metadata or ()
        if sum(len(name) + len(value) + _METADATA_OVERHEAD for name, value in metadata) <= MAX_METADATA_BYTES:
            return self._methods.service(details)
        return grpc.stream_unary_rpc_method_handler(_reject_metadata)


async def _reject_metadata(_: object, context: Any) -> bytes:
    _end(context, StatusCode.RESOURCE_EXHAUSTED, f"the metadata of the call exceed {MAX_METADATA_BYTES} bytes")
    return b""


def _client(peer: peer_identity.Peer) -> str:
    """Return the user of the peer, or its address if it has none."""
    user = peer.identity.user if peer.identity else ""
    return f"user:{user}" if user else peer.address


def _end(context: Any, code: StatusCode, text: str) -> None:
    """End a call with a status other than OK.

    `context.abort` is not used: it leaves a reference cycle that keeps the request in memory until the garbage
    collector runs, and a few rejected requests of 50 MB exceed the memory limit of a pod.
    """
    context.set_code(code.value)
    context.set_details(text)
