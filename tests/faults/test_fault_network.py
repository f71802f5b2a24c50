"""Networks that cut, hold, strand, slow down, repeat, reorder and damage: nobody is misled, and all ends well."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from maestropy.store.dsn import Dsn
from maestropy.wire.events import event
from tests import waiting
from tests.faults import fault_programs
from tests.faults.fault_ledger import GONE, Ledger
from tests.faults.fault_parties import LightAgent, Listener, SourceClient, running, source_client
from tests.faults.fault_proxy import FaultProxy, proxies
from tests.faults.fault_world import FLAGS, light_agent, objects_of, settles
from tests.stack import harness
from tests.stack.clients import agent, bundle_data, source


@dataclass(frozen=True, kw_only=True)
class Rig:
    """A server, and its users behind a proxy each."""

    database: Dsn
    server: fault_programs.ServerProgram
    client: SourceClient
    agent: LightAgent
    listener: Listener
    to_sources: FaultProxy
    to_agents: FaultProxy
    ledger: Ledger

    async def settles(self) -> None:
        await settles(self.ledger, address=self.database, objects=objects_of([self.agent]), listeners=[self.listener])


@asynccontextmanager
async def rig(database: Dsn, folder: Path, ledger: Ledger) -> AsyncIterator[Rig]:
    server = fault_programs.server(folder, database, *FLAGS)
    ports = [int(address.rpartition(":")[2]) for address in (server.sources, server.agents)]
    async with proxies(*(("127.0.0.1", port) for port in ports)) as (to_sources, to_agents):
        one = light_agent(to_agents.address, "cluster1", ledger)
        listener = Listener([to_sources.address], ledger)
        async with (
            fault_programs.programs(server),
            source_client(to_sources.address, ledger=ledger) as client,
            running(one.run, listener.run),
        ):
            client.timeout_seconds = 2
            await server.running().add_consumer("cluster1")
            yield Rig(
                database=database,
                server=server,
                client=client,
                agent=one,
                listener=listener,
                to_sources=to_sources,
                to_agents=to_agents,
                ledger=ledger,
            )
            assert server.is_alive
            assert "Traceback" not in server.log.read_text()


async def live(client: SourceClient, chance: random.Random, *, count: int) -> None:
    """Let bundles live, a few at a time."""
    unpublished = [f"w{number}" for number in range(count)]

    async def lane() -> None:
        while unpublished:
            bundle = unpublished.pop()
            await client.insist(bundle, "cluster1", "first")
            for number in range(chance.randrange(3)):
                await client.insist(bundle, "cluster1", f"text {number}")
            if chance.random() < 0.5:
                await client.insist(bundle, "cluster1", GONE)

    await asyncio.gather(*(lane() for _ in range(8)))


def cut_short(proxy: FaultProxy, chance: random.Random) -> Callable[[bytes], bytes]:
    """Return what loses the end of about every fiftieth piece, and then the connections with it.

    Not the end alone: pieces may end where messages do, and nothing but TCP itself tells that one is missing then. For
    the same reason nothing of the connection follows before the cut: halves of two messages would look like a third.
    """

    def damage(data: bytes) -> bytes:
        if not data or chance.random() > 0.02:
            return data
        asyncio.get_running_loop().call_later(0.01, proxy.cut)
        return data[: len(data) // 2]

    return damage


def slow(here: Rig, _: random.Random) -> None:
    for proxy in (here.to_sources, here.to_agents):
        proxy.up.delay_seconds = proxy.down.delay_seconds = 0.02
        proxy.down.bytes_per_second = 50_000


def cut(here: Rig, _: random.Random) -> None:
    here.to_sources.cut()
    here.to_agents.cut()


def strand(here: Rig, _: random.Random) -> None:
    here.to_sources.strand()
    here.to_agents.strand()


def hold(here: Rig, _: random.Random) -> None:
    here.to_sources.partition()
    here.to_agents.partition()


def deafen(here: Rig, _: random.Random) -> None:
    """What clients and agents say arrives; what they should hear does not."""
    here.to_sources.down.hold()
    here.to_agents.down.hold()


def truncate(here: Rig, chance: random.Random) -> None:
    for proxy in (here.to_sources, here.to_agents):
        proxy.up.damage = proxy.down.damage = cut_short(proxy, chance)


FAULTS = [cut, strand, hold, deafen, slow, truncate]


@pytest.mark.peers
@pytest.mark.parametrize(
    "fault",
    [pytest.param(each, id=each.__name__) for each in FAULTS],
)
async def test_between_the_server_and_its_users(
    fault: Callable[[Rig, random.Random], None],
    database: Dsn,
    tmp_path: Path,
    ledger: Ledger,
    chance: random.Random,
) -> None:
    """The fault comes twice, in the middle of a load, and lasts a moment."""

    # Not `play`: the gRPC library leaves a task behind where a connection never answers.

    async with rig(database, tmp_path, ledger) as here:
        living = asyncio.ensure_future(live(here.client, chance, count=40))
        for _ in range(2):
            enough = ledger.taken + 10
            await waiting.until(lambda: living.done() or ledger.taken >= enough, what="a load")
            fault(here, chance)
            await asyncio.sleep(1)  # how long the fault lasts
            here.to_sources.heal()
            here.to_agents.heal()
        await living
        await here.settles()


async def test_everything_comes_ten_times(database: Dsn) -> None:
    """Spec requests and reports are repeated as a nervous network would: nothing happens twice, and no queue grows."""

    async with (
        harness.in_process(database, event_retention="1h") as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
        one.subscribe() as got,
        a.subscribe() as told,
    ):
        await server.add_consumer("cluster1")
        create = a.spec(event.SPEC_CREATE, "w", "cluster1")
        update = a.spec(event.SPEC_UPDATE, "w", "cluster1", data=bundle_data("new"), version=1)
        delete = a.spec(event.SPEC_DELETE, "w", "cluster1")
        for asked, version in ((create, 1), (update, 2)):
            assert set(await asyncio.gather(*(a.answer(asked) for _ in range(10)))) == {""}
            await got.spec_of("w", version=version)
            report = one.report("w", version)
            await asyncio.gather(*(one.answer(report) for _ in range(10)))
            await told.spec_of("w", version=version)
        assert set(await asyncio.gather(*(a.answer(delete) for _ in range(10)))) == {""}
        await got.take(lambda e: event.DELETION_TIMESTAMP in e.extensions)
        assert await server.value("SELECT count(*) FROM events") == 3
        last = one.report("w", 2, "Deleted")
        assert set(await asyncio.gather(*(one.answer(last) for _ in range(10)))) == {""}
        await told.take(lambda e: b'"Deleted"' in e.data)
        ends = "SELECT count(*) FROM status_events WHERE status_event_type = 'StatusDelete'"
        assert await server.value(ends) == 1
        assert await server.value("SELECT count(*) FROM status_events") == 3
        assert await server.value("SELECT count(*) FROM resources") == 0
        # A creation that was on its way for so long that its bundle is over is a new bundle: ids are the source's
        # to choose, and the server keeps none of the dead. What is late about the old one does not touch it.
        await one.answer(one.report("w", 2))
        assert await server.value("SELECT count(*) FROM resources") == 0


async def test_everything_comes_in_the_wrong_order(database: Dsn) -> None:
    """Deletions before creations, old updates after new ones, old reports after new ones and about the dead."""

    async with (
        harness.in_process(database, event_retention="1h") as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
        one.subscribe() as got,
        a.subscribe() as told,
    ):
        await server.add_consumer("cluster1")
        # A deletion of what does not exist yet is done; the creation after it counts.
        await a.delete("w", "cluster1")
        await a.create("w", "cluster1")
        assert not (await got.spec_of("w", version=1)).extensions.get(event.DELETION_TIMESTAMP)

        late = a.spec(event.SPEC_UPDATE, "w", "cluster1", data=bundle_data("late"), version=1)
        await a.update("w", "cluster1", data=bundle_data("new"), version=1)
        assert "is not the latest" in await a.answer(late)
        await got.spec_of("w", version=2)

        old, new = one.report("w", 2), one.report("w", 2)
        await one.publish(new)
        await one.answer(old)
        about_old_version = one.report("w", 1)
        await one.answer(about_old_version)
        heard = await told.spec_of("w")
        assert heard.text(event.SEQUENCE_ID) == new.text(event.SEQUENCE_ID)
        stored = await server.value("SELECT status ->> 'sequenceid' FROM resources")
        assert stored == new.text(event.SEQUENCE_ID)

        # Nobody wants it deleted: the report of a deletion brings it back to the agent, and not to an end.
        await one.publish(one.report("w", 2, "Deleted"))
        await got.spec_of("w", version=2)
        await a.delete("w", "cluster1")
        await one.publish(one.report("w", 2, "Deleted"))
        await told.take(lambda e: b'"Deleted"' in e.data)
        await one.answer(one.report("w", 2))
        assert "maestro-7" in await a.answer(late)
        assert await server.value("SELECT count(*) FROM resources") == 0
        assert not told.events, "a word about the dead"
