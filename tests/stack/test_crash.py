"""Power cuts, murders and polite endings: what was acknowledged is there afterwards."""

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from maestropy.sandbox import postmaster
from maestropy.sandbox.postgres import PostgresCluster
from maestropy.store.dsn import Dsn
from maestropy.store.migrations import migrate
from maestropy.wire.events import event
from tests import waiting
from tests.stack import harness
from tests.stack.clients import Stream, agent, bundle_data, source

pytestmark = pytest.mark.long

LOAD = 200
CONSUMERS = ("cluster1", "cluster2")


async def publish_until_it_breaks(address: str, *, acknowledged: set[str]) -> None:
    """Create bundles from many callers at once; remember those that were answered with OK."""
    async with source(address) as a:

        async def one_after_the_other(lane: int) -> None:
            for number in range(LOAD // 20):
                consumer = CONSUMERS[lane % 2]
                name = f"{consumer}-{lane}-{number}"
                if await a.answer(a.spec(event.SPEC_CREATE, name, consumer, data=bundle_data("x" * 2000))):
                    return
                acknowledged.add(name)

        await asyncio.gather(*(one_after_the_other(lane) for lane in range(20)))


async def everything_arrives(server: harness.Running, acknowledged: set[str]) -> None:
    """Connect an agent that was there before and one that was not: the first asks, the second has it all pending."""
    assert acknowledged <= (await server.bundles()).keys()
    async with agent(server.agents, "cluster1") as one, one.subscribe() as got:
        await one.resync({})
        await collect(got, {name for name in acknowledged if name.startswith("cluster1")})
    async with agent(server.agents, "cluster2") as two, two.subscribe() as got:
        await collect(got, {name for name in acknowledged if name.startswith("cluster2")})


async def collect(got: Stream, names: set[str]) -> None:
    """Wait until every name has been sent."""
    for name in names:
        await got.spec_of(name)


def postmaster_pid(data_dir: Path) -> int:
    found = postmaster.recorded(data_dir / "postgres")
    assert found
    return found.pid


@contextlib.contextmanager
def no_database_left(place: harness.Place) -> Iterator[None]:
    """End the PostgreSQL of a killed server, should the test end before another server has taken it over."""
    try:
        yield
    finally:
        found = postmaster.recorded(place.folder / "data" / "postgres")
        if found and postmaster.is_listening(found):
            os.kill(found.pid, signal.SIGINT)


async def test_kill_9_in_the_middle_of_a_load(tmp_path: Path) -> None:
    place = harness.Place(folder=tmp_path)

    with no_database_left(place):
        acknowledged: set[str] = set()
        async with place.run() as server:
            for name in CONSUMERS:
                await server.add_consumer(name)
            async with agent(server.agents, "cluster1") as one, one.subscribe():
                loading = asyncio.ensure_future(publish_until_it_breaks(server.sources, acknowledged=acknowledged))
                await waiting.until(lambda: len(acknowledged) >= 40, what="a load")
                server.kill()
                await loading
                await server.process.wait()
        assert len(acknowledged) < LOAD, "it was killed too late to prove anything"

        async with place.run() as server, agent(server.agents, "cluster1") as one:
            await everything_arrives(server, acknowledged)
            # Statuses, too: what the agent was told is stored stays stored.
            told: dict[str, str] = {}

            async def report(name: str) -> None:
                told_now = one.report(name, 1)
                if not await one.answer(told_now):
                    told[name] = str(told_now.extensions[event.SEQUENCE_ID])

            reporting = asyncio.gather(*(report(name) for name in acknowledged if name.startswith("cluster1")))
            await waiting.until(lambda: len(told) >= 10, what="statuses")
            server.kill()
            await reporting
            await server.process.wait()

        async with place.run() as server:
            shown = await server.bundles()
            assert {name: shown[name]["status"]["SequenceID"] for name in told} == told
            async with source(server.sources) as a, a.subscribe() as heard:
                await a.resync({})
                for name in told:
                    await heard.spec_of(name)


async def test_server_restarts_its_killed_embedded_database(tmp_path: Path) -> None:
    place = harness.Place(folder=tmp_path)

    with no_database_left(place):
        async with place.run() as server, source(server.sources) as a:
            await server.add_consumer("cluster1")
            await a.create("before", "cluster1")
            os.kill(postmaster_pid(tmp_path / "data"), signal.SIGKILL)

            async def accepts_spec_requests() -> bool:
                return not await a.answer(a.spec(event.SPEC_CREATE, "after", "cluster1"))

            await waiting.until(
                lambda: "ended unexpectedly and was restarted" in server.log.read_text(), seconds=40, what="the word"
            )
            await waiting.until(accepts_spec_requests, seconds=40, what="a database")
            assert {"before", "after"} <= (await server.bundles()).keys()
            await waiting.until(lambda: _is_well(server), seconds=40, what="readiness")


async def _is_well(server: harness.Running) -> bool:
    return await server.probe() == 200


async def lanes_of_load(address: str, *, acknowledged: list[str], refused: list[str], stop: asyncio.Event) -> None:
    """Create bundles until told to stop; remember who was taken and with which words others were refused."""
    async with source(address) as a:

        async def lane(number: int) -> None:
            for count in itertools.count():
                if stop.is_set():
                    return
                name = f"w{number}-{count}"
                text = await a.answer(a.spec(event.SPEC_CREATE, name, "cluster1"))
                (refused if text else acknowledged).append(text or name)

        await asyncio.gather(*(lane(number) for number in range(5)))


@pytest.mark.parametrize("victim", ["backend", "postmaster"])
async def test_the_database_is_killed_under_load_and_comes_back(tmp_path: Path, victim: str) -> None:
    """Callers hear Unavailable, the probe says so, nothing else ends; when the database is back, so is everything."""
    folder = Path(tempfile.mkdtemp(prefix="pm-"))
    # The address stays the same when the socket moves with a restart.
    link = folder / "run"

    def start(cluster: PostgresCluster) -> Dsn:
        address = cluster.start()
        link.unlink(missing_ok=True)
        link.symlink_to(address.host)
        return replace(address, host=str(link))

    async def scenario(address: Dsn) -> None:
        acknowledged: list[str] = []
        refused: list[str] = []
        stop = asyncio.Event()
        async with (
            harness.in_process(address, sweep_interval="200ms") as server,
            agent(server.agents, "cluster1") as one,
            one.subscribe() as got,
        ):
            await server.add_consumer("cluster1")
            loading = asyncio.ensure_future(
                lanes_of_load(server.sources, acknowledged=acknowledged, refused=refused, stop=stop)
            )
            await waiting.until(lambda: len(acknowledged) >= 20, what="a load")
            if victim == "backend":
                # PostgreSQL ends all connections and recovers, as after any crash of one of its processes.
                pid = await server.value(
                    "SELECT pid FROM pg_stat_activity WHERE application_name = 'maestropy' LIMIT 1"
                )
                os.kill(pid, signal.SIGKILL)
            else:
                os.kill(postmaster_pid(tmp_path), signal.SIGKILL)
                await waiting.until(lambda: is_resync_answered(server, 500), what="the probe's complaint")
                assert await server.probe("/livez") == 200
                await asyncio.to_thread(clusters[0].stop)
                clusters.append(PostgresCluster(tmp_path, max_connections=60))
                await asyncio.to_thread(start, clusters[-1])
            await waiting.until(lambda: len(refused) > 0, what="a refusal")
            before = len(acknowledged)
            await waiting.until(lambda: len(acknowledged) > before + 20, what="the load afterwards")
            stop.set()
            await loading
            await waiting.until(lambda: is_resync_answered(server, 200), what="readiness")
            assert {text.partition(":")[0] for text in refused} == {grpc.StatusCode.UNAVAILABLE.name}, refused
            await collect(got, set(acknowledged))
            assert set(acknowledged) <= (await server.bundles()).keys()

    clusters = [PostgresCluster(tmp_path, max_connections=60)]
    try:
        address = start(clusters[0])
        await migrate.migrate(address)
        await scenario(address)
    finally:
        clusters[-1].stop()
        shutil.rmtree(folder)


async def is_resync_answered(server: harness.Running, code: int) -> bool:
    return await server.probe() == code


@pytest.mark.parametrize("flags", [(), ("--workers=2",)], ids=["one-process", "two-workers"])
async def test_sigterm_in_the_middle_of_a_load(tmp_path: Path, flags: tuple[str, ...]) -> None:
    place = harness.Place(folder=tmp_path)

    with no_database_left(place):
        acknowledged: set[str] = set()
        async with place.run(*flags) as server:
            for name in CONSUMERS:
                await server.add_consumer(name)
            async with agent(server.agents, "cluster1") as one, one.subscribe() as got:
                loading = asyncio.ensure_future(publish_until_it_breaks(server.sources, acknowledged=acknowledged))
                await waiting.until(lambda: len(acknowledged) >= 40, what="a load")
                assert await server.terminate() == 0, server.log.read_text()[-2000:]
                await loading
                await asyncio.wait_for(got.ended.wait(), waiting.TIMEOUT)
                assert got.error is None, "a stream ends cleanly when its server goes"
            assert await server.probe() == 0
            assert "Traceback" not in server.log.read_text()

        async with place.run() as server:
            await everything_arrives(server, acknowledged)
            assert await server.terminate() == 0
