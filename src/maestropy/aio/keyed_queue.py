"""Run a reconcile function by key: many keys at once, never two workers on one key, no key lost.

It behaves like the work queue of client-go. A key that is added while a worker handles it is handled once more
afterwards. A key that fails is retried with exponential backoff. A handler may ask to be called again (`RequeueAfter`).
The key that is due first is handled first; a key that may be delayed lets others pass until its delay is used up. A
`Gate` keeps keys that wait for one slow dependency from occupying all workers.
"""

import asyncio
import functools
import itertools
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from maestropy.aio import tasks

_Key = TypeVar("_Key", bound=Hashable)
_Key_contra = TypeVar("_Key_contra", bound=Hashable, contravariant=True)

_STUCK_CHECK_SECONDS = 0.5
_UNPARKED_AT_ONCE = 4
"""Keys that are tried again when a handler ended; only a few, because thousands may wait for one slow dependency."""
_PARKED_SECONDS = 5.0
"""After this time all keys that may not start are tried again."""


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


class Gate(Protocol[_Key_contra]):
    """Decides which keys may be handled while something that some of them need is slow."""

    def may_start(self, key: _Key_contra) -> bool:
        """Return whether a worker may handle the key now; it is asked again when the handler of another key ended."""

    def started(self, key: _Key_contra) -> None:
        """Note that a worker handles the key."""

    def is_stuck(self, key: _Key_contra) -> bool:
        """Return whether the handler of the key waits for something slow, so that its worker is replaced."""

    def ended(self, key: _Key_contra) -> bool:
        """Note that the handler of the key ended; return whether keys that could not start may be able to now."""


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
        gate: Gate[_Key] | None = None,
    ) -> None:
        """Prepare the queue; at most twice as many workers as `workers` are added for handlers that are stuck."""
        self._handle = handle
        self._workers = workers
        self._gate = gate
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
        self._parked: dict[_Key, _Position] = {}
        """Queued keys that the gate does not let start."""
        self._unpark_timer: asyncio.TimerHandle | None = None
        self._checks: dict[_Key, asyncio.TimerHandle] = {}
        """When to look whether the handler of a key is stuck."""
        self._stuck: set[_Key] = set()
        """Keys whose handlers are stuck; each has a worker beyond the usual number in its place."""
        self._group: asyncio.TaskGroup | None = None

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
            self._group = group
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
        """Handle keys; a worker that was replaced while its handler was stuck ends afterwards."""
        is_replaced = False
        while not is_replaced:
            position, key = await self._queue.get()
            if self._queued.get(key) is not position:
                continue  # the key moved forward
            if self._gate is not None and not self._gate.may_start(key):
                self._park(key, position)
                continue
            del self._queued[key]
            began = asyncio.get_running_loop().time()
            self._processing.add(key)
            try:
                await (self._process(key) if self._gate is None else self._process_gated(key, self._gate))
            finally:
                if self._meter is not None:
                    self._meter.set_depth(len(self._queued))
                    ended = asyncio.get_running_loop().time()
                    self._meter.finished(waited=max(0.0, began - position.due), worked=ended - began)
                is_replaced = key in self._stuck
                self._stuck.discard(key)
                self._processing.discard(key)
                if key in self._dirty:
                    self._dirty.discard(key)
                    self.add(key)

    async def _process_gated(self, key: _Key, gate: Gate[_Key]) -> None:
        gate.started(key)
        self._check_later(key)
        try:
            await self._process(key)
        finally:
            self._checks.pop(key).cancel()
            if gate.ended(key):
                self._unpark(_UNPARKED_AT_ONCE)

    def _check_later(self, key: _Key) -> None:
        check = functools.partial(self._replace_if_stuck, key)
        self._checks[key] = asyncio.get_running_loop().call_later(_STUCK_CHECK_SECONDS, check)

    def _replace_if_stuck(self, key: _Key) -> None:
        """Start another worker if the handler of `key` is stuck; otherwise look again later."""
        assert self._gate is not None
        assert self._group is not None
        if self._gate.is_stuck(key) and len(self._stuck) < 2 * self._workers:
            self._stuck.add(key)
            tasks.start_in_group(self._group, f"keyed-worker-for-{key}", self._work())
        else:
            self._check_later(key)

    def _park(self, key: _Key, position: _Position) -> None:
        self._parked[key] = position
        if self._unpark_timer is None:
            self._unpark_timer = asyncio.get_running_loop().call_later(_PARKED_SECONDS, self._unpark_all)

    def _unpark_all(self) -> None:
        self._unpark_timer = None
        self._unpark(len(self._parked))

    def _unpark(self, count: int) -> None:
        """Let the gate decide again about the keys that it did not let start, those that were parked first."""
        for key in list(itertools.islice(self._parked, count)):
            position = self._parked.pop(key)
            if self._queued.get(key) is position:
                self._queue.put_nowait((position, key))

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
