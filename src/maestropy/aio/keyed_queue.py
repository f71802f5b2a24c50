"""Run a reconcile function by key: many keys at once, never two workers on one key, no key lost.

It behaves like the work queue of client-go. A key that is added while a worker handles it is handled once more
afterwards. A key that fails is retried with exponential backoff. A handler may ask to be called again (`RequeueAfter`).
The key that is due first is handled first; a key that may be delayed lets others pass until its delay is used up.
"""

import asyncio
import functools
import itertools
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class RequeueAfter:
    """Handle the key again after this many seconds."""

    seconds: float
    max_delay_seconds: float = 0.0
    """How long other keys may then go first while all workers are busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How the delay grows with the number of failures in a row."""

    first_seconds: float = 0.05
    factor: float = 2.0
    cap_seconds: float = 60.0

    def after(self, failures: int) -> float:
        """Return the delay after this many failures in a row."""
        return min(self.cap_seconds, self.first_seconds * self.factor ** min(failures - 1, 63))


class _Position(NamedTuple):
    """The position of a key in the queue."""

    due: float
    """By the clock of the event loop."""
    number: int
    """Keys that are due at the same time are handled in the order in which they were added."""


class QueueMeter(Protocol):
    """Metrics of a queue."""

    def added(self) -> None:
        """Count a key that was added."""

    def retried(self) -> None:
        """Count a key that failed and is retried."""

    def set_depth(self, depth: int) -> None:
        """Set the number of waiting keys."""

    def finished(self, *, waited: float, worked: float) -> None:
        """Observe a handled key, in seconds; the time before it was due does not count as waiting."""


class KeyedQueue(Generic[_Key]):
    """A queue of keys, and the workers that handle them."""

    def __init__(
        self,
        handle: Callable[[_Key], Awaitable[RequeueAfter | None]],
        *,
        workers: int,
        backoff: Backoff,
        on_error: Callable[[_Key, Exception], None],
        meter: QueueMeter | None = None,
    ) -> None:
        self._handle = handle
        self._workers = workers
        self._backoff = backoff
        self._on_error = on_error
        self._queue: asyncio.PriorityQueue[tuple[_Position, _Key]] = asyncio.PriorityQueue()
        self._numbers = itertools.count()
        self._meter = meter
        self._queued: dict[_Key, _Position] = {}
        """The valid positions; a key that moved forward has an obsolete position in the queue, too."""
        self._processing: set[_Key] = set()
        self._dirty: set[_Key] = set()
        """Keys that were added while a worker handled them."""
        self._failures: dict[_Key, int] = {}
        self._timers: dict[_Key, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._queued) + len(self._processing)

    def add(self, key: _Key) -> None:
        """Add `key`, due now."""
        self._add(key, max_delay_seconds=0.0)

    def add_behind(self, key: _Key, *, max_delay_seconds: float) -> None:
        """Add `key`, due now, but let other keys go first for so long while all workers are busy."""
        self._add(key, max_delay_seconds=max_delay_seconds)

    def add_after(self, key: _Key, seconds: float, *, max_delay_seconds: float = 0.0) -> None:
        """Add `key` after some seconds; an earlier timer of the same key stays."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None and timer.when() <= loop.time() + seconds:
            return
        if timer is not None:
            timer.cancel()
        add = functools.partial(self._add, key, max_delay_seconds=max_delay_seconds)
        self._timers[key] = loop.call_later(seconds, add)

    def retry_failed(self) -> None:
        """Add every key that failed, due now: what they all depend on is available again."""
        for key in list(self._failures):
            self.add(key)

    def forget(self, key: _Key) -> None:
        """Drop the failures and the timer of a key that no longer exists."""
        self._failures.pop(key, None)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    async def run(self) -> None:
        """Run the workers until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"keyed-worker-{number}")

    def _add(self, key: _Key, *, max_delay_seconds: float) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if key in self._processing:
            self._dirty.add(key)
            return
        position = _Position(asyncio.get_running_loop().time() + max_delay_seconds, next(self._numbers))
        earlier = self._queued.get(key)
        if earlier is not None and earlier.due <= position.due:
            return
        self._queued[key] = position
        self._queue.put_nowait((position, key))
        if self._meter is not None and earlier is None:
            self._meter.added()
            self._meter.set_depth(len(self._queued))

    async def _work(self) -> None:
        while True:
            position, key = await self._queue.get()
            if self._queued.get(key) is not position:
                continue  # the key moved forward
            del self._queued[key]
            began = asyncio.get_running_loop().time()
            self._processing.add(key)
            try:
                await self._process(key)
            finally:
                if self._meter is not None:
                    self._meter.set_depth(len(self._queued))
                    ended = asyncio.get_running_loop().time()
                    self._meter.finished(waited=max(0.0, began - position.due), worked=ended - began)
                self._processing.discard(key)
                if key in self._dirty:
                    self._dirty.discard(key)
                    self.add(key)

    async def _process(self, key: _Key) -> None:
        try:
            requeue = await self._handle(key)
        except Exception as error:  # noqa: BLE001 - the failure of one key must not stop the others
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            if self._meter is not None:
                self._meter.retried()
            self._on_error(key, error)
            self.add_after(key, self._backoff.after(failures))
            return
        self._failures.pop(key, None)
        if requeue is not None:
            self.add_after(key, requeue.seconds, max_delay_seconds=requeue.max_delay_seconds)
