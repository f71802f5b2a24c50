"""Start tasks that have an owner and a name, and run periodic tasks that survive a failed run."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class Abandoned(Exception):
    """What a piece of work was for has ended before the work."""


class TaskOwner:
    """Owns the tasks of one process or component: `wait` raises when one of them fails, `stop` cancels all of them."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], str] = {}

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` as a named task of this owner."""
        task = asyncio.create_task(work, name=name)
        self._tasks[task] = name
        return task

    async def wait(self) -> None:
        """Return when a task has ended; raise its error if it failed."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    def check(self) -> None:
        """Raise the error of a task that has failed, if there is one."""
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()

    async def stop(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()


def start_in_group(group: asyncio.TaskGroup, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """Run `work` as a named task of a group; return None without running it when the group is already ending."""
    try:
        return group.create_task(work, name=name)
    except RuntimeError:
        work.close()
        return None


async def run_isolated(work: Coroutine[Any, Any, None]) -> None:
    """Run `work` in a task of its own, so that a caller that is cancelled always gets the cancellation.

    Before Python 3.13 a task group that fails at the moment its task is cancelled raises the failure and loses the
    cancellation: a caller that catches the failure and continues would never end.
    """
    task = asyncio.create_task(work, name="isolated")
    try:
        await asyncio.wait([task])
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    task.result()


async def wait_for_first(waits: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Return when one of `waits` has ended; the others are cancelled."""
    running = [asyncio.create_task(wait, name="wait for the first") for wait in waits]
    try:
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def run_while(work: Coroutine[Any, Any, _Result], *, ending: Coroutine[Any, Any, None]) -> _Result:
    """Return the result of `work`; if `ending` ends first, cancel the work and raise `Abandoned`."""
    working = asyncio.create_task(work, name="run while")
    watching = asyncio.create_task(ending, name="watch for the end")
    try:
        await asyncio.wait([working, watching], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Abandoned
    finally:
        working.cancel()
        watching.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)
    return working.result()


async def run_for(seconds: float | None, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None] | None:
    """Run `work`; return None at its end, or after `seconds` its task, which belongs to the caller then."""
    task, is_left = asyncio.create_task(work, name=name), False
    try:
        await asyncio.wait([task], timeout=seconds)
        is_left = not task.done()
    finally:
        if not is_left:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    if is_left:
        return task
    task.result()
    return None


async def run_periodically(
    seconds: float, run: Callable[[], Awaitable[None]], *, on_error: Callable[[Exception], None]
) -> None:
    """Call `run` until cancelled, with a pause after each call; a failed call is passed to `on_error` and not fatal."""
    while True:
        await attempt(run, on_error=on_error)
        await asyncio.sleep(seconds)


async def attempt(run: Callable[[], Awaitable[None]], *, on_error: Callable[[Exception], None]) -> bool:
    """Call `run` once; return whether it succeeded, and pass its error to `on_error` otherwise."""
    try:
        await run()
    except Exception as error:  # noqa: BLE001 - the loop around it must survive any single failure
        on_error(error)
        return False
    return True
