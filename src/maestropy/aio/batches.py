"""Group what arrives while the last group was being handled.

There are no timers: an idle batcher hands over a single item at once, a busy one hands over whatever has piled up and
whatever the event loop still has in its hands. That is how one commit comes to carry many requests without any request
waiting for others to show up.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# A request takes a few turns of the loop from the socket to us. Turns of an idle loop cost microseconds, and those of
# a busy one are work that has to be done anyway.
_QUIET_TURNS = 4


class Overloaded(Exception):
    """More is waiting than the batcher may hold; the caller should come back later."""


class Stopped(Exception):
    """The batcher is shutting down and takes nothing new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much may wait, and how much goes into one group."""

    group_items: int = 256
    group_bytes: int = 8 * 2**20
    waiting_items: int = 4096
    waiting_bytes: int = 64 * 2**20


@dataclass(slots=True, eq=False)
class _Waiting(Generic[Item, Result]):
    item: Item
    key: Hashable
    size: int
    done: asyncio.Future[Result]
    waits: bool = True
    """Whether it takes up room: it is in no group yet, and its caller is still there."""


class Batcher(Generic[Item, Result]):
    """Feeds groups of submitted items to one handler, and each outcome back to its submitter.

    No two items of one group have the same key, so a handler may treat a group as a set. The handler returns one
    outcome per item, in order; an exception among the outcomes is raised to that item's submitter alone.
    """

    def __init__(
        self,
        handle: Callable[[Sequence[Item]], Awaitable[Sequence[Result | BaseException]]],
        *,
        limits: Limits | None = None,
    ) -> None:
        self._handle = handle
        self._limits = limits or Limits()
        self._waiting: deque[_Waiting[Item, Result]] = deque()
        self._count = 0
        self._bytes = 0
        self._wake = asyncio.Event()
        self._stopping = False

    @property
    def depth(self) -> int:
        """How many items wait."""
        return self._count

    async def submit(self, item: Item, *, key: Hashable, size: int) -> Result:
        """Wait until `item` was handled and return its outcome."""
        if self._stopping:
            raise Stopped
        full = self._count >= self._limits.waiting_items
        if full or (self._count and self._bytes + size > self._limits.waiting_bytes):
            raise Overloaded
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(item, key, size, done)
        self._waiting.append(waiting)
        self._count += 1
        self._bytes += size
        self._wake.set()
        try:
            return await done
        except asyncio.CancelledError:
            # While a group takes long, callers give up and ask again; their old places must not keep others out.
            if waiting.waits:
                self._give_room(waiting)
                self._waiting.remove(waiting)
            raise

    async def run(self) -> None:
        """Handle groups until `stop` was called and nothing waits any more."""
        while not (self._stopping and not self._waiting):
            if not self._waiting:
                self._wake.clear()
                await self._wake.wait()
                continue
            await self._let_others_in()
            await self._handle_group(self._take())

    def stop(self) -> None:
        """Take nothing new; what already waits is still handled."""
        self._stopping = True
        self._wake.set()

    async def _let_others_in(self) -> None:
        """Let requests that have arrived, but not yet reached us, join the group: as long as the loop brings some."""
        quiet_turns = 0
        while quiet_turns < _QUIET_TURNS and len(self._waiting) < self._limits.group_items and not self._stopping:
            before = len(self._waiting)
            await asyncio.sleep(0)
            quiet_turns = quiet_turns + 1 if len(self._waiting) == before else 0

    def _take(self) -> list[_Waiting[Item, Result]]:
        group: list[_Waiting[Item, Result]] = []
        keys: set[Hashable] = set()
        later: list[_Waiting[Item, Result]] = []
        size = 0
        while self._waiting and len(group) < self._limits.group_items and size < self._limits.group_bytes:
            waiting = self._waiting.popleft()
            if waiting.key in keys:
                later.append(waiting)
                continue
            self._give_room(waiting)
            # A caller that gave up (deadline, broken connection) no longer wants this done.
            if waiting.done.done():
                continue
            keys.add(waiting.key)
            group.append(waiting)
            size += waiting.size
        self._waiting.extendleft(reversed(later))
        return group

    def _give_room(self, waiting: _Waiting[Item, Result]) -> None:
        waiting.waits = False
        self._count -= 1
        self._bytes -= waiting.size

    async def _handle_group(self, group: list[_Waiting[Item, Result]]) -> None:
        if not group:
            return
        try:
            outcomes = await self._handle([waiting.item for waiting in group])
        except Exception as error:  # noqa: BLE001 - whatever failed, every submitter must hear of it
            outcomes = [error] * len(group)
        for waiting, outcome in zip(group, outcomes, strict=True):
            if waiting.done.done():
                continue
            if isinstance(outcome, BaseException):
                waiting.done.set_exception(outcome)
            else:
                waiting.done.set_result(outcome)
