"""Resyncs behind a message broker are repeated until they succeed, and acknowledged only then."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from maestropy.server.brokers import port
from maestropy.server.controllers.agents import resync_queue
from maestropy.server.controllers.agents.resync_queue import ResyncQueue, SpecResyncRequest
from maestropy.wire import errors
from tests import waiting
from tests.unit.server.controllers.scripted_broker import Database


class Resyncs:
    """Records what the queue does, and fails as often as a test says."""

    def __init__(self) -> None:
        self.database = Database()
        self.done: list[str] = []
        self.failures: list[Exception] = []
        self.online = asyncio.Event()
        self.online.set()
        self.queue = ResyncQueue(
            self.database.context,
            answer=self._answer,
            request_statuses=self._request,
            wait_online=self._wait_online,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Resyncs"]:
        running = asyncio.create_task(self.queue.run(), name="queue")
        try:
            yield self
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    def request(self, name: str) -> SpecResyncRequest:
        def acknowledge() -> None:
            self.done.append(f"acknowledged {name}")

        return SpecResyncRequest(source="agent", body=name.encode(), acknowledge=acknowledge)

    async def _wait_online(self) -> None:
        await self.online.wait()

    async def _answer(self, consumer: str, body: bytes, *, source: str) -> None:
        assert source == "agent"
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop()
        self.done.append(f"answered {consumer} {body.decode()}")

    async def _request(self, consumer: str, *, resends_unconfirmed: bool) -> None:
        if self.failures:
            raise self.failures.pop()
        self.done.append(f"requested {consumer} {'with' if resends_unconfirmed else 'without'} unconfirmed")


async def test_request_is_acknowledged_when_it_is_answered() -> None:
    async with Resyncs().running() as resyncs:
        resyncs.queue.answer("c", resyncs.request("one"))
        await waiting.until(lambda: resyncs.done == ["answered c one", "acknowledged one"], what="the answer")


async def test_request_is_answered_again_after_a_failure() -> None:
    async with Resyncs().running() as resyncs:
        resyncs.failures = [port.NotDelivered("offline")]
        resyncs.queue.answer("c", resyncs.request("one"))
        await waiting.until(lambda: resyncs.done == ["answered c one", "acknowledged one"], what="the second answer")
        assert resyncs.database.logged("failed to resync resources status for consumer") == 1


async def test_request_that_cannot_be_read_is_acknowledged_and_the_next_one_answered() -> None:
    async with Resyncs().running() as resyncs:
        resyncs.failures = [errors.MalformedMessage("not JSON")]
        resyncs.queue.answer("c", resyncs.request("bad"))
        resyncs.queue.answer("c", resyncs.request("good"))
        expected = ["acknowledged bad", "answered c good", "acknowledged good"]
        await waiting.until(lambda: resyncs.done == expected, what="both")


async def test_resync_of_a_paused_consumer_is_answered_after_the_resumption() -> None:
    async with Resyncs().running() as resyncs:
        resyncs.failures = [port.Paused("c"), port.Paused("c")]
        resyncs.queue.answer("c", resyncs.request("one"))
        # The broker must not wait for an operator.
        await waiting.until(lambda: resyncs.done[:1] == ["acknowledged one"], what="the acknowledgement")
        await waiting.until(lambda: resyncs.done == ["acknowledged one", "answered c one"], what="the answer")
        assert resyncs.database.logged("failed to resync resources status for consumer") == 0


async def test_statuses_of_a_paused_consumer_are_requested() -> None:
    async with Resyncs().running() as resyncs:
        resyncs.failures = [port.Paused("c")]
        resyncs.queue.answer("c", resyncs.request("one"))
        resyncs.queue.request_statuses(["c"])
        expected = ["acknowledged one", "requested c without unconfirmed", "answered c one"]
        await waiting.until(lambda: resyncs.done == expected, what="the statuses, then the answer")


async def test_agent_that_never_subscribes_is_answered_a_few_times_only() -> None:
    async with Resyncs().running() as resyncs:
        resyncs.failures = [port.NoSubscriber("c") for _ in range(resync_queue._ANSWERS_WITHOUT_LISTENER)]
        resyncs.queue._queue._backoff = type(resyncs.queue._queue._backoff)(first_seconds=0.0)
        resyncs.queue.answer("c", resyncs.request("one"))
        await waiting.until(lambda: resyncs.done == ["acknowledged one"], what="the end of the attempts")


async def test_many_requests_of_one_consumer_are_bounded() -> None:
    async with Resyncs().running() as resyncs:
        resyncs.online.clear()
        count = resync_queue._WAITING_REQUESTS + 5
        for number in range(count):
            resyncs.queue.answer("c", resyncs.request(str(number)))
        dropped = [f"acknowledged {number}" for number in range(1, 6)]
        assert resyncs.done == dropped, "neither the first, which may be in progress, nor the newest"
        resyncs.online.set()
        await waiting.until(lambda: f"acknowledged {count - 1}" in resyncs.done, what="the answer to the newest")


async def test_statuses_are_requested_and_unconfirmed_resources_sent_again() -> None:
    async with Resyncs().running() as resyncs:
        resyncs.failures = [port.NotDelivered("offline")]
        resyncs.queue.request_statuses(["c"])
        await waiting.until(lambda: resyncs.done == ["requested c with unconfirmed"], what="the request")


async def test_agent_that_has_been_answered_is_not_sent_unconfirmed_resources_again() -> None:
    async with Resyncs().running() as resyncs:
        resyncs.queue.answer("c", resyncs.request("one"))
        resyncs.queue.request_statuses(["c"])
        expected = ["answered c one", "acknowledged one", "requested c without unconfirmed"]
        await waiting.until(lambda: resyncs.done == expected, what="answer and request")
