"""Many at once: a storm of retries, a fleet that reconnects, a resync of ten thousand. Nobody starves."""

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from maestropy.store.dsn import Dsn
from maestropy.wire.events import event
from tests import waiting
from tests.faults import fault_programs
from tests.faults.fault_ledger import Ledger
from tests.faults.fault_parties import bundle_data, running, source_client
from tests.faults.fault_proxy import FaultProxy
from tests.faults.fault_world import light_agent, objects_of, settles
from tests.stack import harness
from tests.stack.clients import Stream, agent, source

STORED = """INSERT INTO resources
                (id, created_at, updated_at, name, source, consumer_name, version, type, payload, status, deleted_at)
            SELECT id, now(), now(), id, 'source-a', $2, 1, '', jsonb_set($3::jsonb, '{resourceid}', to_jsonb(id)),
                   jsonb_build_object('sequenceid', '1', 'statushash', 'hash-' || id, 'resourceversion', 1,
                       'specversion', '1.0', 'id', 's', 'source', 'agent', 'type', $4::text, 'resourceid', id,
                       'data', '{}'::jsonb), CASE WHEN $5 THEN now() END
            FROM unnest($1::text[]) AS n (id)"""
DELETIONS = """INSERT INTO events (id, created_at, updated_at, source, source_id, event_type)
               SELECT 'event-' || id, now(), now(), 'Resources', id, 'Delete' FROM unnest($1::text[]) AS n (id)"""
SPEC = {
    "id": "e",
    "source": "source-a",
    "type": event.SPEC_CREATE,
    "specversion": "1.0",
    "datacontenttype": "application/json",
    "resourceid": "",
    "resourceversion": 0,
    "clustername": "",
    "metadata": {"name": "work"},
    "data": json.loads(bundle_data("cm", "text")),
}


async def store(database: Dsn, names: Sequence[str], consumer: str, *, deleting: bool = False) -> None:
    """Put bundles into the database as if they had been there for long."""
    await harness.sql(database, STORED, names, consumer, json.dumps(SPEC), event.STATUS_UPDATE, deleting)
    if deleting:
        await harness.sql(database, DELETIONS, names)


def p99(seconds: Sequence[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.99)]


@pytest.mark.long
@pytest.mark.parametrize("seconds", [pytest.param(3, id="3s"), pytest.param(15, id="15s", marks=pytest.mark.peers)])
async def test_a_storm_of_retried_deletions(database: Dsn, ledger: Ledger, seconds: int) -> None:
    """A thousand bundles of an agent that is gone are deleted over and over; others are created meanwhile."""
    stuck = [f"stuck{number}" for number in range(1000)]

    async def scenario() -> None:
        async with (
            harness.in_process(database, sweep_interval="1s", event_retention="1h") as server,
            source(server.sources) as a,
            source_client(server.sources, ledger=ledger) as client,
        ):
            for name in ("away", "here"):
                await server.add_consumer(name)
            await store(database, stuck, "away", deleting=True)
            one = light_agent(server.agents, "here", ledger)
            until, asked, number = time.monotonic() + seconds, 0, 0

            async def retry(names: Sequence[str]) -> None:
                nonlocal asked
                while time.monotonic() < until:
                    for name in names:
                        await a.delete(name, "away")
                        asked += 1

            async with running(one.run):
                storm = asyncio.gather(*(retry(stuck[start::10]) for start in range(10)))
                while time.monotonic() < until:
                    await client.insist(f"w{number}", "here", "text")
                    number += 1
                await storm
                pending = "SELECT count(*) FROM events WHERE source_id LIKE 'stuck%'"
                assert await server.value(pending) == len(stuck), "a retry made another event"
                await harness.sql(database, "DELETE FROM resources WHERE consumer_name = 'away'")
                await settles(ledger, address=database, objects=objects_of([one]))
            print(
                f"{asked / seconds:.0f} deletions a second; {number} creations meanwhile, "
                f"p99 {1000 * p99(client.latencies):.0f} ms"
            )
            assert asked >= 10 * seconds
            assert number >= seconds

    await scenario()


@pytest.mark.peers
async def test_a_thousand_agents_reconnect_at_once(database: Dsn, tmp_path: Path, ledger: Ledger) -> None:
    count, named = 1000, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'maestropy'"
    consumers = [f"cluster{number}" for number in range(count)]

    server = fault_programs.server(tmp_path, database, "--db-max-open-connections=20", "--sweep-interval=1s")
    async with (
        FaultProxy(("127.0.0.1", int(server.agents.rpartition(":")[2]))) as proxy,
        fault_programs.programs(server),
        source_client(server.sources, ledger=ledger) as client,
    ):
        await harness.sql(
            database,
            "INSERT INTO consumers (id, created_at, updated_at, name) "
            "SELECT name, now(), now(), name FROM unnest($1::text[]) AS n (name)",
            consumers,
        )
        agents = [
            light_agent(proxy.address, name, ledger, seed=n, heartbeat_timeout_seconds=60)
            for n, name in enumerate(consumers)
        ]
        async with running(*(each.run for each in agents)):
            await waiting.until(lambda: all(a.link.is_connected for a in agents), seconds=60, what="all agents")
            before = server.memory_bytes()
            proxy.cut()
            began, most = time.monotonic(), 0
            for consumer in consumers[::10]:
                await client.insist(f"w-{consumer}", consumer, "text")
                most = max(most, await harness.value(database, named))
            await waiting.until(lambda: all(a.lives >= 2 for a in agents), seconds=60, what="all agents, again")
            print(
                f"all {count} were back within {time.monotonic() - began:.1f} s, with {most} connections to the "
                f"database and {(server.memory_bytes() - before) >> 20} MiB more memory"
            )
            await settles(ledger, address=database, objects=objects_of(agents))
            assert most <= 20


@pytest.mark.peers
async def test_a_resync_of_ten_thousand(database: Dsn) -> None:
    """Of agents and of sources: exactly what is lacking comes, and asking again changes nothing."""
    known = [f"w{number}" for number in range(10_000)]
    lacking = [f"new{number}" for number in range(10)]

    async with (
        harness.in_process(database) as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
    ):
        await server.add_consumer("cluster1")
        await store(database, [*known, *lacking], "cluster1")
        async with one.subscribe() as got, a.subscribe() as told:
            for _ in range(2):
                await one.resync(dict.fromkeys(known, 1))
                await a.resync({name: f"hash-{name}" for name in known} | dict.fromkeys(lacking, "other"))
                for name in lacking:
                    await got.spec_of(name)
                    await told.spec_of(name)
            assert specs(got) == set()
            assert not told.events
            await one.resync(dict.fromkeys([*known, *lacking, "orphan"], 1))
            assert event.DELETION_TIMESTAMP in (await got.spec_of("orphan")).extensions
            assert specs(got) == set()


def specs(got: Stream) -> set[str]:
    return {each.text(event.RESOURCE_ID) for each in got.events if each.type != event.STATUS_RESYNC_REQUEST}
