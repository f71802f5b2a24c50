"""One connection to Google Pub/Sub: publish, receive, extend leases, and acknowledge messages after they are handled.

A client does not reconnect: a failure ends it with `Disconnected`, and its owner decides when to connect again, because
only the owner knows what to resync then. The service ends every stream after some time; a stream that has worked is
opened again without a word, because the subscription keeps the messages. One that fails at once is a failure.

Received messages are bounded by number and bytes: nothing more is read until earlier ones are acknowledged. Messages
that are not acknowledged when the client ends are given back and delivered again, perhaps to another process.

Google's generated asyncio clients do the calls, their retries and their credentials; its threads are not used.
"""

import asyncio
import functools
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import google.auth
import grpc
from google.api_core import exceptions, retry
from google.auth import exceptions as auth_exceptions
from google.oauth2 import service_account
from google.pubsub_v1 import types
from google.pubsub_v1.services.publisher import PublisherAsyncClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcAsyncIOTransport
from google.pubsub_v1.services.subscriber import SubscriberAsyncClient
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcAsyncIOTransport

from maestropy.aio import tasks
from maestropy.transport import port
from maestropy.transport.pubsub.endpoint import PubsubEndpoint
from maestropy.wire.events import pubsub_binding

# A service that cannot be reached for this long is away; its owner then waits and connects again.
_CALL_SECONDS = 15.0
_CLOSE_SECONDS = 2.0
# An idle stream is kept open by empty requests, as Google's clients do.
_HEARTBEAT_SECONDS = 30.0
_STREAM_WORKS_SECONDS = 10.0
_IDS_AT_ONCE = 1000

_TRANSIENT = (
    exceptions.Aborted,
    exceptions.DeadlineExceeded,
    exceptions.InternalServerError,
    exceptions.ResourceExhausted,
    exceptions.ServiceUnavailable,
    exceptions.Unknown,
)
_RETRY = retry.AsyncRetry(
    retry.if_exception_type(*_TRANSIENT), initial=0.1, maximum=2.0, multiplier=2.0, timeout=_CALL_SECONDS
)
_PLUGIN_FAILED = "Getting metadata from plugin failed"
"""How gRPC words that no access token could be had."""
ERRORS = (exceptions.GoogleAPIError, auth_exceptions.GoogleAuthError, grpc.RpcError)
"""What a call raises; `translated` says what it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A received message; the service delivers it again unless `acknowledge` is called."""

    topic: str
    """The subscription it came from."""
    message: pubsub_binding.PubsubMessage
    acknowledge: Callable[[], None]
    refuse: Callable[[], None] = lambda: None
    """Lets the service deliver it again at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lease:
    subscription: str
    size: int
    until: float
    """When it is not extended any more."""


@asynccontextmanager
async def connect(endpoint: PubsubEndpoint, *, client_id: str) -> AsyncIterator["PubsubClient"]:
    """Connect and subscribe; raise `Misconfigured` when a subscription is missing or denied."""
    try:
        channel = await open_channel(endpoint)
    except (auth_exceptions.GoogleAuthError, OSError, ValueError) as error:
        raise _no_credentials(error) from error
    client = PubsubClient(channel, endpoint, client_id=client_id)
    owner = tasks.TaskOwner()
    try:
        await client.start(owner)
        yield client
    finally:
        client.fail(port.Disconnected("the connection was closed"))
        await owner.stop()
        await client.give_back()
        await channel.close()


class PubsubClient:
    """An open connection."""

    def __init__(self, channel: Any, endpoint: PubsubEndpoint, *, client_id: str) -> None:
        self._endpoint = endpoint
        self._client_id = client_id
        self._publisher = PublisherAsyncClient(transport=PublisherGrpcAsyncIOTransport(channel=channel))
        self._subscriber = SubscriberAsyncClient(transport=SubscriberGrpcAsyncIOTransport(channel=channel))
        self._queue: asyncio.Queue[Incoming | None] = asyncio.Queue()
        self._leases: dict[str, _Lease] = {}
        self._leased_bytes = 0
        self._room = asyncio.Event()
        self._room.set()
        self._handled: dict[str, list[str]] = defaultdict(list)
        self._refused: dict[str, _Lease] = {}
        self._has_handled = asyncio.Event()
        self._ended: asyncio.Future[port.Disconnected] = asyncio.get_running_loop().create_future()

    async def start(self, owner: tasks.TaskOwner) -> None:
        """Check the subscriptions, then receive in the background."""
        names = (self._endpoint.subscriptions.events, self._endpoint.subscriptions.broadcast)
        for name in names:  # one by one: the first call signs the token, which no two threads may do
            await self._check(name)
        for name in names * self._endpoint.receive.streams:
            owner.start(f"pull {name}", self._guarded(functools.partial(self._pull, name), name))
        owner.start("acknowledge", self._guarded(self._acknowledge, "acknowledgements"))
        owner.start("extend leases", self._guarded(self._extend, "acknowledgement deadlines"))

    async def publish(self, topic: str, message: pubsub_binding.PubsubMessage) -> None:
        """Publish one message; return when the service has stored it."""
        request = types.PublishRequest(
            topic=topic, messages=[types.PubsubMessage(attributes=dict(message.attributes), data=message.data)]
        )
        call = asyncio.ensure_future(self._publisher.publish(request, retry=_RETRY, timeout=_CALL_SECONDS))
        try:
            await asyncio.wait((call, self._ended), return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                raise self._ended.result()
            call.result()
        except (exceptions.InvalidArgument, exceptions.OutOfRange) as error:
            raise port.PublishRejected(f"{topic} rejects the message: {_text(error)}") from error
        except (exceptions.NotFound, exceptions.Forbidden) as error:
            raise translated(error, topic, role="roles/pubsub.publisher") from error
        except ERRORS as error:
            disconnected = translated(error, topic)
            self.fail(disconnected)
            raise disconnected from error
        finally:
            call.cancel()

    async def messages(self) -> AsyncIterator[Incoming]:
        """Yield messages until the connection ends; raise `Disconnected` then."""
        while (incoming := await self._queue.get()) is not None:
            yield incoming
        raise self._ended.result()

    def fail(self, error: port.Disconnected) -> None:
        """End the connection."""
        if not self._ended.done():
            self._ended.set_result(error)
            self._queue.put_nowait(None)

    async def give_back(self) -> None:
        """Send the last acknowledgements, and let what is not handled be delivered again at once."""
        with suppress(TimeoutError, *ERRORS):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._send_acknowledgements()
                await self._modify(self._leases, seconds=0)

    async def _guarded(self, run: Callable[[], Awaitable[None]], name: str) -> None:
        try:
            await run()
        except ERRORS as error:
            self.fail(translated(error, name))

    async def _check(self, subscription: str) -> None:
        """Find out whether messages may be received: an idle stream answers nothing, not even that it is open.

        A pull that waits would not do: a message that it gets when it is given up is late by its deadline.
        """
        request = types.PullRequest(subscription=subscription, max_messages=1, return_immediately=True)
        try:
            # Not by the client, which warns of `return_immediately`: nobody should poll with it.
            call: Any = self._subscriber.transport.pull
            response = await call(request, metadata=_routing(subscription), timeout=_CALL_SECONDS)
        except ERRORS as error:
            raise translated(error, subscription) from error
        self._receive(response, subscription)

    async def _pull(self, subscription: str) -> None:
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                await self._read_stream(subscription)
            except (grpc.RpcError, exceptions.ServiceUnavailable) as error:
                if not isinstance(_call_error(error), _TRANSIENT) or loop.time() - started < _STREAM_WORKS_SECONDS:
                    raise

    async def _read_stream(self, subscription: str) -> None:
        # Not by the client, which reads requests from an iterator and leaves that task behind when the call fails.
        call: Any = self._subscriber.transport.streaming_pull
        stream = call(metadata=_routing(subscription))
        owner = tasks.TaskOwner()
        try:
            await stream.write(self._first_request(subscription))
            owner.start(f"heartbeat {subscription}", _send_heartbeats(stream))
            async for response in stream:
                self._receive(response, subscription)
                await self._room.wait()
            raise exceptions.ServiceUnavailable("the stream has ended")  # type: ignore[no-untyped-call]
        finally:
            stream.cancel()
            await owner.stop()

    def _first_request(self, subscription: str) -> Any:
        limits = self._endpoint.receive
        return types.StreamingPullRequest(
            subscription=subscription,
            client_id=self._client_id,
            stream_ack_deadline_seconds=limits.lease_seconds,
            max_outstanding_messages=limits.max_messages,
            max_outstanding_bytes=limits.max_bytes,
        )

    def _receive(self, response: Any, subscription: str) -> None:
        until = asyncio.get_running_loop().time() + self._endpoint.receive.max_lease_seconds
        for received in type(response).pb(response).received_messages:
            message = pubsub_binding.PubsubMessage(
                attributes=dict(received.message.attributes), data=received.message.data
            )
            ack_id, size = received.ack_id, received.ByteSize()
            self._release(ack_id)
            self._leases[ack_id] = _Lease(subscription=subscription, size=size, until=until)
            self._leased_bytes += size
            self._queue.put_nowait(
                Incoming(
                    topic=subscription,
                    message=message,
                    acknowledge=functools.partial(self._handle, ack_id),
                    refuse=functools.partial(self._refuse, ack_id),
                )
            )
        self._update_room()

    def _handle(self, ack_id: str) -> None:
        lease = self._release(ack_id)
        if lease is not None:
            self._handled[lease.subscription].append(ack_id)
            self._has_handled.set()
            self._update_room()

    def _refuse(self, ack_id: str) -> None:
        lease = self._release(ack_id)
        if lease is not None:
            self._refused[ack_id] = lease
            self._has_handled.set()
            self._update_room()

    def _release(self, ack_id: str) -> _Lease | None:
        lease = self._leases.pop(ack_id, None)
        self._leased_bytes -= lease.size if lease else 0
        return lease

    def _update_room(self) -> None:
        limits = self._endpoint.receive
        if len(self._leases) >= limits.max_messages or self._leased_bytes >= limits.max_bytes:
            self._room.clear()
        else:
            self._room.set()

    async def _acknowledge(self) -> None:
        while True:
            await self._has_handled.wait()
            await self._send_acknowledgements()

    async def _send_acknowledgements(self) -> None:
        self._has_handled.clear()
        handled, self._handled = self._handled, defaultdict(list)
        refused, self._refused = self._refused, {}
        for subscription, ids in handled.items():
            for part in _parts(ids):
                request = types.AcknowledgeRequest(subscription=subscription, ack_ids=part)
                await self._subscriber.acknowledge(request, retry=_RETRY, timeout=_CALL_SECONDS)
        await self._modify(refused, seconds=0)

    async def _extend(self) -> None:
        seconds = self._endpoint.receive.lease_seconds
        while True:
            await asyncio.sleep(seconds / 2)
            now = asyncio.get_running_loop().time()
            await self._modify(
                {id_: lease for id_, lease in self._leases.items() if lease.until > now}, seconds=seconds
            )

    async def _modify(self, leases: dict[str, _Lease], *, seconds: int) -> None:
        by_subscription: dict[str, list[str]] = defaultdict(list)
        for ack_id, lease in leases.items():
            by_subscription[lease.subscription].append(ack_id)
        for subscription, ids in by_subscription.items():
            for part in _parts(ids):
                request = types.ModifyAckDeadlineRequest(
                    subscription=subscription, ack_ids=part, ack_deadline_seconds=seconds
                )
                await self._subscriber.modify_ack_deadline(request, retry=_RETRY, timeout=_CALL_SECONDS)


async def _send_heartbeats(stream: Any) -> None:
    with suppress(grpc.RpcError, asyncio.InvalidStateError):  # who reads the stream gets its error
        while True:
            await asyncio.sleep(_HEARTBEAT_SECONDS)
            await stream.write(types.StreamingPullRequest())


def _routing(subscription: str) -> tuple[tuple[str, str], ...]:
    return (("x-goog-request-params", f"subscription={subscription}"),)


def _parts(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), _IDS_AT_ONCE):
        yield ids[start : start + _IDS_AT_ONCE]


async def open_channel(endpoint: PubsubEndpoint) -> Any:
    """Return a gRPC channel to the service, with credentials unless it is an emulator."""
    keepalive = endpoint.keepalive
    options: list[tuple[str, int]] = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        # Each client connects by itself: otherwise gRPC returns the failure of an older client of the same address.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.max_reconnect_backoff_ms", 5000),
    ]
    if keepalive.seconds:
        options += [
            ("grpc.keepalive_time_ms", round(max(10.0, keepalive.seconds) * 1000)),
            ("grpc.keepalive_timeout_ms", round(keepalive.timeout_seconds * 1000)),
            ("grpc.keepalive_permit_without_calls", int(keepalive.without_calls)),
        ]
    if not endpoint.is_secure:
        return grpc.aio.insecure_channel(endpoint.target, options=options)
    # In a thread: looking for Application Default Credentials may ask a metadata server.
    credentials = await asyncio.to_thread(_credentials, endpoint.credentials_file)
    return PublisherGrpcAsyncIOTransport.create_channel(endpoint.target, credentials=credentials, options=options)


def _credentials(file: Path | None) -> Any:
    try:
        return _load_credentials(file)
    except (auth_exceptions.InvalidValue, AttributeError, KeyError, TypeError, RecursionError) as error:
        # Google's library expects an object with texts in it, and quotes a key that is no text.
        raise ValueError("the credentials are JSON, but not an object of the expected form") from error


def _load_credentials(file: Path | None) -> Any:
    scopes = PublisherGrpcAsyncIOTransport.AUTH_SCOPES
    if file is not None:
        # Of a service account only: other kinds name addresses and programs to get a token from.
        load: Any = service_account.Credentials.from_service_account_file
        credentials = load(str(file), default_scopes=scopes)
    else:
        credentials, _ = google.auth.default(default_scopes=scopes)
    # As Google's clients: a service account signs its own tokens, without asking for them.
    is_account = isinstance(credentials, service_account.Credentials)
    return credentials.with_always_use_jwt_access(always_use_jwt_access=True) if is_account else credentials


def _no_credentials(error: Exception) -> port.Misconfigured:
    return port.Misconfigured(
        f"there are no valid Google credentials ({_text(error)}); set credentialsFile in the configuration file to the "
        "key of a service account, or give the process Application Default Credentials, such as a workload identity"
    )


def translated(error: Exception, name: str, *, role: str = "roles/pubsub.subscriber") -> port.Disconnected:
    """Return the failure of a call about a topic or subscription; `role` is what the account may lack."""
    error = _call_error(error)
    match error:
        case exceptions.NotFound():
            return port.Misconfigured(f"{name} does not exist; create it, or correct the configuration file")
        case exceptions.Unauthorized() | auth_exceptions.GoogleAuthError():
            return _no_credentials(error)
        case exceptions.ServiceUnavailable() if _PLUGIN_FAILED in _text(error):
            return _no_credentials(error)
        case exceptions.Forbidden():
            return port.Misconfigured(
                f"access to {name} is denied ({_text(error)}); grant {role} on it to the account of this process"
            )
        case _:
            return port.Disconnected(f"{name}: {_text(error)}")


def _call_error(error: Exception) -> Exception:
    """Return the error of a call as Google's clients raise it."""
    if not isinstance(error, grpc.RpcError):
        return error
    translated: Exception = exceptions.from_grpc_error(error)  # type: ignore[no-untyped-call]
    return translated


def _text(error: Exception) -> str:
    return str(getattr(error, "message", "") or error)[:300]
