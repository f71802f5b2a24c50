"""An event loop in a thread, for tests that have none: things run there while the test asks from outside."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")

_SECONDS = 60.0


class LoopThread:
    """A thread that runs a loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine there and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_SECONDS)

    @contextmanager
    def entered(self, context: AbstractAsyncContextManager[Result]) -> Iterator[Result]:
        """Keep an asynchronous context open there, entered and left by one task, as task groups demand."""
        leave = self.call(_event())
        entered: asyncio.Future[Result] = self.call(_future())

        async def keep() -> None:
            try:
                async with context as found:
                    entered.set_result(found)
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
    """Run a loop in a thread while entered."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=name, daemon=True)
    thread.start()
    try:
        yield LoopThread(loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_SECONDS)
        loop.close()
