"""The client for programs that do not `await`: the same methods, the same code, on an event loop in the background.

Nothing is written twice: every method here is made from the asynchronous one, with its arguments, its documentation
and its types. All clients of a process share one loop and one thread, which ends with the last of them.
"""

import asyncio
import contextlib
import functools
import queue
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack

from maestropy.sdk import settings
from maestropy.sdk.bundles import AsyncBundles
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.consumers import AsyncConsumers
from maestropy.sdk.errors import MaestroError
from maestropy.sdk.works import AsyncWorks

P = ParamSpec("P")
Result = TypeVar("Result")


class Loop:
    """An event loop in a thread, shared by all who use it at the same time."""

    _lock = threading.Lock()
    _shared: "Loop | None" = None

    def __init__(self) -> None:
        self._users = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="maestro-client", daemon=True)
        self._thread.start()

    @classmethod
    def acquire(cls) -> "Loop":
        """Return the loop of this process, starting it for the first user."""
        with cls._lock:
            if cls._shared is None:
                cls._shared = Loop()
            cls._shared._users += 1
            return cls._shared

    def release(self) -> None:
        """Say that one user is done; the last one stops the loop."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            Loop._shared = None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    @property
    def is_closed(self) -> bool:
        """Whether its last user is done."""
        return self._loop.is_closed()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return what `work` returns; an interrupt here (Ctrl-C) cancels it there."""
        if threading.current_thread() is self._thread:
            work.close()
            raise MaestroError("a blocking call was made on the client's own loop", advice="use AsyncMaestro there")
        if self.is_closed:
            work.close()
            raise MaestroError("the client is closed", advice="make a new one")
        call = _Call(work)
        try:
            self._loop.call_soon_threadsafe(call.begin)
            done = call.done.get()
        except BaseException:
            self._loop.call_soon_threadsafe(call.cancel)
            # What was begun is given the time to end in good order, so that nothing is left behind.
            with contextlib.suppress(Exception, asyncio.CancelledError):
                call.done.get(timeout=5).result()
            raise
        return done.result()


class _Call(Generic[Result]):
    """Work on the loop, and where somebody in another thread waits for its end.

    Not a future of `concurrent.futures`: Ctrl-C between two instructions can leave the lock of one taken for ever, and
    the loop would stop at it. This queue has no such moment.
    """

    def __init__(self, work: Coroutine[Any, Any, Result]) -> None:
        self._work = work
        self._task: asyncio.Task[Result] | None = None
        self.done: queue.SimpleQueue[asyncio.Task[Result]] = queue.SimpleQueue()

    def begin(self) -> asyncio.Task[Result]:
        """Begin, on the loop."""
        self._task = asyncio.ensure_future(self._work)
        self._task.add_done_callback(self.done.put)
        return self._task

    def cancel(self) -> None:
        """Cancel, on the loop; what did not even begin ends like the rest."""
        (self._task or self.begin()).cancel()


class _Handle:
    """Something whose asynchronous original lives on the loop."""

    def __init__(self, original: Any, loop: Loop) -> None:
        self._original = original
        self._loop = loop


class _Method(Generic[P, Result]):
    """A method that waits for the result of an asynchronous one."""

    def __init__(self, original: Callable[Concatenate[Any, P], Coroutine[Any, Any, Result]]) -> None:
        self._function = original
        self.__doc__ = original.__doc__

    def __get__(self, handle: _Handle, owner: type | None = None) -> Callable[P, Result]:
        def method(*args: P.args, **kwargs: P.kwargs) -> Result:
            return handle._loop.run(self._function(handle._original, *args, **kwargs))

        return functools.wraps(self._function)(method)


class _Stream(Generic[P, Result]):
    """A method that yields what an asynchronous one yields."""

    def __init__(self, original: Callable[Concatenate[Any, P], AsyncIterator[Result]]) -> None:
        self._function = original
        self.__doc__ = original.__doc__

    def __get__(self, handle: _Handle, owner: type | None = None) -> Callable[P, "Items[Result]"]:
        def method(*args: P.args, **kwargs: P.kwargs) -> Items[Result]:
            return Items(self._function(handle._original, *args, **kwargs), handle._loop)

        return functools.wraps(self._function)(method)


class Items(Iterator[Result]):
    """What an asynchronous iterator yields; `close` it, or use it in `with`, to end early."""

    def __init__(self, source: AsyncIterator[Result], loop: Loop) -> None:
        self._source = source
        self._loop = loop

    def __next__(self) -> Result:
        try:
            return self._loop.run(_next(self._source))
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self) -> None:
        """End the iteration; with its client it has ended already."""
        if not self._loop.is_closed:
            self._loop.run(_close(self._source))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def _next(source: AsyncIterator[Result]) -> Result:
    return await anext(source)


async def _close(source: Any) -> None:
    await source.aclose()


class Works(_Handle):
    """The works of one consumer; with no consumer, of all of them (for `list` and `watch`)."""

    get = _Method(AsyncWorks.get)
    list = _Stream(AsyncWorks.list)
    create = _Method(AsyncWorks.create)
    patch = _Method(AsyncWorks.patch)
    apply = _Method(AsyncWorks.apply)
    delete = _Method(AsyncWorks.delete)
    watch = _Stream(AsyncWorks.watch)
    wait_for = _Method(AsyncWorks.wait_for)

    def id_of(self, name: str) -> str:
        """Return the id under which server, agent and logs know the work."""
        original: AsyncWorks = self._original
        return original.id_of(name)


class Consumers(_Handle):
    """The registered clusters."""

    get = _Method(AsyncConsumers.get)
    page = _Method(AsyncConsumers.page)
    list = _Stream(AsyncConsumers.list)
    create = _Method(AsyncConsumers.create)
    ensure = _Method(AsyncConsumers.ensure)
    update = _Method(AsyncConsumers.update)
    delete = _Method(AsyncConsumers.delete)


class Bundles(_Handle):
    """The resource bundles of all sources, as the REST API shows them."""

    get = _Method(AsyncBundles.get)
    page = _Method(AsyncBundles.page)
    list = _Stream(AsyncBundles.list)
    apply = _Method(AsyncBundles.apply)
    delete = _Method(AsyncBundles.delete)


class Maestro:
    """A connection to Maestro for programs that do not `await`; threads may share it.

    What is not given is taken from the environment, as for `AsyncMaestro`.

    >>> with Maestro(source="my-adapter") as client:
    ...     works = client.works("us-east-mgmt-01")
    ...     works.apply(Work("hello").add(config_map))
    ...     print(works.wait_for("hello", "Applied", timeout=60).conditions)
    """

    def __init__(self, *, environ: Mapping[str, str] | None = None, **options: Unpack[settings.Options]) -> None:
        self._client = AsyncMaestro(environ=environ, **options)
        self._loop: Loop | None = Loop.acquire()
        self.consumers = Consumers(self._client.consumers, self._loop)
        """The registered clusters."""
        self.bundles = Bundles(self._client.bundles, self._loop)
        """The resource bundles of all sources, as the REST API shows them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def works(self, consumer: str | None) -> Works:
        """Return the works of this source on one cluster; None means on all of them, for `list` and `watch`."""
        if self._loop is None:
            raise MaestroError("the client is closed", advice="make a new one")
        return Works(self._client.works(consumer), self._loop)

    def all_works(self) -> Works:
        """Return the works of this source on all clusters, for `list` and `watch`."""
        return self.works(None)

    def close(self) -> None:
        """End all watches and close the connections; calling it twice is fine."""
        loop, self._loop = self._loop, None
        if loop is not None:
            try:
                loop.run(self._client.close())
            finally:
                loop.release()
