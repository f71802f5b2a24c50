"""Who listens: everybody gets everything, nobody waits for a neighbour, and who does not read is told to go."""

import asyncio
import contextlib

import grpc
import harness
from clients import Client, Stream, agent, bundle_data, source

from maestropy.server.streams import Streams
from maestropy.store.dsn import Dsn

LARGE = 100_000
SMALL_BOX = 2 * 2**20
COUNT = 120


def shrink(streams: Streams) -> None:
    """Let mailboxes run over after megabytes instead of after a hundred of them."""
    streams._max_bytes = SMALL_BOX


async def reason_of(stalled: Stream) -> grpc.aio.AioRpcError:
    """Begin to read at last, and return why the stream ended."""
    await asyncio.wait_for(stalled.read(), harness.PATIENCE)
    assert stalled.error is not None
    return stalled.error


def test_a_source_that_does_not_read_holds_up_nobody_and_is_let_go(database: Dsn) -> None:
    async def scenario() -> None:
        async with harness.in_process(database) as server, agent(server.agents, "cluster1") as one:
            shrink(server.server.sources)
            await server.add_consumer("cluster1")
            async with (
                source(server.sources) as a,
                source(server.sources) as b,
                a.subscribe() as told,
                b.subscribe(reads=False) as stalled,
            ):
                assert len(server.server.sources.of("source-a")) == 2
                for number in range(COUNT):
                    await a.create(f"w{number}", "cluster1", data=bundle_data("x" * LARGE))
                    await one.tell(f"w{number}", 1)
                    await told.spec_of(f"w{number}")
                await harness.until(lambda: len(server.server.sources.of("source-a")) == 1, what="its end")
                error = await reason_of(stalled)
                assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
                assert "too slow" in str(error.details())
                assert stalled.seen < COUNT

    harness.play(scenario())


def test_an_agent_that_does_not_read_holds_up_nobody_and_is_let_go(database: Dsn) -> None:
    """The other one may be its own successor: the old connection of an agent that was moved."""

    async def scenario() -> None:
        async with harness.in_process(database) as server, source(server.sources) as a:
            shrink(server.server.agents)
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
                await harness.until(lambda: len(server.server.agents.of("cluster1")) == 1, what="its end")
                await one.resync({})
                await got.spec_of("w0")
                assert (await reason_of(stalled)).code() == grpc.StatusCode.RESOURCE_EXHAUSTED

    harness.play(scenario())


def test_an_agent_alone_that_does_not_read_loses_nothing(database: Dsn) -> None:
    """Its events stay pending in the database, not in memory, and come when it reads again."""

    async def scenario() -> None:
        async with (
            harness.in_process(database, sweep_interval="200ms") as server,
            source(server.sources) as a,
            agent(server.agents, "cluster1") as one,
        ):
            shrink(server.server.agents)
            await server.add_consumer("cluster1")
            async with one.subscribe(reads=False) as got:
                for number in range(COUNT):
                    await a.create(f"w{number}", "cluster1", data=bundle_data("x" * LARGE))
                waiting = await server.value("SELECT count(*) FROM events WHERE reconciled_date IS NULL")
                assert waiting > 0
                reader = asyncio.ensure_future(got.read())
                for number in range(COUNT):
                    await got.spec_of(f"w{number}")
            with contextlib.suppress(asyncio.CancelledError):
                await reader

    harness.play(scenario())


def test_heartbeats_come_on_busy_streams_too(database: Dsn) -> None:
    """Clients count heartbeats and nothing else; one that hears none for a while reconnects."""

    async def scenario() -> None:
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

    harness.play(scenario())


def test_a_stream_that_is_cancelled_is_forgotten(database: Dsn) -> None:
    async def scenario() -> None:
        async with harness.in_process(database) as server:
            clients: list[tuple[Client, Streams]] = []
            async with source(server.sources) as a, agent(server.agents, "cluster1") as one:
                clients += [(a, server.server.sources), (one, server.server.agents)]
                async with a.subscribe(), one.subscribe():
                    assert all(streams.topics() for _, streams in clients)
                for _, streams in clients:
                    await harness.until(lambda s=streams: not s.topics(), what="an empty list")

    harness.play(scenario())


def test_a_resync_larger_than_the_queue_arrives_whole(database: Dsn) -> None:
    """For agents and sources alike: they are not let go for what they asked for."""

    async def scenario() -> None:
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
            shrink(server.server.sources)
            shrink(server.server.agents)
            async with a.subscribe() as told, one.subscribe() as got:
                await asyncio.gather(a.resync({}), one.resync({}))
                for name in names:
                    await told.spec_of(name)
                    await got.spec_of(name)

    harness.play(scenario())
