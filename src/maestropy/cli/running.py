"""Run something until it ends or somebody asks it to stop.

SIGTERM ends in good order with exit code 0, Ctrl-C likewise with 130. A second signal does not wait for good order.
asyncio is imported when something runs: every command imports this module, also to explain itself.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from maestropy.cli.failure import INTERRUPTED, NOBODY_READS


class Stop:
    """Somebody's wish that we stop; `signal_number` says whose."""

    def __init__(self) -> None:
        import asyncio

        self._event = asyncio.Event()
        self.signal_number: int | None = None

    def ask(self, signal_number: int) -> None:
        """Ask for the end."""
        self.signal_number = self.signal_number or signal_number
        self._event.set()

    @property
    def is_asked(self) -> bool:
        """Whether the end has been asked for."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Return when the end is asked for."""
        await self._event.wait()


def run(work: Callable[[Stop], Awaitable[int]]) -> int:
    """Run `work` to its end and return the exit code."""
    import asyncio

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_with_signals(work))


def _loop_factory() -> Callable[[], Any] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _with_signals(work: Callable[[Stop], Awaitable[int]]) -> int:
    import asyncio

    stop = Stop()
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task

    def on_signal(number: int) -> None:
        if stop.is_asked:
            task.cancel()
        stop.ask(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
    try:
        code = await work(stop)
    except asyncio.CancelledError:
        if not stop.is_asked:
            raise
        code = 1
    return INTERRUPTED if stop.signal_number == signal.SIGINT else code


async def until(stop: Stop, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until it ends by itself; when `stop` is asked for, cancel it and let it clean up."""
    import asyncio

    async with asyncio.TaskGroup() as group:
        working = group.create_task(work, name="work")
        waiting = group.create_task(stop.wait(), name="wait for the end")
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        working.cancel()
        waiting.cancel()


def end_with_reader() -> None:
    """End this process when whoever reads its output leaves, also while there is nothing to write."""
    import select
    import stat
    import threading

    try:
        descriptor = sys.stdout.fileno()
        is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        return
    if not is_pipe:
        return
    pipe = select.poll()
    pipe.register(descriptor, 0)  # that the other end is gone is told without being asked for

    def wait() -> None:
        pipe.poll()
        os._exit(NOBODY_READS)

    threading.Thread(target=wait, name="reader", daemon=True).start()


def stop_when_closed(descriptor: int, stop: Stop) -> None:
    """Ask for the end when the other side of the pipe `descriptor` is gone."""
    import asyncio

    loop = asyncio.get_running_loop()

    def on_readable() -> None:
        with contextlib.suppress(BlockingIOError):
            if not os.read(descriptor, 64):
                loop.remove_reader(descriptor)
                stop.ask(signal.SIGTERM)

    loop.add_reader(descriptor, on_readable)
