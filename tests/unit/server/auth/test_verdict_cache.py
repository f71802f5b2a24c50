"""The cache of verdicts: expiry, capacity, and one review at a time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from maestropy.server.auth.review_cache import NEGATIVE_SECONDS, POSITIVE_SECONDS, VerdictCache


class Oracle:
    """Counts how often it is asked; answers when told to."""

    def __init__(self, verdict: bool = True) -> None:
        self.verdict = verdict
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.failure: Exception | None = None

    async def __call__(self) -> bool:
        self.asked += 1
        await self.may_answer.wait()
        if self.failure:
            raise self.failure
        return self.verdict


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@contextlib.asynccontextmanager
async def remembering(*, capacity: int = 8) -> AsyncIterator[tuple[VerdictCache[bool], Clock]]:
    clock = Clock()
    yield VerdictCache(clock=clock, capacity=capacity), clock


@pytest.mark.parametrize(
    ("verdict", "seconds"),
    [pytest.param(True, POSITIVE_SECONDS, id="grant"), pytest.param(False, NEGATIVE_SECONDS, id="denial")],
)
async def test_verdict_expires(verdict: bool, seconds: float) -> None:
    async with remembering() as (memory, clock):
        oracle = Oracle(verdict)
        assert await memory.get("k", oracle) is verdict
        clock.now += seconds - 0.01
        assert await memory.get("k", oracle) is verdict
        assert oracle.asked == 1
        clock.now += 0.02
        assert await memory.get("k", oracle) is verdict
        assert oracle.asked == 2


async def test_least_recently_used_verdict_is_evicted_first() -> None:
    async with remembering() as (memory, _):
        first, others = Oracle(), Oracle()
        await memory.get("first", first)
        for number in range(20):
            await memory.get(number, others)
            await memory.get("first", first)
            assert len(memory) <= 8
        assert first.asked == 1
        await memory.get(0, others)
        assert others.asked == 21


async def settle() -> None:
    """Let every task run as far as it can; nothing here waits for time or the network."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_concurrent_callers_share_one_review() -> None:
    async with remembering() as (memory, _):
        oracle = Oracle()
        oracle.may_answer.clear()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(memory.get("k", oracle)) for _ in range(50)]
            await settle()
            oracle.may_answer.set()
        assert [task.result() for task in tasks] == [True] * 50
        assert oracle.asked == 1


async def test_failure_is_shared_but_not_cached() -> None:
    async with remembering() as (memory, _):
        oracle = Oracle()
        oracle.failure = ConnectionError("down")
        oracle.may_answer.clear()
        waiting = asyncio.gather(*(memory.get("k", oracle) for _ in range(5)), return_exceptions=True)
        await settle()
        oracle.may_answer.set()
        assert all(isinstance(outcome, ConnectionError) for outcome in await waiting)
        assert oracle.asked == 1
        oracle.failure = None
        assert await memory.get("k", oracle) is True


async def test_next_caller_reviews_after_a_cancellation() -> None:
    async with remembering() as (memory, _):
        oracle = Oracle()
        oracle.may_answer.clear()
        asker = asyncio.ensure_future(memory.get("k", oracle))
        waiters = asyncio.gather(*(memory.get("k", oracle) for _ in range(5)))
        await settle()
        asker.cancel()
        await settle()
        oracle.may_answer.set()
        assert await waiters == [True] * 5
        assert oracle.asked == 2
        assert asker.cancelled()
