"""The short memory of verdicts: freshness, bounds, and one question at a time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from maestropy.server.auth.remembered import NEGATIVE_SECONDS, POSITIVE_SECONDS, Remembered


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


def run(scenario: Callable[[Remembered[bool], Clock], Awaitable[None]], *, capacity: int = 8) -> None:
    async def main() -> None:
        clock = Clock()
        await scenario(Remembered(clock=clock, capacity=capacity), clock)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("verdict", "seconds"),
    [pytest.param(True, POSITIVE_SECONDS, id="grant"), pytest.param(False, NEGATIVE_SECONDS, id="refusal")],
)
def test_verdict_is_fresh_for_a_while(verdict: bool, seconds: float) -> None:
    async def scenario(memory: Remembered[bool], clock: Clock) -> None:
        oracle = Oracle(verdict)
        assert await memory.get("k", oracle) is verdict
        clock.now += seconds - 0.01
        assert await memory.get("k", oracle) is verdict
        assert oracle.asked == 1
        clock.now += 0.02
        assert await memory.get("k", oracle) is verdict
        assert oracle.asked == 2

    run(scenario)


def test_least_recently_used_is_forgotten_first() -> None:
    async def scenario(memory: Remembered[bool], clock: Clock) -> None:
        first, others = Oracle(), Oracle()
        await memory.get("first", first)
        for number in range(20):
            await memory.get(number, others)
            await memory.get("first", first)
            assert len(memory) <= 8
        assert first.asked == 1
        await memory.get(0, others)
        assert others.asked == 21

    run(scenario)


async def settle() -> None:
    """Let every task run as far as it can; nothing here waits for time or the network."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_concurrent_questions_become_one() -> None:
    async def scenario(memory: Remembered[bool], clock: Clock) -> None:
        oracle = Oracle()
        oracle.may_answer.clear()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(memory.get("k", oracle)) for _ in range(50)]
            await settle()
            oracle.may_answer.set()
        assert [task.result() for task in tasks] == [True] * 50
        assert oracle.asked == 1

    run(scenario)


def test_failure_is_shared_with_those_waiting_but_not_remembered() -> None:
    async def scenario(memory: Remembered[bool], clock: Clock) -> None:
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

    run(scenario)


def test_cancelled_asker_hands_the_question_on() -> None:
    async def scenario(memory: Remembered[bool], clock: Clock) -> None:
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

    run(scenario)
