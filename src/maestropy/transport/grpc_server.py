"""Serve the CloudEvents service over gRPC: bytes in, events to a `Service`, bytes out.

This module owns what gRPC knows (listeners, limits, status codes, metadata, stream life); what an event means is the
service's business. Messages to subscribers arrive here serialised, so one status costs one encoding however many
streams it goes to.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import grpc

from maestropy.transport import identity
from maestropy.transport.status import Code, Refused
from maestropy.wire import envelope, errors, event

SUBSCRIPTION_ID = "subscription-id"
_MAX_PENDING = 20_000

Method = Literal["Publish", "Subscribe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An open subscription: its id goes out first, then its messages."""

    id: str
    messages: AsyncIterator[Sequence[bytes]]


class Service(Protocol):
    """What listens behind one port."""

    async def publish(self, received: event.Event, peer: identity.Peer) -> None:
        """Take one event; return when it is safe, raise `Refused` when it is not taken."""

    async def malformed(self, problem: errors.WireError, peer: identity.Peer) -> Refused:
        """Say how a request that could not even be read is refused."""

    def subscribe(self, wanted: envelope.Subscription, peer: identity.Peer) -> AbstractAsyncContextManager[Stream]:
        """Open a subscription that lasts as long as the context."""


class Observer(Protocol):
    """Who counts calls."""

    def called(self, method: Method, source: str) -> None:
        """A call came in."""

    def finished(self, method: Method, source: str, *, code: str, seconds: float) -> None:
        """A call ended."""

    def sent(self, method: Method, source: str, *, count: int) -> None:
        """Messages went out to the caller."""

    def crashed(self, method: str, error: Exception) -> None:
        """A bug of ours surfaced in a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one listener allows; the defaults are Maestro's."""

    max_receive_bytes: int = 4 * 2**20
    max_send_bytes: int = 2**31 - 1
    max_concurrent_streams: int = 2**31 - 1
    max_connection_age_seconds: float | None = None
    client_min_ping_seconds: float = 5.0
    server_ping_seconds: float = 30.0
    server_ping_timeout_seconds: float = 10.0
    permit_ping_without_stream: bool = False
    handshake_seconds: float = 120.0
    """How long a new connection may take until it speaks; one that never does is closed."""
    share_port: bool = False
    """Let other processes listen on the same port; off, so that a second server by mistake is an error."""

    def options(self) -> list[tuple[str, int]]:
        """Return these limits as options of the gRPC library."""
        options = [
            ("grpc.max_receive_message_length", _hard_limit(self.max_receive_bytes)),
            ("grpc.max_send_message_length", self.max_send_bytes),
            ("grpc.max_concurrent_streams", min(self.max_concurrent_streams, 2**31 - 1)),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", round(self.client_min_ping_seconds * 1000)),
            ("grpc.http2.max_ping_strikes", 2),
            ("grpc.keepalive_time_ms", round(self.server_ping_seconds * 1000)),
            ("grpc.keepalive_timeout_ms", round(self.server_ping_timeout_seconds * 1000)),
            ("grpc.keepalive_permit_without_calls", int(self.permit_ping_without_stream)),
            ("grpc.server_handshake_timeout_ms", round(self.handshake_seconds * 1000)),
            ("grpc.so_reuseport", int(self.share_port)),
            # Beyond these the library ends calls that we have not seen as CANCELLED, at random from the first on. Its
            # own 1000 and 3000 are less than a fleet that reconnects; what is too much, we refuse with a reason.
            ("grpc.server.max_pending_requests", _MAX_PENDING),
            ("grpc.server.max_pending_requests_hard_limit", 2 * _MAX_PENDING),
        ]
        if self.max_connection_age_seconds is not None:
            options.append(("grpc.max_connection_age_ms", round(self.max_connection_age_seconds * 1000)))
        return options


def _hard_limit(max_receive_bytes: int) -> int:
    """Let the library cut off only what is far too large.

    It refuses without telling us, and a refusal that leaves no trace in the log costs somebody a night; messages
    between the two limits are read, logged and refused by us.
    """
    return min(2**31 - 1, max(16 * max_receive_bytes, 64 * 2**20))


class Listener:
    """One gRPC port with one service behind it."""

    def __init__(
        self,
        service: Service,
        *,
        limits: Limits,
        observer: Observer,
        monotonic: Callable[[], float],
    ) -> None:
        self._service = service
        self._limits = limits
        self._observer = observer
        self._monotonic = monotonic
        self._server = grpc.aio.server(options=limits.options())
        handlers = {
            "Publish": grpc.unary_unary_rpc_method_handler(self._publish),
            "Subscribe": grpc.unary_stream_rpc_method_handler(self._subscribe),
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(envelope.SERVICE, handlers),))

    def bind(self, address: str, *, credentials: grpc.ServerCredentials | None) -> int:
        """Reserve `host:port` and return the port; raises OSError when somebody else has it."""
        try:
            if credentials is None:
                port = self._server.add_insecure_port(address)
            else:
                port = self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}: {error}") from error
        if port == 0:
            raise OSError(f"cannot listen on {address}: the address is in use or not ours")
        return int(port)

    async def start(self) -> None:
        """Begin to answer."""
        await self._server.start()

    async def stop(self, *, grace_seconds: float) -> None:
        """Refuse new calls at once, let running ones finish for a while, then cut them."""
        await self._server.stop(grace_seconds)

    async def _publish(self, request: bytes, context: Any) -> bytes:
        started = self._monotonic()
        source, code = "", "OK"
        try:
            peer = identity.read_peer(context.auth_context(), metadata=context.invocation_metadata() or ())
            try:
                received = self._decode(request)
            except errors.WireError as problem:
                self._observer.called("Publish", source)
                raise await self._service.malformed(problem, peer) from problem
            source = received.source
            self._observer.called("Publish", source)
            await self._service.publish(received, peer)
        except Refused as refusal:
            code = refusal.code.name
            _end(context, refusal.code, str(refusal))
        except Exception as error:  # noqa: BLE001 - a bug must end one call, not the process
            code = Code.INTERNAL.name
            self._observer.crashed("Publish", error)
            _end(context, Code.INTERNAL, "internal error; the server's log has the details")
        finally:
            self._observer.finished("Publish", source, code=code, seconds=self._monotonic() - started)
        return b""

    def _decode(self, request: bytes) -> event.Event:
        self._check_size(request)
        return envelope.decode_publish(request)

    def _check_size(self, request: bytes) -> None:
        if len(request) > self._limits.max_receive_bytes:
            raise TooLarge(size=len(request), limit=self._limits.max_receive_bytes)

    async def _subscribe(self, request: bytes, context: Any) -> None:
        started = self._monotonic()
        source, code = "", "OK"
        try:
            peer = identity.read_peer(context.auth_context(), metadata=context.invocation_metadata() or ())
            try:
                self._check_size(request)
                wanted = envelope.decode_subscription(request)
            except errors.WireError as problem:
                raise await self._service.malformed(problem, peer) from problem
            source = wanted.source
            self._observer.called("Subscribe", source)
            async with self._service.subscribe(wanted, peer) as stream:
                await context.send_initial_metadata(((SUBSCRIPTION_ID, stream.id),))
                async for messages in stream.messages:
                    for message in messages:
                        await context.write(message)
                    self._observer.sent("Subscribe", source, count=len(messages))
        except Refused as refusal:
            code = refusal.code.name
            _end(context, refusal.code, str(refusal))
        except Exception as error:  # noqa: BLE001 - a bug must end one stream, not the process
            code = Code.INTERNAL.name
            self._observer.crashed("Subscribe", error)
            _end(context, Code.INTERNAL, "internal error; the server's log has the details")
        finally:
            self._observer.finished("Subscribe", source, code=code, seconds=self._monotonic() - started)


def _end(context: Any, code: Code, text: str) -> None:
    """End a call with a status other than OK.

    Not by `context.abort`: it leaves a cycle behind that keeps the request in memory until the garbage collector
    happens to come by, and a few refused requests of 50 MB are enough to end a pod.
    """
    context.set_code(code.value)
    context.set_details(text)


class TooLarge(errors.WireError):
    """A message beyond the configured size."""

    def __init__(self, *, size: int, limit: int) -> None:
        super().__init__(
            f"grpc: received message larger than max ({size} vs. {limit}); "
            "send smaller bundles or raise --grpc-max-receive-message-size"
        )
