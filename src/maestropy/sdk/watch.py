"""Watch works: yield all existing works, then every change, across reconnects, each change once.

A watch subscribes first and lists afterwards, so no change is missed. After every reconnect it lists again and yields
only differences, deletions included. It also lists periodically: a server sends an event when an agent reports a
status, and none when a source only changes a spec.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Self

from maestropy.sdk._connection.subscription_hub import EventQueue, OnConnection, SubscriptionHub
from maestropy.sdk.errors import MaestroError, Unavailable
from maestropy.sdk.watch_events import EventType, WatchEvent, WatchState
from maestropy.sdk.work import Work
from maestropy.wire import codec
from maestropy.wire import errors as wire_errors
from maestropy.wire.events import event

RELIST_SECONDS = 300.0

_log = logging.getLogger(__name__)
_RELIST_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchScope:
    """The works that a watch includes."""

    list: Callable[[], AsyncGenerator[Work, None]]
    """Yields all included works, as they are stored."""
    includes: Callable[[Work], bool]
    """Whether a work of a status event is included."""
    may_include: Callable[[event.CloudEvent], bool] = lambda _: True
    """A cheaper check of the undecoded event, made first."""


class WorkWatch:
    """The events of one watch: iterate over it; `aclose` it, or use it in `async with`, to end early.

    >>> async with works.watch(labels="app=web") as events:
    ...     async for event in events:
    ...         print(event.type, event.work.name)
    """

    def __init__(
        self,
        scope: WatchScope,
        *,
        hub: SubscriptionHub,
        connect_timeout: float,
        bookmarks: bool = False,
        on_connection: OnConnection | None = None,
        relist_seconds: float = RELIST_SECONDS,
    ) -> None:
        self._scope = scope
        self._hub = hub
        self._connect_timeout = connect_timeout
        self._bookmarks = bookmarks
        self._on_connection = on_connection
        self._relist_seconds = relist_seconds
        self._unlisted: MaestroError | None = None
        self.disconnection: MaestroError | None = None
        """Why the watch had no connection when it ended; None if it had one."""
        self._events = self._run()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent:
        return await anext(self._events)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the watch."""
        await self._events.aclose()

    async def _run(self) -> AsyncGenerator[WatchEvent, None]:
        queue, observed = EventQueue(on_connection=self._on_connection), WatchState()
        self._hub.join(queue)
        try:
            await self._first_connection(queue)
            is_first = True
            while True:
                await self._next_events(queue)
                if queue.take_list_request():
                    async with aclosing(self._list_events(queue, observed, is_first=is_first)) as changes:
                        async for watch_event in changes:
                            yield watch_event
                    is_first = False
                for received in queue.take():
                    for watch_event in self._stream_events(received, observed):
                        yield watch_event
        finally:
            self.disconnection = self._hub.disconnection() or self._unlisted
            await self._hub.leave(queue)

    async def _first_connection(self, queue: EventQueue) -> None:
        """Wait for the first connection; a server that never answered is an error, a lost connection is not."""
        try:
            async with asyncio.timeout(self._connect_timeout):
                await queue.wait()
        except TimeoutError as error:
            cause = self._hub.last_error
            raise cause or Unavailable("the server does not accept the subscription", doing="watch works") from error

    async def _next_events(self, queue: EventQueue) -> None:
        try:
            async with asyncio.timeout(self._relist_seconds):
                await queue.wait()
        except TimeoutError:
            queue.request_list()

    async def _list_events(
        self, queue: EventQueue, observed: WatchState, *, is_first: bool
    ) -> AsyncGenerator[WatchEvent, None]:
        observed.begin()
        self._unlisted = self._unlisted or Unavailable("the REST API has not answered yet", doing="list works")
        try:
            async with aclosing(self._scope.list()) as works:
                async for work in works:
                    for watch_event in observed.listed(work):
                        yield watch_event
        except MaestroError as error:
            self._unlisted = error
            if is_first or not error.is_retryable:
                raise
            _log.info("watch could not list works, retrying: %s", error)
            await asyncio.sleep(_RELIST_PAUSE_SECONDS)
            queue.request_list()
            return
        self._unlisted = None
        for watch_event in observed.complete():
            yield watch_event
        if self._bookmarks:
            yield WatchEvent(EventType.SYNCED, Work(""))

    def _stream_events(self, received: event.CloudEvent, observed: WatchState) -> list[WatchEvent]:
        if not self._scope.may_include(received):
            return []
        try:
            reported = codec.work_from_status_event(received)
            work = Work.wrap(reported, observed_version=reported.generation)
            return observed.received(work) if self._scope.includes(work) else observed.excluded(work)
        except wire_errors.WireError as error:
            _log.warning("a status event cannot be decoded and is skipped: %s", error)
            return []
