"""Watch works: everything there is, then every change, through reconnects, without a loss or a double.

A watcher subscribes first and lists then, so nothing falls between. After every reconnect it lists again and tells
only what differs from what it told before, deletions included. It also lists again from time to time: a server speaks
of a work only when its agent reports, and not when somebody merely changes what is wanted.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Self

from maestropy.sdk.errors import MaestroError, Unavailable
from maestropy.sdk.hub import Hub, Inbox
from maestropy.sdk.observed import EventType, Observed, WatchEvent
from maestropy.sdk.work import Work
from maestropy.wire import codec, event
from maestropy.wire import errors as wire_errors

RELIST_SECONDS = 300.0

_log = logging.getLogger(__name__)
_LIST_AGAIN_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a watcher looks at."""

    list: Callable[[], AsyncGenerator[Work, None]]
    """Yields everything that is wanted, as it is now."""
    includes: Callable[[Work], bool]
    """Whether a work that the stream speaks of is wanted."""
    may_include: Callable[[event.Event], bool] = lambda _: True
    """A cheaper question, asked first."""


class Watch:
    """The events of one watcher: iterate over it; `aclose` it, or use it in `async with`, to end early.

    >>> async with works.watch(labels="app=web") as events:
    ...     async for event in events:
    ...         print(event.type, event.work.name)
    """

    def __init__(
        self,
        wanted: Wanted,
        *,
        hub: Hub,
        patience: float,
        bookmarks: bool = False,
        relist_seconds: float = RELIST_SECONDS,
    ) -> None:
        self._wanted = wanted
        self._hub = hub
        self._patience = patience
        self._bookmarks = bookmarks
        self._relist_seconds = relist_seconds
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
        inbox, seen = Inbox(), Observed()
        self._hub.join(inbox)
        try:
            await self._first_connection(inbox)
            is_first = True
            while True:
                await self._news(inbox)
                if inbox.take_list_request():
                    async with aclosing(self._listed(inbox, seen, is_first=is_first)) as news:
                        async for told in news:
                            yield told
                    is_first = False
                for received in inbox.take():
                    for told in self._heard(received, seen):
                        yield told
        finally:
            await self._hub.leave(inbox)

    async def _first_connection(self, inbox: Inbox) -> None:
        """Wait for the first news; a server that was never there is an error, one that went away is not."""
        try:
            async with asyncio.timeout(self._patience):
                await inbox.wait()
        except TimeoutError as error:
            why = self._hub.last_error
            raise why or Unavailable("the server does not answer the subscription", doing="watch works") from error

    async def _news(self, inbox: Inbox) -> None:
        try:
            async with asyncio.timeout(self._relist_seconds):
                await inbox.wait()
        except TimeoutError:
            inbox.ask_for_list()

    async def _listed(self, inbox: Inbox, seen: Observed, *, is_first: bool) -> AsyncGenerator[WatchEvent, None]:
        seen.begin()
        try:
            async with aclosing(self._wanted.list()) as works:
                async for found in works:
                    for told in seen.listed(found):
                        yield told
        except MaestroError as error:
            if is_first or not error.is_retryable:
                raise
            _log.info("watch could not list, trying again: %s", error)
            await asyncio.sleep(_LIST_AGAIN_SECONDS)
            inbox.ask_for_list()
            return
        for told in seen.complete():
            yield told
        if self._bookmarks:
            yield WatchEvent(EventType.SYNCED, Work(""))

    def _heard(self, received: event.Event, seen: Observed) -> list[WatchEvent]:
        if not self._wanted.may_include(received):
            return []
        try:
            reported = codec.work_from_status_event(received)
            found = Work.wrap(reported, observed_version=reported.generation)
            return seen.heard(found) if self._wanted.includes(found) else seen.lost(found)
        except wire_errors.WireError as error:
            _log.warning("an event of the watch cannot be read and is left out: %s", error)
            return []
