"""The author's functions run in threads: one that blocks stops neither the loop nor the event's timeout."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import httpx
import pytest

from maestropy.adapter import author_code, probes, runner
from maestropy.adapter.decide.effects import Await, CallAuthor
from maestropy.adapter.decide.pipeline import EventOutcome
from maestropy.adapter.definition import Adapter
from maestropy.adapter.desired_state import DesiredState, Handler, StatusReport
from maestropy.adapter.errors import BadAdapter, DidNotReturn
from maestropy.adapter.runner import EventTimeouts
from maestropy.adapter.transports import http_inbox
from maestropy.adapter.transports.performer import LivePerformer
from maestropy.sdk import errors
from maestropy.sdk.work import Work
from tests.unit.adapter.decide.test_pipeline import MINE, Script, shown
from tests.unit.adapter.samples import EVENT, reported, work


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Lets the blocked functions of a test return, at its end at the latest."""
    event = threading.Event()
    yield event
    event.set()
    for thread in threading.enumerate():
        if thread.name.startswith("adapter-code"):
            thread.join(timeout=60)


def adapter_of(handler: Handler) -> Adapter:
    adapter = Adapter("a")
    adapter.reconciles("Cluster")(handler)
    return adapter


async def handled(handler: Handler, script: Script, *, seconds: float = 120.0, wait: float = 0.0) -> EventOutcome:
    timeouts = EventTimeouts(event_seconds=seconds, wait_seconds=wait, settle_seconds=0)
    return await runner.handle(adapter_of(handler), EVENT, performer=script, timeouts=timeouts)


async def test_handler_that_does_not_return_is_reported_when_the_time_is_over(release: threading.Event) -> None:
    def blocked(*_: object) -> StatusReport:
        release.wait()
        return StatusReport(available=True)

    script = Script()
    outcome = await handled(blocked, script, seconds=0.2)
    assert shown(script.status)["Health"] == "False ExecutionFailed"
    assert outcome.failure
    assert not outcome.is_retryable
    line = blocked.__code__.co_firstlineno
    assert f"blocked ({__file__}, line {line}) did not return within 0 s; it is at line {line + 1}" in str(
        outcome.failure.message
    )


@pytest.mark.parametrize("wait", [0.0, 0.1], ids=["at-once", "waiting"])
async def test_read_that_does_not_return_leaves_applied_as_the_works_say(release: threading.Event, wait: float) -> None:
    def blocked(_: object) -> StatusReport:
        release.wait()
        return StatusReport(available=True)

    script = Script(query=[[reported(MINE, Applied="True")]])
    outcome = await handled(lambda *_: DesiredState(work(), read=blocked), script, seconds=0.2, wait=wait)
    assert script.names == ["Fetch", "Query", "PutStatus"]
    assert shown(script.status)["Applied"] == "True AppliedReason"
    assert shown(script.status)["Health"] == "False ExecutionFailed"
    assert outcome.failure
    assert "blocked (" in outcome.failure.message


async def test_other_events_are_handled_while_a_function_blocks(release: threading.Event) -> None:
    entered = threading.Event()

    def blocked(*_: object) -> StatusReport:
        entered.set()
        release.wait()
        return StatusReport(available=True)

    async with asyncio.TaskGroup() as group:
        first = group.create_task(handled(blocked, Script()))
        assert await asyncio.to_thread(entered.wait, 60)
        other = await handled(lambda *_: StatusReport(available=True), Script())
        assert other.failure is None
        assert not first.done()
        release.set()
    assert first.result().failure is None


async def test_ctrl_c_raised_by_the_author_is_a_failure() -> None:
    def interrupted(*_: object) -> Any:
        raise KeyboardInterrupt

    outcome = await handled(interrupted, Script())
    assert outcome.failure
    assert outcome.failure.message.startswith("KeyboardInterrupt: ")


async def test_no_more_calls_are_made_when_too_many_have_not_returned(
    release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(author_code, "MOST_LEFT_BEHIND", 1)
    call = CallAuthor(function=release.wait, author=release.wait)
    loop = asyncio.get_running_loop()
    with pytest.raises(DidNotReturn):
        await author_code.run(call, deadline=loop.time() + 0.1)
    with pytest.raises(BadAdapter, match="have not returned; restart the adapter"):
        await author_code.run(call)
    stuck = (503, "1 calls of the adapter's functions have not returned; restart the adapter\n")
    assert await _healths() == [stuck, stuck]
    release.set()
    async with asyncio.timeout(60):
        while author_code.why_stuck():
            await asyncio.sleep(0.01)
    assert await _healths() == [(200, "ok\n")] * 2


async def _healths() -> list[tuple[int, str]]:
    """Ask for the health of `adapter consume` and of `adapter serve`."""
    answers = []
    for app in (probes.AdapterProbes().app, http_inbox.HttpInbox().app):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://probe") as client:
            response = await client.get("/healthz")
        answers.append((response.status_code, response.text))
    return answers


class WatchingTransport:
    """Shows scripted works one after the other, then waits for ever, or fails."""

    def __init__(self, *shown_works: Sequence[Work], failure: Exception | None = None) -> None:
        self._shown, self._failure = shown_works, failure
        self.next = asyncio.Event()

    async def wait(
        self, *, labels: Mapping[str, str], until: Callable[[Sequence[Work]], bool], seconds: float
    ) -> Sequence[Work]:
        for works in self._shown:
            assert not until(works)
            await self.next.wait()
            self.next.clear()
        if self._failure is not None:
            raise self._failure
        if seconds:
            await asyncio.Event().wait()
        return [*self._shown[-1]]


def performer_of(transport: Any) -> LivePerformer:
    unused: Any = None
    return LivePerformer(transport=transport, resource_api=unused, target=unused)


async def test_wait_for_a_read_judges_the_works_in_threads() -> None:
    first, second = [reported(MINE)], [reported(MINE, Applied="True")]
    transport = WatchingTransport(first, second)
    loop = asyncio.get_running_loop()
    judged: list[tuple[Sequence[Work], str]] = []

    def until(works: Sequence[Work]) -> bool:
        judged.append((works, threading.current_thread().name))
        loop.call_soon_threadsafe(transport.next.set)
        return works is second

    effect = Await(labels={}, until=until, seconds=60, author=until)
    assert await performer_of(transport).perform(effect) is second
    assert judged == [(first, "adapter-code"), (second, "adapter-code")]


async def test_wait_for_a_read_ends_with_the_time_although_the_read_blocks(release: threading.Event) -> None:
    works = [reported(MINE)]
    transport = WatchingTransport(works)
    transport.next.set()
    effect = Await(labels={}, until=lambda _: release.wait(), seconds=0, author=release.wait)
    assert await performer_of(transport).perform(effect) == works


async def test_failed_wait_for_a_read_is_the_failure_of_the_transport() -> None:
    transport = WatchingTransport(failure=errors.Unavailable("no connection"))
    effect = Await(labels={}, until=lambda _: False, seconds=60, author=len)
    with pytest.raises(errors.Unavailable):
        await performer_of(transport).perform(effect)
