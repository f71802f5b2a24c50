"""Servers are killed and frozen in the middle of their work: what was acknowledged stays, and others go on."""

import asyncio
import random
from pathlib import Path

import fault_programs
import pytest
from fault_ledger import GONE, Ledger
from fault_parties import Listener, running, wisher
from fault_world import FLAGS, light_agent, objects_of, settles
from stack import harness

from pymaestro.store.dsn import Dsn

pytestmark = pytest.mark.timeout(150)

CONSUMERS = ("cluster1", "cluster2")


async def life(client, bundle: str, consumer: str, chance: random.Random) -> None:
    """Let one bundle live: created, perhaps changed, perhaps deleted."""
    await client.insist(bundle, consumer, "first")
    for number in range(chance.randrange(3)):
        await client.insist(bundle, consumer, f"text {number}")
    if chance.random() < 0.4:
        await client.insist(bundle, consumer, GONE)


async def lives(client, *, count: int, chance: random.Random, lanes: int = 10) -> None:
    """Let many bundles live, several at a time."""
    waiting = [(f"w{number}", chance.choice(CONSUMERS), chance.random()) for number in range(count)]

    async def lane() -> None:
        while waiting:
            bundle, consumer, seed = waiting.pop()
            await life(client, bundle, consumer, random.Random(seed))

    await asyncio.gather(*(lane() for _ in range(lanes)))


def test_kill_9_during_publish_and_fan_out(
    database: Dsn, tmp_path: Path, chance: random.Random, ledger: Ledger
) -> None:
    """Two servers are killed in turn, several times, while wishes and statuses flow through both."""

    async def scenario() -> None:
        servers = [fault_programs.server(tmp_path, database, *FLAGS, name=name) for name in ("one", "two")]
        agents = [light_agent(s.agents, c, ledger) for s, c in zip(servers, CONSUMERS, strict=True)]
        listener = Listener([s.sources for s in servers], ledger)
        async with (
            fault_programs.programs(*servers),
            wisher(*(s.sources for s in servers), ledger=ledger) as client,
            running(*(agent.run for agent in agents), listener.run),
        ):
            for name in CONSUMERS:
                await servers[0].running().add_consumer(name)
            living = asyncio.ensure_future(lives(client, count=200, chance=chance))
            for turn in range(2):
                enough = ledger.taken + 20
                await harness.until(lambda n=enough: living.done() or ledger.taken > n, what="a load")
                await servers[turn].kill()
                await servers[turn].start()
            await living
            await settles(ledger, address=database, objects=objects_of(agents), listeners=[listener])
            assert ledger.counts["create unknown"] + ledger.counts["update unknown"] > 0, "killed too late"

    harness.play(scenario())
