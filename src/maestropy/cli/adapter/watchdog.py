"""End the process if the adapter's own code keeps the interpreter: neither timeouts nor signals are seen then.

Python runs one thread at a time. A C function that does not let the others run, such as a regular expression with
exponential time, stops the event loop too. The timer of `faulthandler` is a thread that does not need the interpreter.
"""

import asyncio
import contextlib
import faulthandler
from collections.abc import AsyncIterator

_STANDARD_ERROR = 2
_PAUSE_SECONDS = 1.0


@contextlib.asynccontextmanager
async def ends_after(seconds: float) -> AsyncIterator[None]:
    """While entered, end the process with 1 and all tracebacks if the event loop does not run for so long."""
    # Before anything else runs: code that keeps the interpreter would also keep the task below from beginning.
    _set(seconds)
    async with asyncio.TaskGroup() as group:
        beating = group.create_task(_beat(seconds), name="watchdog of the event loop")
        try:
            yield
        finally:
            beating.cancel()
            faulthandler.cancel_dump_traceback_later()


async def _beat(seconds: float) -> None:
    while True:
        await asyncio.sleep(_PAUSE_SECONDS)
        _set(seconds)


def _set(seconds: float) -> None:
    faulthandler.dump_traceback_later(seconds, exit=True, file=_STANDARD_ERROR)
