"""A fleet that resyncs at once: every agent gets its own specs, and few reads of the database serve all of them."""

import asyncio
import contextlib
from collections.abc import Sequence

import pytest

from maestropy.server.controllers.agents.resync import ReportedVersions, ResyncDiff
from maestropy.store.dsn import Dsn
from maestropy.wire.events import event
from tests import waiting
from tests.stack import harness
from tests.stack.clients import agent, is_about, source

FLEET = 40


async def test_resyncs_that_arrive_while_another_is_answered_share_one_read(
    database: Dsn, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    all_sent = asyncio.Event()

    async with harness.in_process(database) as server, contextlib.AsyncExitStack() as open_streams:
        names = [f"cluster{number}" for number in range(FLEET)]
        async with source(server.sources) as a:
            for name in names:
                await server.add_consumer(name)
                await a.create(f"work-of-{name}", name)
        fleet = [await open_streams.enter_async_context(agent(server.agents, name)) for name in names]
        streams = [await open_streams.enter_async_context(one.subscribe()) for one in fleet]
        requests = server.server.resync._diffs
        compare = requests._handle

        async def slowly(agents: Sequence[ReportedVersions]) -> Sequence[ResyncDiff | BaseException]:
            batches.append(len(agents))
            await all_sent.wait()
            return await compare(agents)

        monkeypatch.setattr(requests, "_handle", slowly)
        async with asyncio.TaskGroup() as group:
            first = group.create_task(fleet[0].resync({}))
            await waiting.until(lambda: batches == [1], what="the read for the first agent")
            others = [group.create_task(one.resync({})) for one in fleet[1:]]
            await waiting.until(lambda: requests.depth == FLEET - 1, what="the requests of the others")
            all_sent.set()
            await asyncio.gather(first, *others)
        assert batches == [1, FLEET - 1]
        for name, stream in zip(names, streams, strict=True):
            got = await stream.take(lambda e: e.type == event.SPEC_RESYNC_RESPONSE)
            assert is_about(got, f"work-of-{name}", version=1)
            assert not [e for e in stream.events if e.type == event.SPEC_RESYNC_RESPONSE]
