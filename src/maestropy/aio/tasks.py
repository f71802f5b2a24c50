"""Tasks with an owner and a name, and loops that survive a bad turn."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any


class Crew:
    """The tasks of one process. When one of them fails, `wait` raises and the rest are cancelled by `stop`."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], str] = {}

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` as a named task of this crew."""
        task = asyncio.create_task(work, name=name)
        self._tasks[task] = name
        return task

    async def wait(self) -> None:
        """Return when a task ended; raise if it failed."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    def check(self) -> None:
        """Raise what a task failed with, if one did."""
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()

    async def stop(self) -> None:
        """Cancel what still runs and wait for it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()


def join(group: asyncio.TaskGroup, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """Run `work` as a named task of a group; not if the group is ending, for then nobody needs it any more."""
    try:
        return group.create_task(work, name=name)
    except RuntimeError:
        work.close()
        return None


async def apart(work: Coroutine[Any, Any, None]) -> None:
    """Run `work` in a task of its own; whoever is cancelled while waiting here learns of that and of nothing else.

    Before Python 3.13 a task group that fails at the very moment its task is cancelled raises the failure and forgets
    the cancellation: whoever catches the failure and goes on would never end.
    """
    task = asyncio.create_task(work, name="apart")
    try:
        await asyncio.wait([task])
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    task.result()


async def first(waits: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Return when one of `waits` has ended; the others are cancelled."""
    running = [asyncio.create_task(wait, name="wait for the first") for wait in waits]
    try:
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def every(seconds: float, turn: Callable[[], Awaitable[None]], *, on_error: Callable[[Exception], None]) -> None:
    """Do `turn` for ever, with a pause after each; a failed turn is reported and the next one comes all the same."""
    while True:
        await attempt(turn, on_error=on_error)
        await asyncio.sleep(seconds)


async def attempt(turn: Callable[[], Awaitable[None]], *, on_error: Callable[[Exception], None]) -> bool:
    """Do `turn` once; say whether it went well."""
    try:
        await turn()
    except Exception as error:  # noqa: BLE001 - the loop around it must outlive any single failure
        on_error(error)
        return False
    return True
