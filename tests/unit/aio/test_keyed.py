"""Who gets a turn when: in the order of coming, but whoever can wait lets others pass, and not for ever."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from maestropy.aio import keyed

LONG, SHORT = 3600.0, 0.01


class Desk:
    """One worker that is busy with `first` until it is let go."""

    def __init__(self, *, answers: dict[str, list[keyed.Again | Exception]] | None = None) -> None:
        self.served: list[str] = []
        self.waited: list[float] = []
        self._answers = answers or {}
        self._open = asyncio.Event()
        backoff = keyed.Backoff(first_seconds=0.001)
        self.queue = keyed.KeyedQueue[str](
            self._serve, workers=1, backoff=backoff, on_error=lambda _key, _error: None, meter=self
        )

    def added(self) -> None: ...

    def retried(self) -> None: ...

    def holds(self, depth: int) -> None: ...

    def finished(self, *, waited: float, worked: float) -> None:
        self.waited.append(waited)

    def let_go(self) -> None:
        self._open.set()

    async def until(self, predicate: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not predicate():
                await asyncio.sleep(0.001)

    async def is_served(self, *keys: str) -> None:
        """Wait until the worker has been through its line, and compare."""
        await self.until(lambda: len(self.served) >= len(keys) and not len(self.queue))
        assert self.served == [*keys]

    async def _serve(self, key: str) -> keyed.Again | None:
        self.served.append(key)
        await self._open.wait()
        answers = self._answers.get(key)
        answer = answers.pop(0) if answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


def run(scenario: Callable[[Desk], Coroutine[Any, Any, None]], desk: Callable[[], Desk] = Desk) -> None:
    async def whole() -> None:
        found = desk()
        worker = asyncio.create_task(found.queue.run())
        try:
            found.queue.add("first")
            await found.until(lambda: found.served == ["first"])
            await scenario(found)
        finally:
            worker.cancel()
            await asyncio.wait([worker])

    asyncio.run(whole())


async def stands_in_line(desk: Desk, key: str, *, patience_seconds: float) -> None:
    before = len(desk.queue)
    desk.queue.add_later(key, 0, patience_seconds=patience_seconds)
    await desk.until(lambda: len(desk.queue) > before)


def test_turns_come_in_the_order_of_asking() -> None:
    async def scenario(desk: Desk) -> None:
        for key in "abcab":
            desk.queue.add(key)
        desk.let_go()
        await desk.is_served("first", "a", "b", "c")

    run(scenario)


def test_patient_turn_lets_others_pass() -> None:
    async def scenario(desk: Desk) -> None:
        await stands_in_line(desk, "patient", patience_seconds=LONG)
        desk.queue.add("a")
        desk.queue.add("b")
        desk.let_go()
        await desk.is_served("first", "a", "b", "patient")
        # It came before it was due.
        assert desk.waited[-1] == 0

    run(scenario)


def test_patience_ends() -> None:
    async def scenario(desk: Desk) -> None:
        await stands_in_line(desk, "patient", patience_seconds=SHORT)
        overdue = asyncio.get_running_loop().time() + SHORT
        await desk.until(lambda: asyncio.get_running_loop().time() > overdue)
        desk.queue.add("late")
        desk.let_go()
        await desk.is_served("first", "patient", "late")

    run(scenario)


def test_patient_turn_that_is_wanted_now_moves_ahead_and_comes_once() -> None:
    async def scenario(desk: Desk) -> None:
        await stands_in_line(desk, "patient", patience_seconds=LONG)
        desk.queue.add("a")
        desk.queue.add("patient")
        desk.queue.add("b")
        desk.let_go()
        await desk.is_served("first", "a", "patient", "b")

    run(scenario)


def test_key_in_line_does_not_become_more_patient() -> None:
    async def scenario(desk: Desk) -> None:
        desk.queue.add("a")
        desk.queue.add_later("a", 0, patience_seconds=LONG)
        desk.queue.add_later("b", 0)
        await desk.until(lambda: len(desk.queue) == 3)
        desk.let_go()
        await desk.is_served("first", "a", "b")

    run(scenario)


@pytest.mark.parametrize(
    ("answer", "served"),
    [
        pytest.param(keyed.Again(0), ["first", "a", "first"], id="asked for"),
        pytest.param(keyed.Again(0, LONG), ["first", "a", "first"], id="asked for, patiently"),
        pytest.param(ValueError(), ["first", "a", "first"], id="failed"),
    ],
)
def test_turn_comes_again(answer: keyed.Again | Exception, served: Sequence[str]) -> None:
    async def scenario(desk: Desk) -> None:
        desk.queue.add("a")
        desk.let_go()
        await desk.is_served(*served)

    run(scenario, lambda: Desk(answers={"first": [answer]}))


def test_key_that_is_added_during_its_turn_gets_another() -> None:
    async def scenario(desk: Desk) -> None:
        desk.queue.add("first")
        desk.queue.add("a")
        desk.let_go()
        await desk.is_served("first", "a", "first")

    run(scenario)
