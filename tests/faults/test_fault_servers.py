"""Servers are killed and frozen in the middle of their work: what was acknowledged stays, and others go on."""

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from maestropy.store.dsn import Dsn
from maestropy.store.postgres import locks
from tests import waiting
from tests.faults import fault_programs
from tests.faults.fault_ledger import GONE, Ledger
from tests.faults.fault_parties import Listener, SourceClient, running, source_client
from tests.faults.fault_world import FLAGS, light_agent, objects_of, settles
from tests.stack import harness

CONSUMERS = ("cluster1", "cluster2")


async def life(client: SourceClient, bundle: str, consumer: str, chance: random.Random) -> None:
    """Let one bundle live: created, perhaps changed, perhaps deleted."""
    await client.insist(bundle, consumer, "first")
    for number in range(chance.randrange(3)):
        await client.insist(bundle, consumer, f"text {number}")
    if chance.random() < 0.4:
        await client.insist(bundle, consumer, GONE)


async def lives(client: SourceClient, *, count: int, chance: random.Random, lanes: int = 10) -> None:
    """Let many bundles live, several at a time."""
    unpublished = [(f"w{number}", chance.choice(CONSUMERS), chance.random()) for number in range(count)]

    async def lane() -> None:
        while unpublished:
            bundle, consumer, seed = unpublished.pop()
            await life(client, bundle, consumer, random.Random(seed))

    await asyncio.gather(*(lane() for _ in range(lanes)))


@pytest.mark.long
@pytest.mark.parametrize("kills", [pytest.param(1, id="once"), pytest.param(4, id="often", marks=pytest.mark.peers)])
async def test_kill_9_during_publish_and_fan_out(
    database: Dsn, tmp_path: Path, chance: random.Random, ledger: Ledger, kills: int
) -> None:
    """Two servers are killed in turn while spec requests and statuses flow through both."""

    servers = [fault_programs.server(tmp_path, database, *FLAGS, name=name) for name in ("one", "two")]
    agents = [light_agent(s.agents, c, ledger) for s, c in zip(servers, CONSUMERS, strict=True)]
    listener = Listener([s.sources for s in servers], ledger)
    async with (
        fault_programs.programs(*servers),
        source_client(*(s.sources for s in servers), ledger=ledger) as client,
        running(*(agent.run for agent in agents), listener.run),
    ):
        for name in CONSUMERS:
            await servers[0].running().add_consumer(name)
        living = asyncio.ensure_future(lives(client, count=100 * kills, chance=chance))
        for turn in range(kills):
            enough = ledger.taken + 20
            await waiting.until(lambda: living.done() or ledger.taken > enough, what="a load")
            await servers[turn % 2].kill()
            await servers[turn % 2].start()
        await living
        await settles(ledger, address=database, objects=objects_of(agents), listeners=[listener])
        assert ledger.counts["create unknown"] + ledger.counts["update unknown"] > 0, "killed too late"


LOCKS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = $1"
HOT = [f"hot{number}" for number in range(5)]


async def freeze_with_a_lock(server: fault_programs.Program, database: Dsn) -> None:
    """Freeze a busy server at a moment in which it holds the lock of a bundle."""
    for _ in range(1000):
        server.pause()
        if await harness.value(database, LOCKS, locks.RESOURCES):
            return
        server.resume()
        await asyncio.sleep(0.003)
    raise AssertionError("the server never held a lock")


@asynccontextmanager
async def changes(client: SourceClient) -> AsyncIterator[None]:
    """Change the hot bundles over and over."""

    async def change(bundle: str) -> None:
        for number in itertools.count():
            await client.insist(bundle, "cluster1", f"change {number}", seconds=120)

    changing = asyncio.gather(*map(change, HOT))
    try:
        yield
    finally:
        changing.cancel()
        await asyncio.gather(changing, return_exceptions=True)


@pytest.mark.long
@pytest.mark.parametrize("seconds", [pytest.param(5, id="5s"), pytest.param(30, id="30s", marks=pytest.mark.peers)])
async def test_a_frozen_lock_holder_holds_up_its_own_bundles_only(
    database: Dsn, tmp_path: Path, ledger: Ledger, seconds: int
) -> None:
    """The other server is asked for the locked bundles too, in the same batches as everything else."""

    frozen, other = (fault_programs.server(tmp_path, database, *FLAGS, name=name) for name in ("frozen", "other"))
    agent = light_agent(other.agents, "cluster1", ledger)
    listener = Listener([other.sources], ledger)
    async with (
        fault_programs.programs(frozen, other),
        source_client(frozen.sources, ledger=ledger) as here,
        source_client(other.sources, ledger=ledger) as there,
        running(agent.run, listener.run),
    ):
        here.timeout_seconds = there.timeout_seconds = 60
        await other.running().add_consumer("cluster1")
        for bundle in HOT:
            await here.insist(bundle, "cluster1", "new")
        async with changes(here):
            await freeze_with_a_lock(frozen, database)
            knocking = asyncio.gather(*(there.knock(bundle, "cluster1") for bundle in HOT))
            until, served = time.monotonic() + seconds, 0
            while time.monotonic() < until:
                await there.insist(f"w{served}", "cluster1", "text")
                await there.insist(f"w{served}", "cluster1", "other text")
                served += 1
            assert any("is locked by another instance" in refusal for refusal in await knocking), await knocking
            frozen.resume()
            print(f"{served} bundles lived meanwhile; the slowest creation took {max(there.latencies):.2f} s")
            assert served > 2 * seconds
            changed = ledger.counts["update taken"]
            await waiting.until(lambda: ledger.counts["update taken"] > changed + 10, what="changes afterwards")
        await settles(ledger, address=database, objects=objects_of([agent]), listeners=[listener])


@pytest.mark.long
async def test_kill_9_with_a_lock_and_another_takes_over(database: Dsn, tmp_path: Path, ledger: Ledger) -> None:
    killed, other = (fault_programs.server(tmp_path, database, *FLAGS, name=name) for name in ("killed", "other"))
    agent = light_agent(other.agents, "cluster1", ledger)
    async with (
        fault_programs.programs(killed, other),
        source_client(killed.sources, ledger=ledger) as here,
        source_client(other.sources, ledger=ledger) as there,
        running(agent.run),
    ):
        await other.running().add_consumer("cluster1")
        for bundle in HOT:
            await here.insist(bundle, "cluster1", "new")
        async with changes(here):
            await freeze_with_a_lock(killed, database)
            began = time.monotonic()
            await killed.kill()
        await waiting.until(lambda: is_free(database), what="the lock, free")
        print(f"the lock was free {1000 * (time.monotonic() - began):.0f} ms after the kill")
        for bundle in HOT:
            assert "is not the latest" in await there.knock(bundle, "cluster1")
            await there.insist(bundle, "cluster1", GONE)
        await settles(ledger, address=database, objects=objects_of([agent]))


async def is_free(database: Dsn) -> bool:
    return not await harness.value(database, LOCKS, locks.RESOURCES)
