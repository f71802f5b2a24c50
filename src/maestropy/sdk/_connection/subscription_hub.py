"""Share one gRPC subscription among all watches of a client.

Events go into a bounded queue per watch. A queue that overflows drops its events and requests a list instead, as every
queue does after a reconnect. So a slow watch does not delay others, and no watch misses a state.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from maestropy.aio import backoff, tasks
from maestropy.sdk._connection import client_spans, error_mapping, publisher
from maestropy.sdk._connection.connections import ReloadingConnection
from maestropy.sdk.errors import ConfigError, MaestroError, Unavailable
from maestropy.transport.grpc.client import GrpcClient
from maestropy.wire import errors as wire_errors
from maestropy.wire.events import event, grpc_binding

MAX_EVENTS = 1000
MAX_BYTES = 32 * 2**20

_log = logging.getLogger(__name__)

OnConnection = Callable[[MaestroError | None], None]
"""Called with the error when a connection is lost, and with None when there is one again."""


class EventQueue:
    """The pending events of one watch."""

    def __init__(
        self,
        *,
        max_events: int = MAX_EVENTS,
        max_bytes: int = MAX_BYTES,
        on_connection: OnConnection | None = None,
    ) -> None:
        self._on_connection = on_connection
        self._was_connected = False
        self._is_lost = False
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._events: deque[event.CloudEvent] = deque()
        self._bytes = 0
        self._must_list = False
        self._failure: MaestroError | None = None
        self._has_events = asyncio.Event()

    def put(self, received: event.CloudEvent) -> None:
        """Add an event; a full queue requests a list instead."""
        self._bytes += len(received.data)
        self._events.append(received)
        if len(self._events) > self._max_events or self._bytes > self._max_bytes:
            self.request_list()
        self._has_events.set()

    def request_list(self) -> None:
        """Drop the events and request a list, which includes all of them."""
        self._events.clear()
        self._bytes = 0
        self._must_list = True
        self._has_events.set()

    def connected(self) -> None:
        """Request a list, and notify the watch if it had lost its connection."""
        if self._is_lost and self._on_connection is not None:
            self._on_connection(None)
        self._was_connected, self._is_lost = True, False
        self.request_list()

    def lost(self, failure: MaestroError) -> None:
        """Notify the watch, once, that its connection is lost; one that never had a connection gets the error later."""
        if self._was_connected and not self._is_lost:
            self._is_lost = True
            if self._on_connection is not None:
                self._on_connection(failure)

    def fail(self, failure: MaestroError) -> None:
        """End the watch with an error that a retry cannot fix."""
        self._failure = failure
        self._has_events.set()

    async def wait(self) -> None:
        """Wait for events or a list request; raises the error that ended the subscription."""
        await self._has_events.wait()
        if self._failure is not None:
            raise self._failure

    def take_list_request(self) -> bool:
        """Return whether a list is requested, and reset the request."""
        is_requested, self._must_list = self._must_list, False
        return is_requested

    def take(self) -> Sequence[event.CloudEvent]:
        """Return the pending events."""
        taken = list(self._events)
        self._events.clear()
        self._bytes = 0
        if not self._must_list and self._failure is None:
            self._has_events.clear()
        return taken


class SubscriptionHub:
    """The subscription; it is open while at least one watch is open."""

    def __init__(
        self,
        connection: ReloadingConnection[GrpcClient],
        *,
        source: str,
        jitter: Callable[[], float],
        address: str = "",
        credentials: error_mapping.Credentials = error_mapping.NO_CREDENTIALS,
    ) -> None:
        self._connection = connection
        self._source = source
        self._jitter = jitter
        self._address = address
        self._credentials = credentials
        self._queues: list[EventQueue] = []
        self._task_owner = tasks.TaskOwner()
        self._live: object | None = None
        self.last_error: MaestroError | None = None
        """The error of the lost connection."""

    def disconnection(self) -> MaestroError | None:
        """Return why there is no subscription at this moment; None if there is one."""
        if self._live is not None:
            return None
        where = f" at {self._address}" if self._address else ""
        reason = f"the server{where} has not accepted the subscription"
        return self.last_error or Unavailable(reason, doing="watch works")

    def join(self, queue: EventQueue) -> None:
        """Add a queue; it gets a list request as soon as the subscription is open."""
        self._queues.append(queue)
        if self._live is not None:
            queue.connected()
        elif len(self._queues) == 1:
            self._task_owner.start("maestro-watch", self._run())

    async def leave(self, queue: EventQueue) -> None:
        """Remove a queue; without queues the subscription is closed."""
        if queue in self._queues:
            self._queues.remove(queue)
        if not self._queues:
            await self._stop()

    async def close(self) -> None:
        """End all watches."""
        closed = Unavailable("the client was closed", doing="watch works", advice="create a new one")
        closed.is_retryable = False
        for queue in self._queues:
            queue.fail(closed)
        self._queues.clear()
        await self._stop()

    async def _stop(self) -> None:
        # A watch that starts while the old subscription ends gets a new task owner.
        task_owner, self._task_owner = self._task_owner, tasks.TaskOwner()
        self._live = None
        self.last_error = None
        await task_owner.stop()

    async def _run(self) -> None:
        pauses = self._pauses()
        run_id = object()
        while True:
            try:
                subscription = grpc_binding.Subscription(source=self._source, data_type=event.MANIFEST_BUNDLES)
                async with self._connection.current().subscribe(subscription) as events:
                    self._connected(run_id)
                    pauses = self._pauses()
                    async for received in events:
                        client_spans.status_received(received)
                        for queue in self._queues:
                            queue.put(received)
            except Exception as error:  # noqa: BLE001 - every watch must get the error that ended the stream
                if not self._is_reconnectable(error):
                    return
            finally:
                # Another run may have replaced this one.
                self._live = None if self._live is run_id else self._live
            await asyncio.sleep(next(pauses))

    def _connected(self, run: object) -> None:
        self._live = run
        self.last_error = None
        for queue in self._queues:
            queue.connected()

    def _is_reconnectable(self, error: Exception) -> bool:
        try:
            request = error_mapping.Operation(doing="watch works")
            failure = publisher.translated(error, request=request, credentials=self._credentials)
            with suppress(ConfigError):
                failure.hide(self._credentials.current_token())
        except Exception as unknown:  # noqa: BLE001 - not an error of the connection: a reconnect cannot help
            failure = MaestroError(f"something unexpected happened: {unknown!r}", doing="watch works")
        self.last_error = failure
        # A malformed event ends the stream too; the list after a reconnect replaces it.
        if failure.is_retryable or isinstance(error, wire_errors.WireError):
            _log.info("watch interrupted, reconnecting: %s", failure)
            for queue in self._queues:
                queue.lost(failure)
            return True
        for queue in self._queues:
            queue.fail(failure)
        self._queues.clear()
        return False

    def _pauses(self) -> Iterator[float]:
        return backoff.delays(base=0.1, factor=2, cap=5.0, jitter=self._jitter)
