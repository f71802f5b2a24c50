"""An event loop whose time is a number: when nothing can run, it jumps to the next timer instead of sleeping.

An hour of back-off costs as much as the work that is done in it. Nothing is left to chance either: tasks are numbered,
because sets of tasks (asyncio keeps some) are otherwise walked in the order of their addresses, which differ from run
to run. What else could differ between two processes is the hash of strings: `PYTHONHASHSEED` must be set.
"""

import asyncio
import itertools
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from pymaestro.aio.clock import Clock

EPOCH = 1_800_000_000.0
"""Where the wall clock of every simulation begins."""


class Stuck(Exception):
    """Nothing can run, and no timer will ever change that."""


class _Selector(selectors.SelectSelector):
    """Waits for nobody: the loop's time moves on by what it would have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.loop: VirtualLoop | None = None

    def select(self, timeout: float | None = None) -> list[Any]:
        assert self.loop is not None
        if timeout is None:
            raise Stuck
        if timeout > 0:
            self.loop.now += timeout
        return []


class _Task(asyncio.Task):  # type: ignore[type-arg]
    """A task with a number for a hash."""

    numbers = itertools.count()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.number = next(_Task.numbers)
        super().__init__(*args, **kwargs)

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs a simulation."""

    def __init__(self) -> None:
        selector = _Selector()
        self.now = 0.0
        super().__init__(selector)
        selector.loop = self
        _Task.numbers = itertools.count()
        self.set_task_factory(_make_task)
        self._clock_resolution = 1e-9
        self.dial: Callable[[Any, str], Awaitable[Any]] = _nobody

    def time(self) -> float:
        return self.now

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
            left = sorted(asyncio.all_tasks(self), key=hash)
            for task in left:
                task.cancel()
            self.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.run_until_complete(self.shutdown_asyncgens())
            asyncio.set_event_loop(None)
            self.close()


async def _nobody(_protocol: Any, _host: str) -> Any:
    raise ConnectionRefusedError


def _make_task(loop: asyncio.AbstractEventLoop, work: Any, **kwargs: Any) -> _Task:
    return _Task(work, loop=loop, **kwargs)
