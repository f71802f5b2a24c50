"""An event loop whose time is a number: when nothing can run, it jumps to the next timer instead of sleeping.

An hour of back-off costs as much as the work that is done in it. Nothing is left to chance either: what is due at the
same moment runs in the order in which it was asked for, and tasks are numbered, because sets of tasks (asyncio keeps
some) are otherwise walked in the order of their addresses, which differ from run to run. What else could differ between
two processes is the hash of strings: `PYTHONHASHSEED` must be set.

There are no sockets, signals or threads here, so the loop is a queue and a heap, at a third of the price of asyncio's.
"""

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any

from maestropy.aio.clock import Clock

EPOCH = 1_800_000_000.0
"""Where the wall clock of every simulation begins."""


class Stuck(Exception):
    """Nothing can run, and no timer will ever change that."""


class _Call(list):  # type: ignore[type-arg]  # its three members are of three types
    """A callback, its arguments and its context; nothing when it was cancelled. Stands for asyncio's handles.

    A list, because no function of ours runs to make one: there are thousands in every run.
    """

    __slots__ = ("moment",)
    moment: float

    def when(self) -> float:
        return self.moment  # set where it is asked for

    def cancel(self) -> None:
        self.clear()

    def cancelled(self) -> bool:
        return not self


class _Task(asyncio.Task):  # type: ignore[type-arg]
    """A task with a number for a hash."""

    numbers = itertools.count()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.number = next(_Task.numbers)
        super().__init__(*args, **kwargs)

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs a simulation."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._due: deque[_Call] = deque()
        self._timers: list[tuple[float, int, _Call]] = []
        self._turns = itertools.count()
        self.tasks: list[_Task] = []
        """All there were, in order; asyncio's own list has those of earlier runs, too, until they are collected."""
        _Task.numbers = itertools.count()
        self.set_task_factory(_make_task)  # type: ignore[arg-type]  # for this loop only
        self.dial: Callable[[Any, str], Awaitable[Any]] = _nobody

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # a handle of ours
        call = _Call((callback, args, context or copy_context()))
        self._due.append(call)
        return call

    # asyncio closes forgotten generators by it; there are no threads here.
    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # the same

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # a handle of ours
        call = _Call((callback, args, context or copy_context()))
        call.moment = when
        heapq.heappush(self._timers, (when, next(self._turns), call))
        return call

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # a handle of ours
        call = _Call((callback, args, context or copy_context()))
        call.moment = self.now + delay
        heapq.heappush(self._timers, (call.moment, next(self._turns), call))
        return call

    def _run_once(self) -> None:
        """Run all that can run now, or move on to the next moment; called by asyncio until it is told to stop."""
        due = self._due
        if not due:
            self._jump()
        while due and not self._stopping:  # type: ignore[attr-defined]  # of BaseEventLoop
            call = due.popleft()
            if not call:
                continue
            callback, args, context = call
            try:
                context.run(callback, *args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # as asyncio does: a callback must not end the loop
                self.call_exception_handler({"message": f"Exception in callback {callback!r}", "exception": error})

    def _jump(self) -> None:
        """Move on to the next moment at which something is due."""
        timers = self._timers
        while timers and not timers[0][2]:
            heapq.heappop(timers)
        if not timers:
            raise Stuck
        self.now = max(self.now, timers[0][0])
        while timers and timers[0][0] <= self.now:
            self._due.append(heapq.heappop(timers)[2])

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        """Connect through what is played as a network; the host names who calls."""
        protocol = protocol_factory()
        return await self.dial(protocol, str(host)), protocol

    def clock(self) -> Clock:
        """Return the clock that everybody in the simulation is given."""
        return Clock(epoch=lambda: EPOCH + self.now, monotonic=self.time)

    def play(self, story: Coroutine[Any, Any, Any]) -> Any:
        """Run `story` to its end, and cancel what it leaves behind."""
        asyncio.set_event_loop(self)
        try:
            return self.run_until_complete(story)
        finally:
            left = [task for task in self.tasks if not task.done()]
            for task in left:
                task.cancel()
            self.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.run_until_complete(self.shutdown_asyncgens())
            asyncio.set_event_loop(None)
            self.close()
            self.tasks.clear()


async def _nobody(_protocol: Any, _host: str) -> Any:
    raise ConnectionRefusedError


def _make_task(loop: VirtualLoop, work: Any, **kwargs: Any) -> _Task:
    task = _Task(work, loop=loop, **kwargs)
    loop.tasks.append(task)
    return task
