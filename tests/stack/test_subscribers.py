"""Subscribers: each gets everything, none waits for another, and one that does not read is disconnected."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import grpc
import pytest

from maestropy.server.brokers.subscribers import Subscribers
from maestropy.store.dsn import Dsn
from tests import waiting
from tests.stack import harness
from tests.stack.clients import Agent, Client, Source, Stream, agent, bundle_data, source

LARGE = 100_000
SMALL_BOX = 2 * 2**20
COUNT = 120


def shrink(streams: Subscribers) -> None:
    """Let mailboxes overflow after a few megabytes."""
    streams._max_bytes = SMALL_BOX


@contextlib.asynccontextmanager
async def large_works(database: Dsn) -> AsyncIterator[tuple[harness.InProcess, Source, Agent, list[str]]]:
    """Run a server with works and statuses that fill a small mailbox; the source and the agent have no stream yet."""
    async with (
        harness.in_process(database) as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
    ):
        await server.add_consumer("cluster1")
        names = [f"w{number}" for number in range(COUNT)]
        for name in names:
            await a.create(name, "cluster1", data=bundle_data("x" * LARGE))
            await one.tell(name, 1)
        yield server, a, one, names


async def reason_of(stalled: Stream) -> grpc.aio.AioRpcError:
    """Start to read, and return why the stream ended."""
    await asyncio.wait_for(stalled.read(), waiting.TIMEOUT)
    assert stalled.error is not None
    return stalled.error


@pytest.mark.long
async def test_source_that_does_not_read_is_disconnected_and_delays_no_other(database: Dsn) -> None:
    async with harness.in_process(database) as server, agent(server.agents, "cluster1") as one:
        shrink(server.server.source_subscribers)
        await server.add_consumer("cluster1")
        async with (
            source(server.sources) as a,
            source(server.sources) as b,
            a.subscribe() as told,
            b.subscribe(reads=False) as stalled,
        ):
            assert len(server.server.source_subscribers.of("source-a")) == 2
            for number in range(COUNT):
                await a.create(f"w{number}", "cluster1", data=bundle_data("x" * LARGE))
                await one.tell(f"w{number}", 1)
                await told.spec_of(f"w{number}")
            await waiting.until(lambda: len(server.server.source_subscribers.of("source-a")) == 1, what="its end")
            error = await reason_of(stalled)
            assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert "too slow" in str(error.details())
            assert stalled.seen < COUNT


@pytest.mark.long
async def test_agent_that_does_not_read_is_disconnected_and_delays_no_other(database: Dsn) -> None:
    """The other subscription may be the new connection of the same agent."""

    async with harness.in_process(database) as server, source(server.sources) as a:
        shrink(server.server.agent_subscribers)
        await server.add_consumer("cluster1")
        async with (
            agent(server.agents, "cluster1") as stuck,
            agent(server.agents, "cluster1") as one,
            stuck.subscribe(reads=False) as stalled,
            one.subscribe() as got,
        ):
            for number in range(COUNT):
                await a.create(f"w{number}", "cluster1", data=bundle_data("x" * LARGE))
                await got.spec_of(f"w{number}")
            await waiting.until(lambda: len(server.server.agent_subscribers.of("cluster1")) == 1, what="its end")
            await one.resync({})
            await got.spec_of("w0")
            assert (await reason_of(stalled)).code() == grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.long
async def test_only_agent_of_a_consumer_that_does_not_read_loses_nothing(database: Dsn) -> None:
    """Its events stay pending in the database, not in memory, and come when it reads again."""

    async with (
        harness.in_process(database, sweep_interval="200ms") as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
    ):
        shrink(server.server.agent_subscribers)
        await server.add_consumer("cluster1")
        async with one.subscribe(reads=False) as got:
            for number in range(COUNT):
                await a.create(f"w{number}", "cluster1", data=bundle_data("x" * LARGE))
            pending = await server.value("SELECT count(*) FROM events WHERE reconciled_date IS NULL")
            assert pending > 0
            reader = asyncio.ensure_future(got.read())
            for number in range(COUNT):
                await got.spec_of(f"w{number}")
        with contextlib.suppress(asyncio.CancelledError):
            await reader


async def test_busy_stream_has_heartbeats(database: Dsn) -> None:
    """Clients count heartbeats only; a client that gets none for a while reconnects."""

    async with (
        harness.in_process(database, heartbeat_check_interval="200ms") as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
        a.subscribe() as told,
        one.subscribe() as got,
    ):
        await server.add_consumer("cluster1")
        await a.create("w1", "cluster1")
        while told.heartbeats < 3:
            await one.tell("w1", 1)
            await told.spec_of("w1")
        assert got.heartbeats >= 2


async def test_cancelled_stream_is_removed(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        clients: list[tuple[Client, Subscribers]] = []
        async with source(server.sources) as a, agent(server.agents, "cluster1") as one:
            clients += [(a, server.server.source_subscribers), (one, server.server.agent_subscribers)]
            async with a.subscribe(), one.subscribe():
                assert all(streams.topics() for _, streams in clients)
            for _, streams in clients:
                await waiting.until(lambda: not streams.topics(), what="an empty list")


@pytest.mark.long
async def test_resync_larger_than_the_mailbox_arrives_completely(database: Dsn) -> None:
    """Neither agents nor sources are disconnected because of a resync they requested."""

    async with large_works(database) as (server, a, one, names):
        shrink(server.server.source_subscribers)
        shrink(server.server.agent_subscribers)
        async with a.subscribe() as told, one.subscribe() as got:
            await asyncio.gather(a.resync({}), one.resync({}))
            for name in names:
                await told.spec_of(name)
                await got.spec_of(name)


@pytest.mark.long
async def test_call_that_asks_for_a_resync_ends_before_the_client_reads(database: Dsn) -> None:
    """Go clients hold a lock during that call, and begin to read their stream after it."""

    async with large_works(database) as (server, a, one, names):
        for subscribers, answers in (
            (server.server.source_subscribers, server.server.source_answers),
            (server.server.agent_subscribers, server.server.agent_answers),
        ):
            shrink(subscribers)
            answers._call_seconds = 0.2
        async with a.subscribe(reads=False) as told, one.subscribe(reads=False) as got:
            await asyncio.wait_for(asyncio.gather(a.resync({}), one.resync({})), waiting.TIMEOUT)
            reading = [asyncio.create_task(stream.read()) for stream in (told, got)]
            for name in names:
                await told.spec_of(name)
                await got.spec_of(name)
            for task in reading:
                task.cancel()
