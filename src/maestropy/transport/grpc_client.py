"""Speak to the CloudEvents service: publish events, receive a subscription's events.

A client is one connection with its credentials. It does not reconnect by itself: a stream that breaks raises, and its
owner decides when to try again, because only the owner knows what to resync then.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import grpc

from maestropy.transport.certificates import Certificates
from maestropy.transport.status import Code, Refused
from maestropy.wire import envelope, event


class BadCredentials(Exception):
    """The files that should prove who we are cannot be used; the text names the file."""


class StreamTimeout(Exception):
    """No event and no heartbeat came for too long: the other end is as good as gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(Certificates):
    """Where the service is and how to prove who we are; files are read again for every new connection."""

    url: str
    """`host:port`."""
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    """Read again for every call: tokens rotate."""
    keepalive_seconds: float | None = None
    keepalive_timeout_seconds: float = 10.0
    keepalive_without_calls: bool = False
    """Whether to ping while no call and no subscription is under way."""
    silence_seconds: float | None = None
    """How long a subscription may be silent; the server sends a heartbeat every ten seconds. None: for ever."""

    @property
    def is_secure(self) -> bool:
        """Whether TLS is spoken."""
        return any((self.has_ca, self.has_client_cert, self.token, self.token_file))


class GrpcClient:
    """One connection to a CloudEvents service."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._channel = _channel(endpoint)
        self._publish = self._channel.unary_unary(envelope.PUBLISH_METHOD)
        self._subscribe = self._channel.unary_stream(envelope.SUBSCRIBE_METHOD)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection."""
        await self._channel.close()

    async def publish(self, sent: event.Event, *, timeout_seconds: float = 30.0) -> None:
        """Send one event; returns when the server has it safe, raises `Refused` when it was not taken."""
        try:
            await self._publish(envelope.encode_publish(sent), metadata=self._metadata(), timeout=timeout_seconds)
        except grpc.aio.AioRpcError as error:
            raise _refused(error) from error

    @asynccontextmanager
    async def subscribe(self, wanted: envelope.Subscription) -> AsyncIterator[AsyncIterator[event.Event]]:
        """Open a subscription; when the context is entered, the server has registered it."""
        call = self._subscribe(envelope.encode_subscription(wanted), metadata=self._metadata())
        try:
            try:
                # Older Go servers send their headers with the first heartbeat only: this may take ten seconds.
                async with asyncio.timeout(self._endpoint.silence_seconds):
                    await call.initial_metadata()
                # A call that failed has metadata too, and empty ones: only a call that goes on is a subscription.
                if call.done():
                    await self._raise_unless_ok(call)
            except grpc.aio.AioRpcError as error:
                raise _refused(error) from error
            except TimeoutError as error:
                raise StreamTimeout(f"{self._endpoint.url} did not answer the subscription") from error
            yield self._events(call)
        finally:
            call.cancel()

    async def _events(self, call: Any) -> AsyncIterator[event.Event]:
        while True:
            try:
                async with asyncio.timeout(self._endpoint.silence_seconds):
                    message = await call.read()
            except TimeoutError as error:
                silence = f"stream timeout: no heartbeat received for {self._endpoint.silence_seconds:g}s"
                raise StreamTimeout(silence) from error
            except grpc.aio.AioRpcError as error:
                raise _refused(error) from error
            if message is grpc.aio.EOF:  # type: ignore[attr-defined]  # the stubs miss it
                await self._raise_unless_ok(call)
                return
            received = envelope.decode_event(message)
            if received.type != event.HEARTBEAT:
                yield received

    async def _raise_unless_ok(self, call: Any) -> None:
        if await call.code() is not grpc.StatusCode.OK:
            raise Refused(Code(await call.code()), str(await call.details()))

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        token = self._endpoint.token
        if self._endpoint.token_file is not None:
            token = _read(self._endpoint.token_file).decode().strip()
        return (("authorization", f"Bearer {token}"),) if token else ()


def _channel(endpoint: Endpoint) -> Any:
    options: list[tuple[str, int]] = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        # A new client is a new attempt: it must not be answered with the failure of an older one to the same address.
        ("grpc.use_local_subchannel_pool", 1),
        # The owner of the client backs off; a connection that is being tried should be tried now.
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
        raise BadCredentials("a client certificate needs its key and a key its certificate; give both")
    credentials = grpc.ssl_channel_credentials(
        root_certificates=_pem(endpoint.ca_data, endpoint.ca_file),
        private_key=_pem(endpoint.client_key_data, endpoint.client_key_file),
        certificate_chain=_pem(endpoint.client_cert_data, endpoint.client_cert_file),
    )
    return grpc.aio.secure_channel(endpoint.url, credentials, options=options)


def _pem(data: bytes | None, path: Path | None) -> bytes | None:
    if data:
        return data
    return _read(path) if path else None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadCredentials(f"cannot read {path}: {error.strerror}") from error


def _refused(error: grpc.aio.AioRpcError) -> Refused:
    return Refused(Code(error.code()), error.details() or error.code().name)
