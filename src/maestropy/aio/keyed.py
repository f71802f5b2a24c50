"""Work by key: many keys at once, never two workers on one key, and no wake-up lost.

A key that is added while it is being worked on is worked on once more afterwards. A turn that fails comes again after a
delay that grows, but never beyond a limit; a turn that asks for a later look gets it. Whoever is due first is served
first, so a turn that can wait lets others pass, but not for ever.
"""

import asyncio
import functools
import itertools
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Again:
    """Look at the key again after this many seconds."""

    seconds: float
    patience_seconds: float = 0.0
    """How long it then lets pass whoever wants a turn, should all workers be busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How the delay after failures grows."""

    first_seconds: float = 0.05
    factor: float = 2.0
    cap_seconds: float = 60.0

    def after(self, failures: int) -> float:
        """Return the delay after so many failures in a row."""
        return min(self.cap_seconds, self.first_seconds * self.factor ** min(failures - 1, 63))


class _Ticket(NamedTuple):
    """A place in the line."""

    due: float
    """By the clock of the event loop."""
    number: int
    """Who is due at the same time is served in the order of coming."""


class Meter(Protocol):
    """Who wants to know how much there is to do."""

    def added(self) -> None:
        """A key has to be worked on."""

    def retried(self) -> None:
        """A key failed and comes again."""

    def holds(self, depth: int) -> None:
        """So many keys wait now."""

    def finished(self, *, waited: float, worked: float) -> None:
        """One turn is over; in seconds. What came before it was due has not waited."""


class KeyedQueue(Generic[Key]):
    """Keys that wait for a turn."""

    def __init__(
        self,
        handle: Callable[[Key], Awaitable[Again | None]],
        *,
        workers: int,
        backoff: Backoff,
        on_error: Callable[[Key, Exception], None],
        meter: Meter | None = None,
    ) -> None:
        self._handle = handle
        self._workers = workers
        self._backoff = backoff
        self._on_error = on_error
        self._line: asyncio.PriorityQueue[tuple[_Ticket, Key]] = asyncio.PriorityQueue()
        self._numbers = itertools.count()
        self._meter = meter
        self._queued: dict[Key, _Ticket] = {}
        """The tickets that count; a key that moved ahead has left an older one in the line."""
        self._busy: set[Key] = set()
        self._dirty: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._queued) + len(self._busy)

    def add(self, key: Key) -> None:
        """Ask for a turn for `key`, now."""
        self._add(key, patience_seconds=0.0)

    def add_later(self, key: Key, seconds: float, *, patience_seconds: float = 0.0) -> None:
        """Ask for a turn for `key` after a while; an earlier timer of the same key stays."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None and timer.when() <= loop.time() + seconds:
            return
        if timer is not None:
            timer.cancel()
        add = functools.partial(self._add, key, patience_seconds=patience_seconds)
        self._timers[key] = loop.call_later(seconds, add)

    def retry(self) -> None:
        """Give every key that failed another turn now: what they all needed is there again."""
        for key in list(self._failures):
            self.add(key)

    def forget(self, key: Key) -> None:
        """Drop failures and timers of a key that no longer exists."""
        self._failures.pop(key, None)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    async def run(self) -> None:
        """Work for ever."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"keyed-worker-{number}")

    def _add(self, key: Key, *, patience_seconds: float) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if key in self._busy:
            self._dirty.add(key)
            return
        ticket = _Ticket(asyncio.get_running_loop().time() + patience_seconds, next(self._numbers))
        earlier = self._queued.get(key)
        if earlier is not None and earlier.due <= ticket.due:
            return
        self._queued[key] = ticket
        self._line.put_nowait((ticket, key))
        if self._meter is not None and earlier is None:
            self._meter.added()
            self._meter.holds(len(self._queued))

    async def _work(self) -> None:
        while True:
            ticket, key = await self._line.get()
            if self._queued.get(key) is not ticket:
                continue  # it moved ahead
            del self._queued[key]
            began = asyncio.get_running_loop().time()
            self._busy.add(key)
            try:
                await self._turn(key)
            finally:
                if self._meter is not None:
                    self._meter.holds(len(self._queued))
                    ended = asyncio.get_running_loop().time()
                    self._meter.finished(waited=max(0.0, began - ticket.due), worked=ended - began)
                self._busy.discard(key)
                if key in self._dirty:
                    self._dirty.discard(key)
                    self.add(key)

    async def _turn(self, key: Key) -> None:
        try:
            again = await self._handle(key)
        except Exception as error:  # noqa: BLE001 - one key's failure is told and tried again; the others go on
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            if self._meter is not None:
                self._meter.retried()
            self._on_error(key, error)
            self.add_later(key, self._backoff.after(failures))
            return
        self._failures.pop(key, None)
        if again is not None:
            self.add_later(key, again.seconds, patience_seconds=again.patience_seconds)
