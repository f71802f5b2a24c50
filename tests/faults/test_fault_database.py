"""The database dies, stalls, vanishes and fills up: clients hear it, probes tell, and nothing acknowledged is lost."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from maestropy.journal.phrases import ListenerPhrase
from tests import waiting
from tests.faults import fault_programs
from tests.faults.fault_ledger import GONE, Ledger
from tests.faults.fault_parties import LightAgent, Listener, SourceClient, running, source_client
from tests.faults.fault_proxy import FaultProxy
from tests.faults.fault_world import FLAGS, light_agent, objects_of, settles
from tests.stack import harness

# Without it only the listener wakes: the sweep does not come in these tests.
NO_SWEEP = (*(flag for flag in FLAGS if "sweep" not in flag), "--sweep-interval=10m")
FULL = """CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$"""

SLEEP = """CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN PERFORM pg_sleep(5); RETURN NULL; END $$"""


@dataclass(frozen=True, kw_only=True)
class Rig:
    """A server behind a proxy to its database, and its users."""

    postgres: fault_programs.Postgres
    proxy: FaultProxy
    server: fault_programs.ServerProgram
    client: SourceClient
    agent: LightAgent
    listener: Listener
    ledger: Ledger

    async def settles(self) -> None:
        await settles(
            self.ledger, address=self.postgres.address, objects=objects_of([self.agent]), listeners=[self.listener]
        )

    async def answers(self, path: str, code: int) -> bool:
        return await self.server.running().probe(path) == code

    async def notices(self) -> None:
        """Wait until the probes tell that there is no database, and that this is no reason to kill the server."""
        await waiting.until(lambda: self.answers("/healthcheck", 500), what="no readiness")
        assert await self.answers("/livez", 200)

    async def recovers(self) -> None:
        await waiting.until(lambda: self.answers("/healthcheck", 200), seconds=40, what="readiness")


@asynccontextmanager
async def rig(
    postgres: fault_programs.Postgres, folder: Path, ledger: Ledger, *, flags: tuple[str, ...] = FLAGS
) -> AsyncIterator[Rig]:
    async with FaultProxy(postgres.socket) as proxy:
        server = fault_programs.server(folder, postgres.behind(proxy.port), *flags)
        agent = light_agent(server.agents, "cluster1", ledger)
        listener = Listener([server.sources], ledger)
        async with (
            fault_programs.programs(server),
            source_client(server.sources, ledger=ledger) as client,
            running(agent.run, listener.run),
        ):
            await server.running().add_consumer("cluster1")
            await asyncio.gather(*(client.insist(f"before{n}", "cluster1", "text") for n in range(30)))
            yield Rig(
                postgres=postgres,
                proxy=proxy,
                server=server,
                client=client,
                agent=agent,
                listener=listener,
                ledger=ledger,
            )
            assert server.starts == 1
            assert server.is_alive
            assert "Traceback" not in server.log.read_text()


async def live(client: SourceClient, prefix: str, *, count: int = 20) -> None:
    """Let bundles live, all at once; returns when every spec request was taken."""

    async def one(bundle: str) -> None:
        await client.insist(bundle, "cluster1", "first", seconds=90)
        await client.insist(bundle, "cluster1", "second", seconds=90)
        await client.insist(bundle, "cluster1", GONE, seconds=90)

    await asyncio.gather(*(one(f"{prefix}{number}") for number in range(count)))


@pytest.mark.peers
async def test_half_open_connections(reached: fault_programs.Postgres, tmp_path: Path, ledger: Ledger) -> None:
    """Every connection to the database is silently dead, new ones work: the server finds out within seconds."""

    async with rig(reached, tmp_path, ledger) as here:
        stranded = here.proxy.strand()
        began = time.monotonic()
        await live(here.client, "after")
        await here.settles()
        print(f"{stranded} dead connections were replaced in {time.monotonic() - began:.1f} s")
        await here.recovers()


@pytest.mark.peers
@pytest.mark.parametrize("kind", ["held", "cut", "one-way"])
async def test_partition_from_the_database(
    kind: str, reached: fault_programs.Postgres, tmp_path: Path, ledger: Ledger
) -> None:
    async with rig(reached, tmp_path, ledger) as here:
        living = asyncio.ensure_future(live(here.client, "meanwhile"))
        if kind == "one-way":
            here.proxy.down.hold()  # statements arrive and are carried out; their answers do not come back
        else:
            here.proxy.partition()
        if kind == "cut":
            here.proxy.cut()
        await here.notices()
        here.proxy.heal()
        began = time.monotonic()
        await here.recovers()
        await living
        await here.settles()
        print(f"all was well {time.monotonic() - began:.1f} s after the partition")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["killed", pytest.param("stranded", marks=pytest.mark.peers)])
async def test_the_listener_is_lost(
    kind: str, reached: fault_programs.Postgres, tmp_path: Path, ledger: Ledger
) -> None:
    """No sweep comes in this test: the listener itself must notice that it hears nothing, and make up for it."""

    async with rig(reached, tmp_path, ledger, flags=NO_SWEEP) as here:
        await here.settles()
        if kind == "killed":
            for row in await harness.sql(reached.address, harness.LISTENERS):
                await harness.sql(reached.address, "SELECT pg_terminate_backend($1)", row["pid"])
        else:
            # Nobody else says this; the listener does, to see whether it is alive and has its session.
            here.proxy.mark = b"SELECT pg_backend_pid();\0"
            await waiting.until(lambda: here.proxy.strand(only_marked=True) > 0, what="the listener")
        await live(here.client, "unheard")
        await here.settles()
        assert ListenerPhrase.CONNECTION_LOST in here.server.log.read_text()


@pytest.mark.long
async def test_kill_9_of_postgresql_under_load(
    postgres: fault_programs.Postgres, tmp_path: Path, ledger: Ledger
) -> None:
    async with rig(postgres, tmp_path, ledger) as here:
        living = asyncio.ensure_future(live(here.client, "meanwhile", count=50))
        await waiting.until(lambda: ledger.counts["update taken"] > 10, what="a load")
        postgres.kill()
        await here.notices()
        await asyncio.to_thread(postgres.start)
        here.proxy.target = postgres.socket
        await here.recovers()
        await living
        await here.settles()
        assert {text.partition(":")[0] for text in here.client.refusals} <= {"UNAVAILABLE", "DEADLINE_EXCEEDED"}


async def test_disk_full(reached: fault_programs.Postgres, tmp_path: Path, ledger: Ledger) -> None:
    """PostgreSQL takes no rows. Callers hear that they may try again; reading and deleting go on."""

    async with rig(reached, tmp_path, ledger) as here:
        await harness.sql(reached.address, FULL)
        await harness.sql(
            reached.address,
            "CREATE TRIGGER full_disk BEFORE INSERT ON resources FOR EACH ROW EXECUTE FUNCTION no_space()",
        )
        living = asyncio.ensure_future(live(here.client, "meanwhile"))
        await waiting.until(lambda: here.client.refusals, what="a refusal")
        await here.client.insist("before0", "cluster1", GONE)
        assert len(await here.server.running().bundles()) >= 29
        await harness.sql(reached.address, "DROP TRIGGER full_disk ON resources")
        await living
        await here.settles()
        assert {text.partition(":")[0] for text in here.client.refusals} == {"UNAVAILABLE"}


@pytest.mark.peers
async def test_slow_queries(reached: fault_programs.Postgres, tmp_path: Path, ledger: Ledger) -> None:
    """Every creation takes the database five seconds: it is waited for, and nobody else waits along."""

    async with rig(reached, tmp_path, ledger) as here:
        await harness.sql(reached.address, SLEEP)
        await harness.sql(
            reached.address,
            "CREATE TRIGGER slow BEFORE INSERT ON resources FOR EACH STATEMENT EXECUTE FUNCTION sleep()",
        )
        here.client.timeout_seconds = 60
        slow = asyncio.ensure_future(here.client.request("slow", "cluster1", "text"))
        await here.settles()
        assert await here.answers("/healthcheck", 200)
        assert not slow.done()
        await harness.sql(reached.address, "DROP TRIGGER slow ON resources")
        assert await slow == "taken"
        await here.settles()


@pytest.mark.peers
async def test_slow_network_to_the_database(reached: fault_programs.Postgres, tmp_path: Path, ledger: Ledger) -> None:
    """Every answer takes five seconds: not ready, but alive, and nothing is lost."""

    async with rig(reached, tmp_path, ledger) as here:
        here.proxy.down.delay_seconds = 5.0
        living = asyncio.ensure_future(live(here.client, "meanwhile", count=5))
        await here.notices()
        here.proxy.heal()
        await here.recovers()
        await living
        await here.settles()
