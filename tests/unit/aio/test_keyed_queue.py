"""The order of keys: first come, first handled; a key that may be delayed lets others pass up to its maximum delay."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from maestropy.aio import keyed_queue
from tests import waiting

LONG, SHORT = 3600.0, 0.01


class OneWorker:
    """A queue with one worker that handles `first` until it is unblocked."""

    def __init__(self, *, results: dict[str, list[keyed_queue.RequeueAfter | Exception]] | None = None) -> None:
        self.handled: list[str] = []
        self.waited: list[float] = []
        self._results = results or {}
        self._unblocked = asyncio.Event()
        backoff = keyed_queue.Backoff(first_seconds=0.001)
        self.queue = keyed_queue.KeyedQueue[str](
            self._handle, workers=1, backoff=backoff, on_error=lambda _key, _error: None, meter=self
        )

    def added(self) -> None: ...

    def retried(self) -> None: ...

    def set_depth(self, depth: int) -> None: ...

    def finished(self, *, waited: float, worked: float) -> None:
        self.waited.append(waited)

    def unblock(self) -> None:
        self._unblocked.set()

    async def has_handled(self, *keys: str) -> None:
        """Wait until the queue is empty, and compare the handled keys."""
        await waiting.until(lambda: len(self.handled) >= len(keys) and not len(self.queue))
        assert self.handled == [*keys]

    async def _handle(self, key: str) -> keyed_queue.RequeueAfter | None:
        self.handled.append(key)
        await self._unblocked.wait()
        results = self._results.get(key)
        result = results.pop(0) if results else None
        if isinstance(result, Exception):
            raise result
        return result


@contextlib.asynccontextmanager
async def started(one_worker: Callable[[], OneWorker] = OneWorker) -> AsyncIterator[OneWorker]:
    worker_queue = one_worker()
    worker = asyncio.create_task(worker_queue.queue.run())
    try:
        worker_queue.queue.add("first")
        await waiting.until(lambda: worker_queue.handled == ["first"])
        yield worker_queue
    finally:
        worker.cancel()
        await asyncio.wait([worker])


async def add_delayed(one_worker: OneWorker, key: str, *, max_delay_seconds: float) -> None:
    before = len(one_worker.queue)
    one_worker.queue.add_after(key, 0, max_delay_seconds=max_delay_seconds)
    await waiting.until(lambda: len(one_worker.queue) > before)


async def test_keys_are_handled_once_in_the_order_of_adding() -> None:
    async with started() as one_worker:
        for key in "abcab":
            one_worker.queue.add(key)
        one_worker.unblock()
        await one_worker.has_handled("first", "a", "b", "c")


async def test_delayed_key_lets_others_pass() -> None:
    async with started() as one_worker:
        await add_delayed(one_worker, "delayed", max_delay_seconds=LONG)
        one_worker.queue.add("a")
        one_worker.queue.add("b")
        one_worker.unblock()
        await one_worker.has_handled("first", "a", "b", "delayed")
        # It was handled before it was due.
        assert one_worker.waited[-1] == 0


async def test_delayed_key_is_handled_after_its_maximum_delay() -> None:
    async with started() as one_worker:
        await add_delayed(one_worker, "delayed", max_delay_seconds=SHORT)
        overdue = asyncio.get_running_loop().time() + SHORT
        await waiting.until(lambda: asyncio.get_running_loop().time() > overdue)
        one_worker.queue.add("late")
        one_worker.unblock()
        await one_worker.has_handled("first", "delayed", "late")


async def test_delayed_key_that_is_added_again_moves_forward_and_is_handled_once() -> None:
    async with started() as one_worker:
        await add_delayed(one_worker, "delayed", max_delay_seconds=LONG)
        one_worker.queue.add("a")
        one_worker.queue.add("delayed")
        one_worker.queue.add("b")
        one_worker.unblock()
        await one_worker.has_handled("first", "a", "delayed", "b")


async def test_key_that_is_added_behind_lets_later_ones_pass() -> None:
    async with started() as one_worker:
        one_worker.queue.add("a")
        one_worker.queue.add_behind("a", max_delay_seconds=LONG)
        one_worker.queue.add_behind("check", max_delay_seconds=LONG)
        one_worker.queue.add("new")
        one_worker.unblock()
        await one_worker.has_handled("first", "a", "new", "check")


async def test_queued_key_is_not_delayed_by_a_later_delayed_add() -> None:
    async with started() as one_worker:
        one_worker.queue.add("a")
        one_worker.queue.add_after("a", 0, max_delay_seconds=LONG)
        one_worker.queue.add_after("b", 0)
        await waiting.until(lambda: len(one_worker.queue) == 3)
        one_worker.unblock()
        await one_worker.has_handled("first", "a", "b")


@pytest.mark.parametrize(
    ("result", "handled"),
    [
        pytest.param(keyed_queue.RequeueAfter(0), ["first", "a", "first"], id="requeued"),
        pytest.param(keyed_queue.RequeueAfter(0, LONG), ["first", "a", "first"], id="requeued-with-delay"),
        pytest.param(ValueError(), ["first", "a", "first"], id="failed"),
    ],
)
async def test_key_is_handled_again_after_requeue_or_failure(
    result: keyed_queue.RequeueAfter | Exception, handled: Sequence[str]
) -> None:
    async with started(lambda: OneWorker(results={"first": [result]})) as one_worker:
        one_worker.queue.add("a")
        one_worker.unblock()
        await one_worker.has_handled(*handled)


async def test_key_added_while_it_is_handled_is_handled_again() -> None:
    async with started() as one_worker:
        one_worker.queue.add("first")
        one_worker.queue.add("a")
        one_worker.unblock()
        await one_worker.has_handled("first", "a", "first")
