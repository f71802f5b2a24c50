"""Publish and subscribe to events over gRPC.

A client is one connection with its credentials. It does not reconnect: a broken stream raises an error, and the owner
of the client decides when to connect again, because only the owner knows what to resync then.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import grpc

from maestropy.transport.grpc import check_calls
from maestropy.transport.grpc.status import CallRejected, StatusCode
from maestropy.transport.tls.certificates import Certificates
from maestropy.untrusted import tokens
from maestropy.untrusted.errors import InputRejected
from maestropy.wire import positions
from maestropy.wire.events import event, grpc_binding


class BadCredentials(Exception):
    """A certificate, key or token file cannot be used; the text names the file."""


class StreamTimeout(Exception):
    """The server has sent neither an event nor a heartbeat for too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcEndpoint(Certificates):
    """The address of the service and the client's credentials; files are read again for every connection."""

    url: str
    """`host:port`."""
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    """Read again for every call, because tokens are rotated."""
    keepalive_seconds: float | None = None
    keepalive_timeout_seconds: float = 10.0
    keepalive_without_calls: bool = False
    """Whether to send keepalive pings while there is no call and no subscription."""
    heartbeat_timeout_seconds: float | None = None
    """Timeout of a subscription without events; the server sends a heartbeat every ten seconds. None: no timeout."""

    @property
    def is_secure(self) -> bool:
        """Whether the connection uses TLS."""
        return any((self.has_ca, self.has_client_cert, self.token, self.token_file))


class GrpcClient:
    """One connection to a CloudEventService."""

    def __init__(self, endpoint: GrpcEndpoint) -> None:
        self._endpoint = endpoint
        self._channel = _channel(endpoint)
        self._publish = self._channel.unary_unary(grpc_binding.PUBLISH_METHOD)
        self._subscribe = self._channel.unary_stream(grpc_binding.SUBSCRIBE_METHOD)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()

    async def publish(self, sent: event.CloudEvent, *, timeout_seconds: float = 30.0) -> str:
        """Send one event; return when the server has stored it, raise `CallRejected` when it has not.

        Returns the position of the write in the database; empty if the server does not tell it.
        """
        metadata = self._metadata()
        trace_parent = sent.optional_text(event.TRACE_PARENT)
        if trace_parent:
            # Also for servers that read only this, and for proxies.
            metadata += ((event.TRACE_PARENT, trace_parent),)
        call = self._publish(grpc_binding.encode_publish(sent), metadata=metadata, timeout=timeout_seconds)
        try:
            await call
            return _text_of(await call.trailing_metadata(), positions.METADATA)
        except grpc.aio.AioRpcError as error:
            raise _rejected(error) from _GrpcStatus(error.code().name)

    @asynccontextmanager
    async def subscribe(
        self, subscription: grpc_binding.Subscription
    ) -> AsyncIterator[AsyncIterator[event.CloudEvent]]:
        """Open a subscription; when the context is entered, the server has registered it."""
        async with self._subscribed(subscription) as call:
            yield self._events(call)

    @asynccontextmanager
    async def _subscribed(
        self, subscription: grpc_binding.Subscription, metadata: tuple[tuple[str, str], ...] = ()
    ) -> AsyncIterator[Any]:
        sent = (*self._metadata(), *metadata)
        call = self._subscribe(grpc_binding.encode_subscription(subscription), metadata=sent)
        try:
            try:
                # Older Go servers send their headers with the first heartbeat: this may take ten seconds.
                async with asyncio.timeout(self._endpoint.heartbeat_timeout_seconds):
                    await call.initial_metadata()
                # A failed call has empty metadata, too: only a call that is not done is a subscription.
                if call.done():
                    await self._raise_unless_ok(call)
            except grpc.aio.AioRpcError as error:
                raise _rejected(error) from _GrpcStatus(error.code().name)
            except TimeoutError as error:
                raise StreamTimeout(f"{self._endpoint.url} did not answer the subscription") from error
            yield call
        finally:
            call.cancel()

    async def check_agent(self, subscription: grpc_binding.Subscription) -> bool:
        """Ask whether the server accepts a subscription; return whether it has also checked the consumer.

        A server that does not know this question opens the subscription for a moment.
        """
        metadata = ((check_calls.METADATA, check_calls.AGENT),)
        async with self._subscribed(subscription, metadata) as call:
            answer = _text_of(await call.initial_metadata(), check_calls.SUBSCRIPTION_ID)
            return answer == check_calls.ACCEPTED

    async def _events(self, call: Any) -> AsyncIterator[event.CloudEvent]:
        while True:
            try:
                async with asyncio.timeout(self._endpoint.heartbeat_timeout_seconds):
                    message = await call.read()
            except TimeoutError as error:
                problem = f"stream timeout: no heartbeat received for {self._endpoint.heartbeat_timeout_seconds:g}s"
                raise StreamTimeout(problem) from error
            except grpc.aio.AioRpcError as error:
                raise _rejected(error) from _GrpcStatus(error.code().name)
            if message is grpc.aio.EOF:  # type: ignore[attr-defined]  # the stubs miss it
                await self._raise_unless_ok(call)
                return
            received = grpc_binding.decode_event(message)
            if received.type != event.HEARTBEAT:
                yield received

    async def _raise_unless_ok(self, call: Any) -> None:
        if await call.code() is not grpc.StatusCode.OK:
            raise CallRejected(StatusCode(await call.code()), str(await call.details()))

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        token = self._endpoint.token
        if self._endpoint.token_file is not None:
            try:
                token = tokens.read(self._endpoint.token_file)
            except InputRejected as error:
                raise BadCredentials(str(error)) from None
        return (("authorization", f"Bearer {token}"),) if token else ()


def _text_of(metadata: Any, name: str) -> str:
    return next((value for key, value in metadata or () if key == name and isinstance(value, str)), "")


def _channel(endpoint: GrpcEndpoint) -> Any:
    options: list[tuple[str, int]] = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        # Each client connects by itself: otherwise gRPC returns the failure of an older client of the same address.
        ("grpc.use_local_subchannel_pool", 1),
        # The owner of the client backs off, so the library should connect without much delay.
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.max_reconnect_backoff_ms", 5000),
    ]
    if endpoint.keepalive_seconds is not None:
        options += [
            ("grpc.keepalive_time_ms", round(endpoint.keepalive_seconds * 1000)),
            ("grpc.keepalive_timeout_ms", round(endpoint.keepalive_timeout_seconds * 1000)),
            ("grpc.keepalive_permit_without_calls", int(endpoint.keepalive_without_calls)),
        ]
    if not endpoint.is_secure:
        return grpc.aio.insecure_channel(endpoint.url, options=options)
    if endpoint.has_client_cert != endpoint.has_client_key:
        raise BadCredentials("a client certificate needs its key, and a key its certificate; set both")
    credentials = grpc.ssl_channel_credentials(
        root_certificates=_certificate_pem(endpoint.ca_data, endpoint.ca_file),
        private_key=_key_pem(endpoint.client_key_data, endpoint.client_key_file),
        certificate_chain=_certificate_pem(endpoint.client_cert_data, endpoint.client_cert_file),
    )
    return grpc.aio.secure_channel(endpoint.url, credentials, options=options)


def _certificate_pem(data: bytes | None, path: Path | None) -> bytes | None:
    """Return PEM certificates. gRPC takes any bytes, and fails at every connection without the name of the file."""
    pem = _pem(data, path)
    if pem is None:
        return None
    try:
        # Comments may have other characters, which OpenSSL does not take.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError) as error:
        raise BadCredentials(
            f"{path if not data else 'the certificate data'} holds no PEM certificate; "
            "give a file with a block BEGIN CERTIFICATE"
        ) from error
    return pem


def _key_pem(data: bytes | None, path: Path | None) -> bytes | None:
    pem = _pem(data, path)
    if pem is not None and b"PRIVATE KEY-----" not in pem:
        raise BadCredentials(
            f"{path if not data else 'the key data'} holds no PEM private key; "
            "give a file with a block BEGIN PRIVATE KEY"
        )
    return pem


def _pem(data: bytes | None, path: Path | None) -> bytes | None:
    if data:
        return data
    return _read(path) if path else None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadCredentials(f"cannot read {path}: {error.strerror}") from error


class _GrpcStatus(Exception):
    """The status code of a failed call, in one line: logs show causes, and gRPC's own error has six lines."""

    def __str__(self) -> str:
        return f"gRPC status {super().__str__()}"


def _rejected(error: grpc.aio.AioRpcError) -> CallRejected:
    return CallRejected(StatusCode(error.code()), error.details() or error.code().name)
