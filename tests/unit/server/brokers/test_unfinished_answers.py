"""A call that asks for a resync does not wait for a client that does not read, and what follows is not lost."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from maestropy.server.brokers import port
from maestropy.server.brokers.subscribers import Subscribers
from maestropy.server.brokers.unfinished_answers import UnfinishedAnswers

TOPIC = "cluster1"


class Case:
    """The answers to one agent, which has subscribed."""

    def __init__(self) -> None:
        self.failures: list[tuple[str, str]] = []
        self.subscribers = Subscribers(max_items=10, max_bytes=1000)
        self.subscriber = self.subscribers.open(TOPIC, subscription_id="1", disconnect=lambda: None)
        self.answers = UnfinishedAnswers(
            self.subscribers,
            on_failure=lambda topic, error: self.failures.append((topic, str(error))),
            call_seconds=0.02,
        )
        self.go_on = asyncio.Event()
        self.ended: list[str] = []

    async def answer(self, error: Exception | None = None) -> None:
        try:
            await self.go_on.wait()
            if error is not None:
                raise error
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("complete")

    def send(self, answer: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
        return asyncio.wait_for(self.answers.send(TOPIC, answer), 5)

    async def settle(self) -> None:
        self.go_on.set()
        while self.answers._topics:
            await asyncio.sleep(0)


@asynccontextmanager
async def case() -> AsyncIterator[Case]:
    one = Case()
    running = asyncio.create_task(one.answers.run())
    await asyncio.sleep(0)
    yield one
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_answer_that_is_complete_or_fails_soon_ends_with_its_call() -> None:
    async with case() as one:
        one.go_on.set()
        await one.send(one.answer())
        with pytest.raises(port.NotDelivered):
            await one.send(one.answer(port.NotDelivered("away")))
    assert one.ended == ["complete"]
    assert one.failures == []
    assert not one.subscriber.box.is_closed


async def test_rest_of_a_long_answer_follows_its_call() -> None:
    async with case() as one:
        await one.send(one.answer())
        assert one.ended == []
        await one.settle()
        assert one.ended == ["complete"]
        assert not one.subscriber.box.is_closed


@pytest.mark.parametrize(
    ("error", "is_told"), [(port.NotDelivered("away"), True), (port.Paused(TOPIC), False)], ids=["failed", "paused"]
)
async def test_failure_after_the_call_ends_the_streams_so_that_the_client_resyncs(
    error: Exception, is_told: bool
) -> None:
    async with case() as one:
        await one.send(one.answer(error))
        await one.settle()
        await asyncio.sleep(0)
        assert one.failures == ([(TOPIC, str(error))] if is_told else [])
        assert one.subscriber.box.is_closed == is_told


async def test_only_one_answer_for_each_stream_outlives_its_call() -> None:
    async with case() as one:
        await one.send(one.answer())
        second = asyncio.create_task(one.answers.send(TOPIC, one.answer()))
        await asyncio.sleep(0.1)
        assert not second.done()
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert one.ended == ["cancelled"], "the client has left"
        await one.settle()
        assert one.ended == ["cancelled", "complete"]


async def test_unfinished_answers_end_with_the_server() -> None:
    async with case() as one:
        await one.send(one.answer())
    assert one.ended == ["cancelled"]
    assert one.failures == []
