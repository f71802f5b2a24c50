"""Run a coroutine until it ends or a signal requests the stop.

SIGTERM stops it cleanly with exit code 0, Ctrl-C with 130. A second signal cancels the clean stop. asyncio is imported
when a coroutine runs, because every command imports this module, also for `--help`.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from maestropy.cli.errors import INTERRUPTED, OUTPUT_CLOSED


class Stop:
    """The request to stop; `signal_number` is the signal that made it."""

    def __init__(self) -> None:
        import asyncio

        self._event = asyncio.Event()
        self.signal_number: int | None = None

    def request(self, signal_number: int) -> None:
        """Request the stop."""
        self.signal_number = self.signal_number or signal_number
        self._event.set()

    @property
    def is_requested(self) -> bool:
        """Whether the stop has been requested."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Wait until the stop is requested."""
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
        if stop.is_requested:
            task.cancel()
        stop.request(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
    try:
        code = await work(stop)
    except asyncio.CancelledError:
        if not stop.is_requested:
            raise
        code = 1
    return INTERRUPTED if stop.signal_number == signal.SIGINT else code


async def run_until(stop: Stop, work: Coroutine[Any, Any, None], *, grace_seconds: float = 0.0) -> None:
    """Run `work` until it ends; when `stop` is requested, cancel it and wait until it has cleaned up.

    `grace_seconds` is for work that ends by itself after the request; it is cancelled when they are over.
    """
    import asyncio

    async with asyncio.TaskGroup() as group:
        working = group.create_task(work, name="work")
        waiting = group.create_task(stop.wait(), name="wait for stop request")
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if grace_seconds and not working.done():
            await asyncio.wait({working}, timeout=grace_seconds)
        working.cancel()
        waiting.cancel()


def exit_after(seconds: float) -> None:
    """End the process with code 1 if it still runs after so long.

    For processes that run code of others in threads: Python cannot end a thread, and waits at its own end for some.
    """
    import threading
    import time

    def end() -> None:
        time.sleep(seconds)
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"the process is ended: it did not stop within {seconds:.0f} seconds\n")
            sys.stderr.flush()
        os._exit(1)

    threading.Thread(target=end, name="end of the process", daemon=True).start()


def exit_when_output_closes() -> None:
    """Exit when the reader of our output pipe closes it, also while there is nothing to write."""
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
    pipe.register(descriptor, 0)  # POLLERR is always reported

    def wait() -> None:
        pipe.poll()
        os._exit(OUTPUT_CLOSED)

    threading.Thread(target=wait, name="reader", daemon=True).start()


def stop_when_input_closes(descriptor: int, stop: Stop) -> None:
    """Request the stop when the other side closes the pipe `descriptor`."""
    import asyncio

    loop = asyncio.get_running_loop()

    def on_readable() -> None:
        with contextlib.suppress(BlockingIOError):
            if not os.read(descriptor, 64):
                loop.remove_reader(descriptor)
                stop.request(signal.SIGTERM)

    loop.add_reader(descriptor, on_readable)
