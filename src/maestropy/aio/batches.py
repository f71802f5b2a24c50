"""Batch the items that arrive while the previous batch is handled.

An idle batcher handles a single item at once; a busy one handles all items that have arrived meanwhile. So one commit
carries many requests, and no request waits for others to arrive. Only where a batcher says so (`linger_seconds`), items
that come one after the other wait a moment for each other.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# A request takes a few iterations of the event loop from the socket to the batcher. An idle iteration costs
# microseconds, and a busy one does work that has to be done anyway.
_QUIET_ITERATIONS = 4


class Overloaded(Exception):
    """The queue of the batcher is full; the caller should retry later."""


class Stopped(Exception):
    """The batcher is shutting down and accepts no new items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """How much may wait, and how much goes into one batch."""

    batch_items: int = 256
    batch_bytes: int = 8 * 2**20
    waiting_items: int = 4096
    waiting_bytes: int = 64 * 2**20
    linger_seconds: float = 0.0
    """How long a batch waits for more items if it follows a batch of several within this time. For requests that come
    by the thousand and of which each takes several steps: else a fast handler would get them one by one."""


@dataclass(slots=True, eq=False)
class _Waiting(Generic[_Item, _Result]):
    item: _Item
    key: Hashable
    size: int
    done: asyncio.Future[_Result]
    waits: bool = True
    """Whether it counts against the limits: it is in no batch yet, and its caller still waits."""


class Batcher(Generic[_Item, _Result]):
    """Pass batches of submitted items to one handler, and return each outcome to its submitter.

    No two items of one batch have the same key, so a handler may treat a batch as a set. The handler returns one
    outcome per item, in order; an exception among the outcomes is raised to that item's submitter alone.
    """

    def __init__(
        self,
        handle: Callable[[Sequence[_Item]], Awaitable[Sequence[_Result | BaseException]]],
        *,
        limits: BatchLimits | None = None,
    ) -> None:
        self._handle = handle
        self._limits = limits or BatchLimits()
        self._waiting: deque[_Waiting[_Item, _Result]] = deque()
        self._count = 0
        self._bytes = 0
        self._wake = asyncio.Event()
        self._full = asyncio.Event()
        self._stopping = False
        self._lingers_until = 0.0

    @property
    def depth(self) -> int:
        """Number of waiting items."""
        return self._count

    async def submit(self, item: _Item, *, key: Hashable, size: int) -> _Result:
        """Wait until `item` is handled and return its outcome; raise `Overloaded` or `Stopped` if it is not queued."""
        if self._stopping:
            raise Stopped
        full = self._count >= self._limits.waiting_items
        if full or (self._count and self._bytes + size > self._limits.waiting_bytes):
            raise Overloaded
        done: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(item, key, size, done)
        self._waiting.append(waiting)
        self._count += 1
        self._bytes += size
        self._wake.set()
        if len(self._waiting) >= self._limits.batch_items:
            self._full.set()
        try:
            return await done
        except asyncio.CancelledError:
            # While a batch takes long, callers time out and retry; their abandoned items must not fill the queue.
            if waiting.waits:
                self._release(waiting)
                self._waiting.remove(waiting)
            raise

    async def run(self) -> None:
        """Handle batches until `stop` is called and the queue is empty."""
        while not (self._stopping and not self._waiting):
            if not self._waiting:
                self._wake.clear()
                await self._wake.wait()
                continue
            await self._gather()
            await self._handle_batch(self._take())

    def stop(self) -> None:
        """Accept no new items; items that already wait are still handled."""
        self._stopping = True
        self._wake.set()
        self._full.set()

    async def _gather(self) -> None:
        """Let the event loop deliver requests that have already arrived at the socket, as long as it brings some."""
        quiet = 0
        while quiet < _QUIET_ITERATIONS and len(self._waiting) < self._limits.batch_items and not self._stopping:
            before = len(self._waiting)
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._waiting) == before else 0
        is_full = len(self._waiting) >= self._limits.batch_items or self._stopping
        if not is_full and asyncio.get_running_loop().time() < self._lingers_until:
            await self._linger()

    async def _linger(self) -> None:
        """Wait until the batch is full, the time is over or the batcher stops."""
        self._full.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.linger_seconds):
                await self._full.wait()

    def _take(self) -> list[_Waiting[_Item, _Result]]:
        batch: list[_Waiting[_Item, _Result]] = []
        keys: set[Hashable] = set()
        later: list[_Waiting[_Item, _Result]] = []
        size = 0
        while self._waiting and len(batch) < self._limits.batch_items and size < self._limits.batch_bytes:
            waiting = self._waiting.popleft()
            if waiting.key in keys:
                later.append(waiting)
                continue
            self._release(waiting)
            # The caller gave up (deadline, broken connection): its request must not be carried out.
            if waiting.done.done():
                continue
            keys.add(waiting.key)
            batch.append(waiting)
            size += waiting.size
        self._waiting.extendleft(reversed(later))
        return batch

    def _release(self, waiting: _Waiting[_Item, _Result]) -> None:
        waiting.waits = False
        self._count -= 1
        self._bytes -= waiting.size

    async def _handle_batch(self, batch: list[_Waiting[_Item, _Result]]) -> None:
        if not batch:
            return
        try:
            outcomes = await self._handle([waiting.item for waiting in batch])
        except Exception as error:  # noqa: BLE001 - every submitter must get the error
            outcomes = [error] * len(batch)
        for waiting, outcome in zip(batch, outcomes, strict=True):
            if waiting.done.done():
                continue
            if isinstance(outcome, BaseException):
                waiting.done.set_exception(outcome)
            else:
                waiting.done.set_result(outcome)
        if len(batch) > 1:
            self._lingers_until = asyncio.get_running_loop().time() + self._limits.linger_seconds
