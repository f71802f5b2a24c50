"""One subscription for all watchers of a client.

The stream is read at its own pace into the bounded inbox of each watcher. An inbox that overflows forgets what it
holds and asks for a list instead, and so does every inbox after a reconnect: nobody waits for the slowest, and nobody
misses a state.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from maestropy.aio import backoff, tasks
from maestropy.sdk import failures, publishing
from maestropy.sdk.errors import MaestroError, Unavailable
from maestropy.sdk.links import Link
from maestropy.transport.grpc_client import GrpcClient
from maestropy.wire import envelope, event
from maestropy.wire import errors as wire_errors

MAX_EVENTS = 1000
MAX_BYTES = 32 * 2**20

_log = logging.getLogger(__name__)


class Inbox:
    """What one watcher has yet to look at."""

    def __init__(self, *, max_events: int = MAX_EVENTS, max_bytes: int = MAX_BYTES) -> None:
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._events: deque[event.Event] = deque()
        self._bytes = 0
        self._must_list = False
        self._failure: MaestroError | None = None
        self._news = asyncio.Event()

    def put(self, received: event.Event) -> None:
        """Add an event; when there is no room, a list will have to do."""
        self._bytes += len(received.data)
        self._events.append(received)
        if len(self._events) > self._max_events or self._bytes > self._max_bytes:
            self.ask_for_list()
        self._news.set()

    def ask_for_list(self) -> None:
        """Forget the events: a list that begins from now on says all they say."""
        self._events.clear()
        self._bytes = 0
        self._must_list = True
        self._news.set()

    def fail(self, failure: MaestroError) -> None:
        """End the watch: trying again cannot help."""
        self._failure = failure
        self._news.set()

    async def wait(self) -> None:
        """Wait for news; raises what ended the subscription."""
        await self._news.wait()
        if self._failure is not None:
            raise self._failure

    def take_list_request(self) -> bool:
        """Say, once, whether a list is due."""
        due, self._must_list = self._must_list, False
        return due

    def take(self) -> Sequence[event.Event]:
        """Return the events so far."""
        taken = list(self._events)
        self._events.clear()
        self._bytes = 0
        if not self._must_list and self._failure is None:
            self._news.clear()
        return taken


class Hub:
    """The subscription; it lives while somebody watches."""

    def __init__(self, link: Link[GrpcClient], *, source: str, chance: Callable[[], float]) -> None:
        self._link = link
        self._source = source
        self._chance = chance
        self._inboxes: list[Inbox] = []
        self._crew = tasks.Crew()
        self._live: object | None = None
        self.last_error: MaestroError | None = None
        """Why there is no connection at the moment."""

    def join(self, inbox: Inbox) -> None:
        """Send events to `inbox` from now on; it is asked to list as soon as nothing can be missed."""
        self._inboxes.append(inbox)
        if self._live is not None:
            inbox.ask_for_list()
        elif len(self._inboxes) == 1:
            self._crew.start("maestro-watch", self._run())

    async def leave(self, inbox: Inbox) -> None:
        """Send no more events to `inbox`; the last one to go ends the subscription."""
        if inbox in self._inboxes:
            self._inboxes.remove(inbox)
        if not self._inboxes:
            await self._stop()

    async def close(self) -> None:
        """End every watch."""
        for inbox in self._inboxes:
            inbox.fail(Unavailable("the client was closed", doing="watch works"))
        self._inboxes.clear()
        await self._stop()

    async def _stop(self) -> None:
        # Whoever joins while the old subscription ends gets a crew of its own.
        crew, self._crew = self._crew, tasks.Crew()
        self._live = None
        self.last_error = None
        await crew.stop()

    async def _run(self) -> None:
        pauses = self._pauses()
        myself = object()
        while True:
            try:
                wanted = envelope.Subscription(source=self._source, data_type=event.MANIFEST_BUNDLES)
                async with self._link.current().subscribe(wanted) as events:
                    self._connected(myself)
                    pauses = self._pauses()
                    async for received in events:
                        for inbox in self._inboxes:
                            inbox.put(received)
            except Exception as error:  # noqa: BLE001 - whatever ended the stream, its watchers must hear of it
                if not self._survives(error):
                    return
            finally:
                # By now another run may have taken over.
                self._live = None if self._live is myself else self._live
            await asyncio.sleep(next(pauses))

    def _connected(self, run: object) -> None:
        self._live = run
        self.last_error = None
        for inbox in self._inboxes:
            inbox.ask_for_list()

    def _survives(self, error: Exception) -> bool:
        try:
            failure = publishing.translated(error, request=failures.Request(doing="watch works"))
        except Exception as unknown:  # noqa: BLE001 - not of the connection, so nothing a reconnect could heal
            failure = MaestroError(f"something unexpected happened: {unknown!r}", doing="watch works")
        self.last_error = failure
        # An event nobody can read ends the stream too; after a reconnect a list tells what it would have told.
        if failure.is_retryable or isinstance(error, wire_errors.WireError):
            _log.info("watch interrupted, reconnecting: %s", failure)
            return True
        for inbox in self._inboxes:
            inbox.fail(failure)
        self._inboxes.clear()
        return False

    def _pauses(self) -> Iterator[float]:
        return backoff.delays(base=0.1, factor=2, cap=5.0, jitter=self._chance)
