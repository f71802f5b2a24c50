"""Reports on their way: many side by side, none lost with a connection, and a pause while the server has enough."""

import asyncio
import functools
import io
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from maestropy.agent import link
from maestropy.journal import emit
from maestropy.transport import base
from maestropy.wire import event, instant

GREETING = "greeting"


class Server:
    """A medium whose server takes reports when it is told to."""

    address, subscribed = "server.test", "subscribed"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.taken: list[str] = []
        self.takes = asyncio.Event()
        self.hangs_up = asyncio.Event()

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[base.Connection]:
        yield self

    async def events(self) -> AsyncIterator[event.Event]:
        await self.hangs_up.wait()
        self.hangs_up.clear()
        raise base.Disconnected("hung up")
        yield

    async def publish(self, sent: event.Event) -> None:
        if sent.id == GREETING:
            return
        self.asked.append(sent.id)
        await self.takes.wait()
        self.taken.append(sent.id)

    async def is_answered(self, *, within: float) -> bool:
        return True


class Stage:
    """A link at work."""

    def __init__(self) -> None:
        self.server = Server()
        self.link = link.Link(
            self.server,
            journal=emit.Journal(io.BytesIO(), clock=lambda: 0.0, verbosity=0),
            received=lambda _: None,
            greet=lambda: _event(GREETING),
            delays=lambda: itertools.repeat(0.0),
            answered=lambda: None,
        )

    def post(self, count: int) -> None:
        for number in range(count):
            name = f"w{number}"
            letter = link.Letter(write=functools.partial(_event, name), shorten=lambda: None, sent=lambda _: None)
            self.link.post(name, letter)

    async def until(self, predicate: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not predicate():
                await asyncio.sleep(0.001)


def _event(name: str) -> event.Event:
    return event.Event(id=name, source="agent", type="t", time=instant.Timestamp(seconds=0), extensions={}, data=b"")


def run(scenario: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        stage = Stage()
        task = asyncio.create_task(stage.link.run())
        try:
            await stage.until(lambda: stage.link.is_connected)
            await scenario(stage)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    asyncio.run(whole())


def test_reports_go_side_by_side_in_their_order() -> None:
    async def scenario(stage: Stage) -> None:
        stage.post(40)
        await stage.until(lambda: len(stage.server.asked) == 16)
        stage.server.takes.set()
        await stage.until(lambda: not stage.link.waiting)
        assert stage.server.asked == stage.server.taken == [f"w{number}" for number in range(40)]

    run(scenario)


def test_connection_that_ends_loses_nothing_and_says_nothing_twice() -> None:
    async def scenario(stage: Stage) -> None:
        stage.post(40)
        await stage.until(lambda: len(stage.server.asked) == 16)
        stage.server.hangs_up.set()
        await stage.until(lambda: len(stage.server.asked) == 32)
        stage.server.takes.set()
        await stage.until(lambda: not stage.link.waiting)
        assert stage.server.taken == [f"w{number}" for number in range(40)]

    run(scenario)


@pytest.mark.parametrize("count", [0, 8])
def test_few_reports_hold_nobody_up(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_LONGEST_PAUSE_SECONDS", 3600.0)

    async def scenario(stage: Stage) -> None:
        stage.post(count)
        await stage.until(lambda: len(stage.server.asked) == count)
        await asyncio.wait_for(stage.link.keep_pace(), 20)
        assert not stage.server.taken

    run(scenario)


@pytest.mark.parametrize("ends", ["takes", "hangs_up"])
def test_many_reports_are_waited_for(ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_LONGEST_PAUSE_SECONDS", 3600.0)

    async def scenario(stage: Stage) -> None:
        stage.post(9)
        await stage.until(lambda: len(stage.server.asked) == 9)
        waiting = asyncio.create_task(stage.link.keep_pace())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not waiting.done()
        getattr(stage.server, ends).set()
        await asyncio.wait_for(waiting, 20)

    run(scenario)


def test_server_that_takes_nothing_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_LONGEST_PAUSE_SECONDS", 0.01)

    async def scenario(stage: Stage) -> None:
        stage.post(9)
        await stage.until(lambda: len(stage.server.asked) == 9)
        await asyncio.wait_for(stage.link.keep_pace(), 20)
        assert not stage.server.taken

    run(scenario)
