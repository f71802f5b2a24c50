"""Watches on a real server: complete, without duplicates, and across server restarts."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from maestropy import AsyncMaestro, EventType, RetryPolicy, WatchEvent, errors
from maestropy.sandbox.server_process import ServerProcess
from maestropy.store.dsn import Dsn
from maestropy.transport.grpc.status import CallRejected
from tests import waiting
from tests.stack import harness
from tests.stack.sdk_agent import ScriptedAgent, scripted_agent
from tests.stack.test_sdk_lifecycle import client_of, work


class WatchLog:
    """All events of one watch."""

    def __init__(self) -> None:
        self.events: list[WatchEvent] = []

    async def record(self, watch: AsyncIterator[WatchEvent]) -> None:
        async for watch_event in watch:
            self.events.append(watch_event)

    def names(self, kind: EventType) -> list[str]:
        return [watch_event.work.name for watch_event in self.events if watch_event.type is kind]

    def messages(self, name: str) -> list[str]:
        """Return the messages of the Applied condition of one work, in order."""
        applied = [
            watch_event.work.condition("Applied") for watch_event in self.events if watch_event.work.name == name
        ]
        return [condition.message for condition in applied if condition is not None]

    async def until_names(self, kind: EventType, names: set[str]) -> None:
        await waiting.until(lambda: names <= set(self.names(kind)))

    async def until_message(self, message: str, names: Sequence[str]) -> None:
        await waiting.until(lambda: all(message in self.messages(name) for name in names))

    def duplicates(self) -> list[Any]:
        """Return events that were received more than once."""
        marks = [
            (change.type, change.work.id, change.work.version, str(change.work.conditions), change.work.is_deleting)
            for change in self.events
            if change.type is not EventType.SYNCED
        ]
        return [mark for mark, times in Counter(marks).items() if times > 1]


@contextlib.asynccontextmanager
async def watching(watch: Any) -> AsyncIterator[WatchLog]:
    log = WatchLog()
    reader = asyncio.ensure_future(log.record(watch))
    try:
        yield log
        if reader.done():
            reader.result()
    finally:
        reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reader
        await watch.aclose()


async def report(agent: ScriptedAgent, uid: str, message: str) -> None:
    """Report until the server accepts it."""
    while True:
        with contextlib.suppress(CallRejected):
            await agent.report(uid, "Applied", message=message)
            return
        await asyncio.sleep(0.05)


async def confirm_deletion(agent: ScriptedAgent, uid: str) -> None:
    """Wait for the delete request and report the work as deleted."""
    await waiting.until(lambda: bool(agent.works[uid].deletion_timestamp))
    await agent.report(uid, "Deleted")


async def test_watch_sends_existing_works_then_every_change(database: Dsn) -> None:
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
            await waiting.until(lambda: all_of_c1.names(EventType.SYNCED) == [""])
            assert all_of_c1.names(EventType.ADDED) == ["old"]
            async with scripted_agent(server.agents, "c1"), scripted_agent(server.agents, "c2"):
                await works.create(work("plain"))
                await client.works("c2").create(work("other"))
                await waiting.until(lambda: {"plain", "old", "other"} <= set(everything.names(EventType.ADDED)))
                await waiting.until(lambda: "old" in only_web.names(EventType.MODIFIED))
                await works.delete("plain", wait=True, timeout=60)
                await works.delete("old", wait=True, timeout=60)
                await waiting.until(lambda: set(everything.names(EventType.DELETED)) == {"plain", "old"})
                await waiting.until(lambda: only_web.names(EventType.DELETED) == ["old"])
                await waiting.until(lambda: set(all_of_c1.names(EventType.DELETED)) == {"plain", "old"})
        assert only_web.names(EventType.ADDED) == ["old"]
        assert "other" not in all_of_c1.names(EventType.ADDED)
        assert not everything.duplicates() + all_of_c1.duplicates() + only_web.duplicates()


@pytest.mark.long
async def test_watch_survives_killed_server_without_loss_or_duplicate(database: Dsn, tmp_path: Path) -> None:
    server = ServerProcess(database, log=tmp_path / "server.log")
    ports = server.ports
    address: dict[str, Any] = {
        "api_url": f"http://127.0.0.1:{ports.rest}",
        "grpc_url": f"127.0.0.1:{ports.sources}",
        "source": "sdk-test",
    }
    # A server may need more than the 30 seconds of the default to start on a crowded machine.
    patient = RetryPolicy(attempts=200, deadline_seconds=150)
    async with server, AsyncMaestro(environ={}, retry=patient, **address) as client:
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
            await waiting.until(lambda: len(agent.works) == 12 and len(second.events) == 12)
            for cycle in range(3):
                for name in names:
                    await report(agent, works.id_of(name), f"cycle {cycle} before")
                await server.kill()
                writing = asyncio.ensure_future(works.create(work(f"late{cycle}")))
                deleting = asyncio.ensure_future(works.delete(f"w{cycle}"))
                reporting = [
                    asyncio.ensure_future(report(agent, works.id_of(name), f"cycle {cycle} after"))
                    for name in names[3:]
                ]
                await server.start()
                await asyncio.gather(writing, deleting, *reporting)
                deleted_id = works.id_of(f"w{cycle}")
                await confirm_deletion(agent, deleted_id)
                names = [name for name in names if name != f"w{cycle}"]
                for log in (first, second):
                    await log.until_names(EventType.DELETED, {f"w{cycle}"})
                    await log.until_message(f"cycle {cycle} after", names[3:])
            for log in (first, second):
                for uid_name in ("late0", "late1", "late2"):
                    await report(agent, works.id_of(uid_name), "reported")
                await log.until_names(EventType.ADDED, {"late0", "late1", "late2"})
        for log in (first, second):
            assert log.duplicates() == []
            assert Counter(log.names(EventType.DELETED)) == {"w0": 1, "w1": 1, "w2": 1}
            assert max(Counter(log.names(EventType.ADDED)).values()) == 1
            for name in names[3:9]:
                received = [text for text in log.messages(name) if text.endswith("after")]
                assert received == ["cycle 0 after", "cycle 1 after", "cycle 2 after"]


@pytest.mark.long
async def test_works_deleted_and_recreated_during_an_interruption_are_sent(database: Dsn, tmp_path: Path) -> None:
    server = ServerProcess(database, log=tmp_path / "server.log")
    ports = server.ports
    address: dict[str, Any] = {
        "api_url": f"http://127.0.0.1:{ports.rest}",
        "grpc_url": f"127.0.0.1:{ports.sources}",
        "source": "sdk-test",
    }
    async with server, AsyncMaestro(environ={}, **address) as client:
        await client.consumers.create("c1")
        works = client.works("c1")
        for name in ("deleted", "recreated", "unchanged"):
            await works.create(work(name))
        async with watching(works.watch()) as log:
            await waiting.until(lambda: len(log.events) == 3)
            await server.kill()
            await harness.sql(database, "DELETE FROM resources WHERE id = $1", works.id_of("deleted"))
            await harness.sql(
                database,
                "UPDATE resources SET created_at = created_at + interval '5 s' WHERE id = $1",
                works.id_of("recreated"),
            )
            await server.start()
            await waiting.until(lambda: len(log.events) == 6)
            assert sorted(log.names(EventType.DELETED)) == ["deleted", "recreated"]
            assert log.names(EventType.ADDED).count("recreated") == 2
            assert log.names(EventType.ADDED).count("unchanged") == 1


async def test_slow_watch_does_not_delay_others_and_misses_no_state(
    database: Dsn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "maestropy.sdk._connection.subscription_hub.EventQueue.__init__.__kwdefaults__",
        {"max_events": 5, "max_bytes": 2**20},
    )

    async with harness.in_process(database) as server, client_of(server) as client:
        await client.consumers.create("c1")
        works = client.works("c1")
        async with scripted_agent(server.agents, "c1", holds=True) as agent, works.watch() as slow:
            names = [f"w{number}" for number in range(20)]
            for name in names:
                await works.create(work(name))
            assert (await anext(slow)).type is EventType.ADDED
            await waiting.until(lambda: len(agent.works) == 20)
            async with watching(works.watch()) as quick:
                for cycle in range(3):
                    for name in names:
                        await agent.report(works.id_of(name), "Applied", message=str(cycle))
                await waiting.until(lambda: all("2" in quick.messages(name) for name in names))
            last: dict[str, Any] = {}
            async with asyncio.timeout(20):
                async for watch_event in slow:
                    condition = watch_event.work.condition("Applied")
                    last[watch_event.work.name] = condition.message if condition else ""
                    if len(last) == 20 and set(last.values()) == {"2"}:
                        break


async def test_watch_ends_cleanly_on_close_cancel_and_client_close(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        async with client_of(server) as client:
            await client.consumers.create("c1")
            works = client.works("c1")
            await works.create(work("one"))
            async with works.watch() as events:
                assert (await anext(events)).work.name == "one"
            with pytest.raises(StopAsyncIteration):
                await anext(events)

            waiter = asyncio.ensure_future(works.wait_for("one", timeout=60))
            await asyncio.sleep(0.1)
            waiter.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiter
            assert client._hub._queues == []

            open_watch = works.watch()
            await anext(open_watch)
        with pytest.raises(errors.Unavailable, match="the client was closed"):
            await anext(open_watch)


async def test_rejected_subscription_ends_the_watch_with_its_reason(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        # The address of the REST API instead of gRPC: a retry cannot help, but it looks like a missing server.
        policy = RetryPolicy(deadline_seconds=1)
        async with client_of(server, grpc_url=server.rest, retry=policy) as client:
            with pytest.raises(errors.MaestroError, match="cannot watch works"):
                await anext(client.works("c1").watch())
