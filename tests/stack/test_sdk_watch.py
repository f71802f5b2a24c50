"""Watches of the client on a real server: complete, in step, and through a server's death."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import harness
import pytest
from sdk_agent import ScriptedAgent, scripted_agent
from test_sdk_lifecycle import client_of, work

from maestropy import AsyncMaestro, EventType, RetryPolicy, WatchEvent, errors
from maestropy.sandbox.process import ServerProcess
from maestropy.store.dsn import Dsn
from maestropy.transport.status import Refused


class Diary:
    """Everything one watcher was told."""

    def __init__(self) -> None:
        self.events: list[WatchEvent] = []

    async def keep(self, watch: AsyncIterator[WatchEvent]) -> None:
        async for told in watch:
            self.events.append(told)

    def told(self, kind: EventType) -> list[str]:
        return [each.work.name for each in self.events if each.type is kind]

    def messages(self, name: str) -> list[str]:
        """Return what the agent said about one work, in the order it was told."""
        conditions = [each.work.condition("Applied") for each in self.events if each.work.name == name]
        return [each.message for each in conditions if each is not None]

    def twice(self) -> list[Any]:
        """Return what was told more than once."""
        marks = [
            (each.type, each.work.id, each.work.version, str(each.work.conditions), each.work.is_deleting)
            for each in self.events
            if each.type is not EventType.SYNCED
        ]
        return [mark for mark, times in Counter(marks).items() if times > 1]


@contextlib.asynccontextmanager
async def watching(watch: Any) -> AsyncIterator[Diary]:
    diary = Diary()
    reader = asyncio.ensure_future(diary.keep(watch))
    try:
        yield diary
        if reader.done():
            reader.result()
    finally:
        reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reader
        await watch.aclose()


async def report(agent: ScriptedAgent, uid: str, message: str) -> None:
    """Report until the server has it."""
    while True:
        with contextlib.suppress(Refused):
            await agent.report(uid, "Applied", message=message)
            return
        await asyncio.sleep(0.05)


def test_a_watch_tells_what_there_is_and_then_every_change(database: Dsn) -> None:
    async def scenario() -> None:
        async with harness.in_process(database) as server, client_of(server) as client:
            await client.consumers.create("c1")
            await client.consumers.create("c2")
            works = client.works("c1")
            await works.create(work("old", labels={"app": "web"}))
            async with (
                watching(works.watch(bookmarks=True)) as all_of_c1,
                watching(works.watch(labels="app=web")) as only_web,
                watching(client.all_works().watch()) as everything,
            ):
                await harness.until(lambda: all_of_c1.told(EventType.SYNCED) == [""])
                assert all_of_c1.told(EventType.ADDED) == ["old"]
                async with scripted_agent(server.agents, "c1"), scripted_agent(server.agents, "c2"):
                    await works.create(work("plain"))
                    await client.works("c2").create(work("other"))
                    await harness.until(lambda: {"plain", "old", "other"} <= set(everything.told(EventType.ADDED)))
                    await harness.until(lambda: "old" in only_web.told(EventType.MODIFIED))
                    await works.delete("plain", wait=True, timeout=60)
                    await works.delete("old", wait=True, timeout=60)
                    await harness.until(lambda: set(everything.told(EventType.DELETED)) == {"plain", "old"})
                    await harness.until(lambda: only_web.told(EventType.DELETED) == ["old"])
                    await harness.until(lambda: set(all_of_c1.told(EventType.DELETED)) == {"plain", "old"})
            assert only_web.told(EventType.ADDED) == ["old"]
            assert "other" not in all_of_c1.told(EventType.ADDED)
            assert not everything.twice() + all_of_c1.twice() + only_web.twice()

    harness.play(scenario())


def test_a_watch_outlives_kill_9_without_a_loss_or_a_double(database: Dsn, tmp_path: Path) -> None:
    async def scenario() -> None:
        server = ServerProcess(database, log=tmp_path / "server.log")
        ports = server.ports
        where = {
            "api_url": f"http://127.0.0.1:{ports.rest}",
            "grpc_url": f"127.0.0.1:{ports.sources}",
            "source": "sdk-test",
        }
        async with server, AsyncMaestro(environ={}, **where) as client:
            await client.consumers.create("c1")
            works = client.works("c1")
            names = [f"w{number}" for number in range(12)]
            for name in names:
                await works.create(work(name))
            async with (
                scripted_agent(f"127.0.0.1:{ports.agents}", "c1", holds=True) as agent,
                watching(works.watch()) as first,
                watching(client.all_works().watch()) as second,
            ):
                await harness.until(lambda: len(agent.works) == 12 and len(second.events) == 12)
                for turn in range(3):
                    for name in names:
                        await report(agent, works.id_of(name), f"turn {turn} before")
                    await server.kill()
                    writing = asyncio.ensure_future(works.create(work(f"late{turn}")))
                    deleting = asyncio.ensure_future(works.delete(f"w{turn}"))
                    telling = [
                        asyncio.ensure_future(report(agent, works.id_of(name), f"turn {turn} after"))
                        for name in names[3:]
                    ]
                    await server.start()
                    await asyncio.gather(writing, deleting, *telling)
                    gone = works.id_of(f"w{turn}")
                    await harness.until(lambda gone=gone: bool(agent.works[gone].deletion_timestamp))
                    await agent.report(gone, "Deleted")
                    names = [name for name in names if name != f"w{turn}"]
                    for diary in (first, second):
                        await harness.until(lambda d=diary, t=turn: f"w{t}" in d.told(EventType.DELETED))
                        await harness.until(
                            lambda d=diary, t=turn, n=tuple(names[3:]): all(
                                f"turn {t} after" in d.messages(name) for name in n
                            )
                        )
                for diary in (first, second):
                    for uid_name in ("late0", "late1", "late2"):
                        await report(agent, works.id_of(uid_name), "seen")
                    await harness.until(lambda d=diary: {"late0", "late1", "late2"} <= set(d.told(EventType.ADDED)))
            for diary in (first, second):
                assert diary.twice() == []
                assert Counter(diary.told(EventType.DELETED)) == {"w0": 1, "w1": 1, "w2": 1}
                assert max(Counter(diary.told(EventType.ADDED)).values()) == 1
                for name in names[3:9]:
                    heard = [text for text in diary.messages(name) if text.endswith("after")]
                    assert heard == ["turn 0 after", "turn 1 after", "turn 2 after"]

    harness.play(scenario())


def test_what_was_deleted_and_made_anew_during_an_interruption_is_told(database: Dsn, tmp_path: Path) -> None:
    async def scenario() -> None:
        server = ServerProcess(database, log=tmp_path / "server.log")
        ports = server.ports
        where = {
            "api_url": f"http://127.0.0.1:{ports.rest}",
            "grpc_url": f"127.0.0.1:{ports.sources}",
            "source": "sdk-test",
        }
        async with server, AsyncMaestro(environ={}, **where) as client:
            await client.consumers.create("c1")
            works = client.works("c1")
            for name in ("goes", "returns", "stays"):
                await works.create(work(name))
            async with watching(works.watch()) as diary:
                await harness.until(lambda: len(diary.events) == 3)
                await server.kill()
                await harness.sql(database, "DELETE FROM resources WHERE id = $1", works.id_of("goes"))
                await harness.sql(
                    database,
                    "UPDATE resources SET created_at = created_at + interval '5 s' WHERE id = $1",
                    works.id_of("returns"),
                )
                await server.start()
                await harness.until(lambda: len(diary.events) == 6)
                assert sorted(diary.told(EventType.DELETED)) == ["goes", "returns"]
                assert diary.told(EventType.ADDED).count("returns") == 2
                assert diary.told(EventType.ADDED).count("stays") == 1

    harness.play(scenario())


def test_a_slow_watcher_holds_nobody_up_and_misses_no_state(database: Dsn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maestropy.sdk.hub.Inbox.__init__.__kwdefaults__", {"max_events": 5, "max_bytes": 2**20})

    async def scenario() -> None:
        async with harness.in_process(database) as server, client_of(server) as client:
            await client.consumers.create("c1")
            works = client.works("c1")
            async with scripted_agent(server.agents, "c1", holds=True) as agent, works.watch() as slow:
                names = [f"w{number}" for number in range(20)]
                for name in names:
                    await works.create(work(name))
                assert (await anext(slow)).type is EventType.ADDED
                await harness.until(lambda: len(agent.works) == 20)
                async with watching(works.watch()) as quick:
                    for turn in range(3):
                        for name in names:
                            await agent.report(works.id_of(name), "Applied", message=str(turn))
                    await harness.until(lambda: all("2" in quick.messages(name) for name in names))
                last: dict[str, Any] = {}
                async with asyncio.timeout(20):
                    async for told in slow:
                        condition = told.work.condition("Applied")
                        last[told.work.name] = condition.message if condition else ""
                        if len(last) == 20 and set(last.values()) == {"2"}:
                            break

    harness.play(scenario())


def test_a_watch_ends_cleanly_however_it_ends(database: Dsn) -> None:
    async def scenario() -> None:
        async with harness.in_process(database) as server:
            async with client_of(server) as client:
                await client.consumers.create("c1")
                works = client.works("c1")
                await works.create(work("one"))
                async with works.watch() as events:
                    assert (await anext(events)).work.name == "one"
                with pytest.raises(StopAsyncIteration):
                    await anext(events)

                waiting = asyncio.ensure_future(works.wait_for("one", timeout=60))
                await asyncio.sleep(0.1)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                assert client._hub._inboxes == []

                left = works.watch()
                await anext(left)
            with pytest.raises(errors.Unavailable, match="the client was closed"):
                await anext(left)

    harness.play(scenario())


def test_a_refused_subscription_ends_the_watch_with_the_reason(database: Dsn) -> None:
    async def scenario() -> None:
        async with harness.in_process(database) as server:
            # REST where gRPC is expected: nothing a second try could heal by itself, but it looks like a dead server.
            policy = RetryPolicy(deadline_seconds=1)
            async with client_of(server, grpc_url=server.rest, retry=policy) as client:
                with pytest.raises(errors.MaestroError, match="cannot watch works"):
                    await anext(client.works("c1").watch())

    harness.play(scenario())
