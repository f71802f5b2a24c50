"""Run an event loop in a thread, for blocking tests."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")

_SECONDS = 60.0


class LoopThread:
    """An event loop in a thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the loop and return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_SECONDS)

    @contextmanager
    def entered(self, context: AbstractAsyncContextManager[Result]) -> Iterator[Result]:
        """Keep an asynchronous context open on the loop; one task enters and leaves it, as task groups require."""
        leave = self.call(_event())
        entered: asyncio.Future[Result] = self.call(_future())

        async def keep() -> None:
            try:
                async with context as value:
                    entered.set_result(value)
                    await leave.wait()
            except BaseException as error:
                if entered.done():
                    raise
                entered.set_exception(error)

        async def wait() -> Result:
            return await entered

        keeping = asyncio.run_coroutine_threadsafe(keep(), self._loop)
        try:
            yield self.call(wait())
        finally:
            self._loop.call_soon_threadsafe(leave.set)
            keeping.result(_SECONDS)


async def _event() -> asyncio.Event:
    return asyncio.Event()


async def _future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


@contextmanager
def loop_thread(name: str) -> Iterator[LoopThread]:
    """Run an event loop in a thread; a context manager."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=name, daemon=True)
    thread.start()
    try:
        yield LoopThread(loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_SECONDS)
        loop.close()
