"""The server behind PgBouncer: no session state in transaction mode, one direct connection that listens."""

import asyncio
import itertools
import time
from pathlib import Path

import httpx
import pytest

from maestropy.journal.phrases import DatabasePhrase
from maestropy.store.migrations import migrate
from maestropy.store.postgres import notifications, pooler, servers
from maestropy.trace.database import DsnDatabase
from maestropy.trace.errors import NoAccess
from tests import waiting
from tests.faults import fault_programs
from tests.peers.postgres.pgbouncer import pgbouncer
from tests.peers.postgres.postgres_servers import DATABASE, PostgresServer
from tests.peers.postgres.test_failover import Load, health, is_ready, start_error
from tests.stack import harness
from tests.stack.clients import Agent, Stream, agent, bundle_data, new_id, source

pytestmark = pytest.mark.peers

# What a session that is not ours would leave behind.
LEFT_BEHIND = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
POOLED = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'maestropy'"


@pytest.mark.parametrize(
    ("mode", "backends", "expected"),
    [
        ("transaction", 3, pooler.Pooling.TRANSACTION),
        ("transaction", 1, pooler.Pooling.TRANSACTION),
        ("session", 3, pooler.Pooling.SESSION),
        ("session", 1, pooler.Pooling.SESSION),
    ],
)
async def test_mode_is_detected(mode: str, backends: int, expected: pooler.Pooling, single: PostgresServer) -> None:
    with pgbouncer(single, mode=mode, backends=backends) as running:
        assert await pooler.detect(running.dsn) is expected
        assert await pooler.detect(single.dsn) is pooler.Pooling.NONE


async def test_migration_passes_through(single: PostgresServer) -> None:
    with pgbouncer(single, mode="transaction") as running:
        reports = await asyncio.gather(*(migrate.migrate(running.dsn) for _ in range(3)))
        assert sorted(name for report in reports for name in report.applied) == list(migrate.names())
        assert single.sql(LEFT_BEHIND) == "0"


async def test_trace_reads_through_it(single: PostgresServer) -> None:
    with pgbouncer(single, mode="transaction") as running:
        database = DsnDatabase(dsn=str(running.dsn), timeout_seconds=1)
        assert await database.documents("SELECT json_build_object('id', $1::text)", ["r1"]) == [{"id": "r1"}]
        with pytest.raises(NoAccess, match="timed out after 1 s"):
            await database.documents("SELECT pg_sleep(30)", [])


async def test_start_error_names_the_flag_and_the_remedy(single: PostgresServer) -> None:
    await migrate.migrate(single.dsn)
    with pgbouncer(single, mode="transaction") as running:
        text = await asyncio.to_thread(start_error, running.dsn)
        assert "is behind a connection pooler (PgBouncer) in transaction mode" in text
        assert "give --db-listen-dsn or MAESTRO_DB_LISTEN_DSN the address of PostgreSQL itself" in text
        text = await asyncio.to_thread(start_error, running.dsn, f"--db-listen-dsn={running.dsn}")
        assert "is behind a connection pooler in transaction mode too" in text
    with pgbouncer(single, mode="statement") as running:
        text = await asyncio.to_thread(start_error, running.dsn, f"--db-listen-dsn={single.dsn}")
        assert "statement pooling mode" in text


async def test_listener_notices_that_it_has_no_session(single: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pooler that could not be detected at start, because it was busy."""
    monkeypatch.setattr(notifications, "PROBE_SECONDS", 0.05)
    losses: list[str] = []
    callbacks = notifications.ListenerCallbacks(
        on_gap=lambda: None, on_alive=lambda: None, on_loss=lambda error: losses.append(str(error))
    )
    with pgbouncer(single, mode="transaction") as running:
        listening = asyncio.ensure_future(
            notifications.listen(
                servers.Connector(running.dsn),
                channels={"events": lambda _: None},
                callbacks=callbacks,
                delays=lambda: itertools.repeat(1.0),
            )
        )
        other = await pooler.connect(servers.Connector(running.dsn), command_seconds=10)
        try:
            await waiting.until(lambda: takes_a_backend(other, losses), what="the listener's complaint")
        finally:
            other.terminate()
            listening.cancel()
            await asyncio.wait([listening])
    assert "give --db-listen-dsn the address of PostgreSQL itself" in losses[0]


async def takes_a_backend(connection: servers.Connection, losses: list[str]) -> bool:
    """Hold a backend for a moment, perhaps that of the listener."""
    async with connection.transaction():
        await connection.execute("SELECT pg_sleep(0.1)")
    return bool(losses)


@pytest.mark.timeout(180)
async def test_whole_loop_of_two_instances_in_transaction_mode(single: PostgresServer, tmp_path: Path) -> None:
    await migrate.migrate(single.dsn)
    with pgbouncer(single, mode="transaction", backends=3) as running:
        # A rescan that does not come in this test: what arrives was announced by a notification.
        flags = ("--sweep-interval=10m", f"--db-listen-dsn={single.dsn}")
        one = fault_programs.server(tmp_path, running.dsn, *flags, name="one")
        two = fault_programs.server(tmp_path, running.dsn, *flags, name="two")
        async with fault_programs.programs(one, two):
            await one.running().add_consumer("cluster1")
            async with (
                source(one.sources) as a,
                a.subscribe() as statuses,
                agent(two.agents, "cluster1") as b,
                b.subscribe() as specs,
            ):
                ids = [new_id() for _ in range(200)]
                began = time.monotonic()
                await asyncio.gather(*(a.create(resource_id, "cluster1") for resource_id in ids))
                await asyncio.gather(*(reports(b, specs, resource_id, version=1) for resource_id in ids))
                await asyncio.gather(*(statuses.spec_of(resource_id) for resource_id in ids))
                print(f"200 specs and their statuses took {time.monotonic() - began:.2f} s")
                await asyncio.gather(
                    *(a.update(resource_id, "cluster1", data=bundle_data("w"), version=1) for resource_id in ids)
                )
                await asyncio.gather(*(specs.spec_of(resource_id, version=2) for resource_id in ids))
                assert len(await two.running().bundles()) == 200
                await asyncio.gather(*(a.delete(resource_id, "cluster1", version=2) for resource_id in ids[:50]))
                for resource_id in ids[:50]:
                    await specs.spec_of(resource_id)
                    await b.tell(resource_id, 2, "Deleted")
                await waiting.until(lambda: counts(one, 150), what="the end of what was deleted")
            assert int(single.sql(POOLED, database=DATABASE)) <= 3, "more backends than PgBouncer may use"
            assert single.sql(LEFT_BEHIND) == "0"
    for program in (one, two):
        log = program.log.read_text()
        assert DatabasePhrase.POOLER in log
        for sign in ("Traceback", "prepared statement", "unsupported startup parameter", "recreate the listener"):
            assert sign not in log, log[-3000:]


async def reports(client: Agent, specs: Stream, resource_id: str, *, version: int) -> None:
    await specs.spec_of(resource_id, version=version)
    await client.tell(resource_id, version)


async def counts(program: fault_programs.ServerProgram, count: int) -> bool:
    return len(await program.running().bundles()) == count


@pytest.mark.timeout(180)
async def test_restarted_pooler_loses_nothing(single: PostgresServer, tmp_path: Path) -> None:
    await migrate.migrate(single.dsn)
    with pgbouncer(single, mode="transaction") as running:
        program = fault_programs.server(tmp_path, running.dsn, f"--db-listen-dsn={single.dsn}")
        async with fault_programs.programs(program):
            server = program.running()
            await server.add_consumer("cluster1")
            async with source(server.sources) as a:
                load = Load(a)
                loading = asyncio.ensure_future(load.run())
                await waiting.until(lambda: len(load.acknowledged) >= 50, what="a load")
                await asyncio.to_thread(running.kill)
                await waiting.until(lambda: len(load.refusals) > 0, what="a rejection")
                await asyncio.to_thread(running.start)
                before = len(load.acknowledged)
                await waiting.until(lambda: len(load.acknowledged) > before + 50, what="the load afterwards")
                load.stop()
                await loading
            await waiting.until(lambda: is_ready(server), what="readiness")
            assert {text.partition(":")[0] for text in load.refusals} <= {"UNAVAILABLE"}, set(load.refusals)
            assert set(load.acknowledged) <= (await server.bundles()).keys()
        assert "Traceback" not in program.log.read_text()


@pytest.mark.timeout(120)
async def test_pooler_that_leads_to_a_standby(pair: tuple[PostgresServer, PostgresServer], tmp_path: Path) -> None:
    """What a standby returns may be old: the server is not ready, and reads nothing there any more."""
    primary, standby = pair
    await migrate.migrate(primary.dsn)
    with pgbouncer(primary, mode="transaction") as running:
        program = fault_programs.server(tmp_path, running.dsn, f"--db-listen-dsn={primary.dsn}")
        async with fault_programs.programs(program):
            server = program.running()
            await server.add_consumer("cluster1")
            running.lead_to(standby)
            await waiting.until(lambda: says_standby(server), what="the reason in the readiness")
            async with server.http() as client:
                await waiting.until(lambda: is_refused(client), what="the end of reads")
            running.lead_to(primary)
            await waiting.until(lambda: is_ready(server), what="readiness")
            async with source(server.sources) as a:
                await a.create("r1", "cluster1")


async def says_standby(server: harness.Running) -> bool:
    code, reason = await health(server)
    return code == 503 and "is a standby, which takes no writes" in reason


async def is_refused(client: httpx.AsyncClient) -> bool:
    answer = await client.get("/resource-bundles")
    return answer.status_code == 503 and "read-only" in answer.text


@pytest.mark.timeout(120)
async def test_session_mode_needs_no_address_of_its_own_to_listen(single: PostgresServer, tmp_path: Path) -> None:
    await migrate.migrate(single.dsn)
    with pgbouncer(single, mode="session", backends=20) as running:
        program = fault_programs.server(tmp_path, running.dsn, "--sweep-interval=10m")
        async with fault_programs.programs(program):
            server = program.running()
            await server.add_consumer("cluster1")
            async with source(server.sources) as a, agent(server.agents, "cluster1") as b, b.subscribe() as specs:
                await a.create("r1", "cluster1")
                await specs.spec_of("r1")
