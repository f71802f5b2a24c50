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


class Gated:
    """A queue whose keys that begin with `slow` are stuck until they are unblocked; it is its own gate."""

    def __init__(self, *, workers: int, slow_at_once: int) -> None:
        self.running: list[str] = []
        self.handled: list[str] = []
        self._slow_at_once = slow_at_once
        self._unblocked = asyncio.Event()
        self.queue = keyed_queue.KeyedQueue[str](
            self._handle,
            workers=workers,
            backoff=keyed_queue.Backoff(),
            on_error=lambda _key, _error: None,
            gate=self,
        )

    def unblock(self) -> None:
        self._unblocked.set()

    def may_start(self, key: str) -> bool:
        return not key.startswith("slow") or len(self.slow_running) < self._slow_at_once

    def started(self, key: str) -> None:
        self.running.append(key)

    def is_stuck(self, key: str) -> bool:
        return key.startswith("slow")

    def ended(self, key: str) -> bool:
        self.running.remove(key)
        return key.startswith("slow")

    @property
    def slow_running(self) -> list[str]:
        return [key for key in self.running if key.startswith("slow")]

    async def _handle(self, key: str) -> None:
        if key.startswith("slow"):
            await self._unblocked.wait()
        self.handled.append(key)


@contextlib.asynccontextmanager
async def running_queue(queue: keyed_queue.KeyedQueue[str]) -> AsyncIterator[None]:
    worker = asyncio.create_task(queue.run())
    try:
        yield
    finally:
        worker.cancel()
        await asyncio.wait([worker])


async def test_stuck_handlers_are_replaced_so_that_other_keys_are_handled() -> None:
    gated = Gated(workers=2, slow_at_once=9)
    async with running_queue(gated.queue):
        for key in ("slow0", "slow1", "fast0", "fast1"):
            gated.queue.add(key)
        await waiting.until(lambda: gated.handled == ["fast0", "fast1"])
        gated.unblock()
        await waiting.until(lambda: len(gated.queue) == 0)
        # The workers beyond the usual number have ended, or the next slow keys would all run.
        gated.handled.clear()
        gated._unblocked.clear()
        for number in range(9):
            gated.queue.add(f"slow{number}")
        await waiting.until(lambda: len(gated.slow_running) == 6)


async def test_key_that_may_not_start_lets_others_pass_and_is_handled_when_there_is_room() -> None:
    gated = Gated(workers=2, slow_at_once=1)
    async with running_queue(gated.queue):
        for key in ("slow0", "slow1", "slow2", "fast0"):
            gated.queue.add(key)
        await waiting.until(lambda: gated.handled == ["fast0"])
        assert gated.slow_running == ["slow0"]
        assert len(gated.queue) == 3
        gated.queue.add("slow1")
        gated.unblock()
        await waiting.until(lambda: len(gated.queue) == 0)
        assert sorted(gated.handled) == ["fast0", "slow0", "slow1", "slow2"]
