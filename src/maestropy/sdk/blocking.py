"""Blocking client: the methods of the asynchronous client, on an event loop in a background thread.

Every method is derived from the asynchronous one, with its arguments, documentation and types. All clients of a process
share one loop and one thread, which ends when the last client is closed.
"""

import asyncio
import contextlib
import functools
import os
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from datetime import datetime
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.consumers import AsyncConsumers
from maestropy.sdk.errors import MaestroError
from maestropy.sdk.history import HistoryEntry
from maestropy.sdk.resource_bundles import AsyncResourceBundles
from maestropy.sdk.works import AsyncWorks

P = ParamSpec("P")
Result = TypeVar("Result")


class BackgroundLoop:
    """An event loop in a thread, shared by all open clients."""

    _lock = threading.Lock()
    _shared: "BackgroundLoop | None" = None

    def __init__(self) -> None:
        self._users = 0
        self._process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="maestro-client", daemon=True)
        self._thread.start()

    @classmethod
    def acquire(cls) -> "BackgroundLoop":
        """Return the loop of this process, starting it for the first user."""
        with cls._lock:
            if cls._shared is None:
                cls._shared = BackgroundLoop()
            cls._shared._users += 1
            return cls._shared

    def release(self) -> None:
        """Release the loop; the last user stops it."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            BackgroundLoop._shared = None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            # Here and not in `release`: a thread in which another loop runs, as in a notebook, cannot run this one.
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    @classmethod
    def forget(cls) -> None:
        """Let a forked process start a loop of its own: the thread of this one has stayed in the parent."""
        cls._lock = threading.Lock()
        cls._shared = None

    @property
    def is_inherited(self) -> bool:
        """Whether it is that of the process from which this one was forked."""
        return os.getpid() != self._process

    @property
    def is_closed(self) -> bool:
        """Whether the last user has released it."""
        return self._loop.is_closed()

    def run(self, function: Callable[[], Awaitable[Result]]) -> Result:
        """Call an asynchronous function on the loop and return its result; Ctrl-C cancels it.

        It gets the function and not its coroutine: Ctrl-C before the call begins would leave a coroutine that nobody
        awaits, and Python would print a warning about it.
        """
        if threading.current_thread() is self._thread:
            raise MaestroError("a blocking call was made on the client's own loop", advice="use AsyncMaestro there")
        if self.is_inherited:
            raise MaestroError(
                "the client was created before this process was forked, and its thread has stayed in the parent",
                advice="create the client after the fork, or start processes with the method spawn",
            )
        if self.is_closed:
            raise MaestroError("the client is closed", advice="create a new one")
        call = _Call(function)
        try:
            self._loop.call_soon_threadsafe(call.begin)
            done = call.done.get()
        except BaseException:
            self._loop.call_soon_threadsafe(call.cancel)
            # The cancelled coroutine gets time to clean up.
            with contextlib.suppress(Exception, asyncio.CancelledError):
                call.done.get(timeout=5).result()
            raise
        return done.result()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=BackgroundLoop.forget)


class _Call(Generic[Result]):
    """A call on the loop, and the queue on which another thread waits for its end.

    Not a future of `concurrent.futures`: Ctrl-C between two instructions can leave its lock held for ever, and the loop
    would block on it. A SimpleQueue cannot be left in such a state.
    """

    def __init__(self, function: Callable[[], Awaitable[Result]]) -> None:
        self._function = function
        self._task: asyncio.Task[Result] | None = None
        self.done: queue.SimpleQueue[asyncio.Task[Result]] = queue.SimpleQueue()

    def begin(self) -> asyncio.Task[Result]:
        """Start the task; called on the loop."""
        self._task = asyncio.ensure_future(self._run())
        self._task.add_done_callback(self.done.put)
        return self._task

    def cancel(self) -> None:
        """Cancel the task; called on the loop. A call that has not begun is begun and cancelled."""
        (self._task or self.begin()).cancel()

    async def _run(self) -> Result:
        return await self._function()


class _Handle:
    """A blocking wrapper of an object that belongs to the loop."""

    def __init__(self, original: Any, loop: BackgroundLoop) -> None:
        self._original = original
        self._loop = loop


class _Method(Generic[P, Result]):
    """A method that waits for the result of an asynchronous one."""

    def __init__(self, original: Callable[Concatenate[Any, P], Coroutine[Any, Any, Result]]) -> None:
        self._function = original
        self.__doc__ = original.__doc__

    def __get__(self, handle: _Handle, owner: type | None = None) -> Callable[P, Result]:
        def method(*args: P.args, **kwargs: P.kwargs) -> Result:
            return handle._loop.run(functools.partial(self._function, handle._original, *args, **kwargs))

        return functools.wraps(self._function)(method)


class _Stream(Generic[P, Result]):
    """A method that yields what an asynchronous one yields."""

    def __init__(self, original: Callable[Concatenate[Any, P], AsyncIterator[Result]]) -> None:
        self._function = original
        self.__doc__ = original.__doc__

    def __get__(self, handle: _Handle, owner: type | None = None) -> Callable[P, "BlockingIterator[Result]"]:
        def method(*args: P.args, **kwargs: P.kwargs) -> BlockingIterator[Result]:
            return BlockingIterator(self._function(handle._original, *args, **kwargs), handle._loop)

        return functools.wraps(self._function)(method)


class BlockingIterator(Iterator[Result]):
    """The items of an asynchronous iterator; `close` it, or use it in `with`, to end early."""

    def __init__(self, source: AsyncIterator[Result], loop: BackgroundLoop) -> None:
        self._source = source
        self._loop = loop

    def __next__(self) -> Result:
        try:
            return self._loop.run(functools.partial(_next, self._source))
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self) -> None:
        """End the iteration; a closed client has ended it already."""
        if not self._loop.is_inherited and not self._loop.is_closed:
            self._loop.run(functools.partial(_close, self._source))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def _next(source: AsyncIterator[Result]) -> Result:
    return await anext(source)


async def _close(source: Any) -> None:
    await source.aclose()


class Works(_Handle):
    """The works of one consumer; with no consumer, of all of them: for `list`, `watch`, `create` and `apply`."""

    get = _Method(AsyncWorks.get)
    list = _Stream(AsyncWorks.list)
    create = _Method(AsyncWorks.create)
    patch = _Method(AsyncWorks.patch)
    apply = _Method(AsyncWorks.apply)
    apply_many = _Method(AsyncWorks.apply_many)
    delete = _Method(AsyncWorks.delete)
    watch = _Stream(AsyncWorks.watch)
    wait_for = _Method(AsyncWorks.wait_for)
    history = _Stream(AsyncWorks.history)

    def id_of(self, name: str) -> str:
        """Return the ID of the work in server, agent and logs."""
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
    holds = _Method(AsyncConsumers.holds)
    hold = _Method(AsyncConsumers.hold)
    adopt = _Method(AsyncConsumers.adopt)
    adoption_plan = _Method(AsyncConsumers.adoption_plan)
    pauses = _Method(AsyncConsumers.pauses)
    pause = _Method(AsyncConsumers.pause)
    resume = _Method(AsyncConsumers.resume)
    resync = _Method(AsyncConsumers.resync)
    retire = _Method(AsyncConsumers.retire)
    sweep = _Method(AsyncConsumers.sweep)
    history = _Stream(AsyncConsumers.history)


class ResourceBundles(_Handle):
    """The resource bundles of all sources, as the REST API shows them."""

    get = _Method(AsyncResourceBundles.get)
    page = _Method(AsyncResourceBundles.page)
    list = _Stream(AsyncResourceBundles.list)
    apply = _Method(AsyncResourceBundles.apply)
    delete = _Method(AsyncResourceBundles.delete)
    resend = _Method(AsyncResourceBundles.resend)
    history = _Stream(AsyncResourceBundles.history)


def _with_options_of(
    model: Callable[Concatenate[AsyncMaestro, P], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate["Maestro", P], None]]:
    """Give a constructor the options of another, with their names, types and documentation; for editors and `help`."""

    def decorate(init: Callable[..., None]) -> Callable[Concatenate["Maestro", P], None]:
        return functools.wraps(model)(init)

    return decorate


class Maestro:
    """A blocking connection to Maestro; threads may share it.

    >>> with Maestro(source="my-adapter") as client:
    ...     works = client.works("us-east-mgmt-01")
    ...     works.apply(Work("hello").add(config_map))
    ...     print(works.wait_for("hello", "Applied", timeout=60).conditions)

    It works in any thread, also where an event loop runs, such as a notebook. A process that is forked later has to
    create its own: there every call of this client raises MaestroError.

    The options are those of `AsyncMaestro`.
    """

    @_with_options_of(AsyncMaestro.__init__)
    def __init__(self, **options: Any) -> None:
        self._client = AsyncMaestro(**options)
        self.settings = self._client.settings
        self._loop: BackgroundLoop | None = BackgroundLoop.acquire()
        self.consumers = Consumers(self._client.consumers, self._loop)
        """The registered clusters."""
        self.resource_bundles = ResourceBundles(self._client.resource_bundles, self._loop)
        """The resource bundles of all sources, as the REST API shows them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def works(self, consumer: str | None) -> Works:
        """Return the works of this source on one cluster; None means on all of them, as `all_works` does."""
        if self._loop is None:
            raise MaestroError("the client is closed", advice="create a new one")
        return Works(self._client.works(consumer), self._loop)

    def history(
        self,
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        kinds: str | Iterable[str] = (),
        newest_first: bool = False,
        limit: int | None = None,
    ) -> BlockingIterator[HistoryEntry]:
        """Yield the history of everything, for export; the token needs the role admin."""
        if self._loop is None:
            raise MaestroError("the client is closed", advice="create a new one")
        entries = self._client.history(since=since, until=until, kinds=kinds, newest_first=newest_first, limit=limit)
        return BlockingIterator(entries, self._loop)

    def all_works(self) -> Works:
        """Return the works of this source on all clusters, to list and watch; one to apply names its consumer."""
        return self.works(None)

    def close(self) -> None:
        """End all watches and close the connections; a second call, or one in a forked process, has no effect."""
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_inherited:
            try:
                loop.run(self._client.close)
            finally:
                loop.release()
