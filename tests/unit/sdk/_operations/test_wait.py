"""What a wait says when its time is over: the server is out of reach, a work cannot be applied, or it takes longer."""

import asyncio
from collections.abc import AsyncGenerator
from typing import cast

import pytest

from maestropy import AsyncMaestro, errors
from maestropy.sandbox import ports
from maestropy.sdk._operations import wait
from maestropy.sdk.watch import WorkWatch
from maestropy.sdk.watch_events import EventType, WatchEvent
from maestropy.sdk.work import Work
from maestropy.wire.works.work import ManifestWork


async def test_timeout_names_the_server_that_is_out_of_reach() -> None:
    port = ports.free(1)[0]
    client = AsyncMaestro(environ={}, api_url=f"http://127.0.0.1:{port}", grpc_url=f"127.0.0.1:{port}", source="s")
    async with client:
        for waiting in (
            client.works("c1").wait_for("hello", "Applied", timeout=0.5),
            client.works("c1").wait_for("hello", lambda _: True, timeout=0.5),
        ):
            with pytest.raises(errors.Timeout) as raised:
                await waiting
            assert "the server is out of reach: " in raised.value.reason
            assert f"127.0.0.1:{port}" in raised.value.reason
            assert raised.value.advice == "check that the server runs and that the address is right"


class OneWorkWatch:
    """A watch that sends one work and then nothing."""

    disconnection: errors.MaestroError | None = None

    def __init__(self, work: Work) -> None:
        self._events = self._run(work)

    async def __aenter__(self) -> AsyncGenerator[WatchEvent, None]:
        return self._events

    async def __aexit__(self, *_: object) -> None:
        await self._events.aclose()

    async def _run(self, work: Work) -> AsyncGenerator[WatchEvent, None]:
        yield WatchEvent(EventType.ADDED, work)
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("applied", "reason", "advice"),
    [
        ("False", "Applied is False: no such kind", "correct the work, or on the cluster what this names"),
        ("True", "the agent has not reported the condition Available yet", "retry, or allow more time"),
    ],
)
async def test_timeout_of_a_work_that_cannot_be_applied_says_what_applied_says(
    applied: str, reason: str, advice: str
) -> None:
    conditions = [{"type": "Applied", "status": applied, "reason": "R", "message": "no such kind"}]
    body = {**Work("hello", consumer="c1").to_dict(), "status": {"conditions": conditions}}
    watch = cast("WorkWatch", OneWorkWatch(Work.wrap(ManifestWork(body), observed_version=1)))
    with pytest.raises(errors.Timeout) as raised:
        await wait.until_true(watch, "Available", doing="wait", seconds=0.01)
    assert raised.value.reason == f"not within 0.01 seconds: {reason}"
    assert raised.value.advice.startswith(advice)


async def test_timeout_of_a_blocked_deletion_says_what_blocks_it() -> None:
    message = "manifestwork is terminating, waiting for configmaps default/lab (finalizers: example.com/hold)"
    conditions = [{"type": "Deleting", "status": "True", "reason": "R", "message": message}]
    body = {**Work("hello", consumer="c1").to_dict(), "status": {"conditions": conditions}}
    watch = cast("WorkWatch", OneWorkWatch(Work.wrap(ManifestWork(body), observed_version=1)))
    with pytest.raises(errors.Timeout) as raised:
        await wait.until_gone(watch, doing="wait", seconds=0.01)
    assert raised.value.reason == f"it still exists after 0.01 seconds: {message}"


@pytest.mark.parametrize("answer", [True, False])
async def test_an_asynchronous_predicate_is_awaited(answer: bool) -> None:
    work = Work("hello", consumer="c1")

    async def predicate(_: Work) -> bool:
        await asyncio.sleep(0)
        return answer

    watch = cast("WorkWatch", OneWorkWatch(work))
    waiting = wait.until_true(watch, predicate, doing="wait", seconds=None if answer else 0.05)
    if answer:
        assert await waiting == work
    else:
        with pytest.raises(errors.Timeout, match="the predicate was never true"):
            await waiting
