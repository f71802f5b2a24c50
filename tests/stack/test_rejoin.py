"""A fleet that comes back at once: everybody gets what is theirs, and few looks into the database serve them all."""

import asyncio
import contextlib
from collections.abc import Sequence

import harness
import pytest
from clients import agent, is_about, source

from maestropy.server import rejoin
from maestropy.server.lacks import Holdings, Lacks, find
from maestropy.server.world import World
from maestropy.store.dsn import Dsn
from maestropy.wire import event

FLEET = 40


def test_agents_that_ask_while_another_is_answered_are_answered_together(
    database: Dsn, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[int] = []
    all_ask = asyncio.Event()

    async def slowly(world: World, agents: Sequence[Holdings]) -> list[Lacks]:
        groups.append(len(agents))
        await all_ask.wait()
        return await find(world, agents)

    async def scenario() -> None:
        async with harness.in_process(database) as server, contextlib.AsyncExitStack() as open_streams:
            names = [f"cluster{number}" for number in range(FLEET)]
            async with source(server.sources) as a:
                for name in names:
                    await server.add_consumer(name)
                    await a.create(f"work-of-{name}", name)
            fleet = [await open_streams.enter_async_context(agent(server.agents, name)) for name in names]
            streams = [await open_streams.enter_async_context(one.subscribe()) for one in fleet]
            monkeypatch.setattr(rejoin, "find_lacks", slowly)
            questions = server.server.rejoin._questions
            async with asyncio.TaskGroup() as group:
                first = group.create_task(fleet[0].resync({}))
                await harness.until(lambda: groups == [1], what="the look for the first agent")
                others = [group.create_task(one.resync({})) for one in fleet[1:]]
                await harness.until(lambda: questions.depth == FLEET - 1, what="the questions of the others")
                all_ask.set()
                await asyncio.gather(first, *others)
            assert groups == [1, FLEET - 1]
            for name, stream in zip(names, streams, strict=True):
                got = await stream.take(lambda e: e.type == event.SPEC_RESYNC_RESPONSE)
                assert is_about(got, f"work-of-{name}", version=1)
                assert not [e for e in stream.events if e.type == event.SPEC_RESYNC_RESPONSE]

    harness.play(scenario())
