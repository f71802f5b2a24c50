"""A standby is promoted while the server runs: the server finds the new primary, and nothing acknowledged is lost."""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from maestropy.journal.phrases import DatabasePhrase, ListenerPhrase
from maestropy.store import errors
from maestropy.store.dsn import Dsn
from maestropy.store.migrations import migrate
from maestropy.store.postgres import pool, servers
from maestropy.wire.events import event
from tests import waiting
from tests.faults import fault_programs
from tests.peers.postgres import postgres_servers
from tests.peers.postgres.postgres_servers import DATABASE, PostgresServer
from tests.stack import harness
from tests.stack.clients import Source, agent, new_id, source

pytestmark = pytest.mark.peers

LISTENERS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'maestropy-listener'"


class Load:
    """A source that creates one resource after the other, and keeps what it was told."""

    def __init__(self, client: Source) -> None:
        self._client = client
        self._is_over = False
        self.acknowledged: list[str] = []
        self.refusals: list[str] = []

    async def run(self) -> None:
        while not self._is_over:
            resource_id = new_id()
            answer = await self._client.answer(self._client.spec(event.SPEC_CREATE, resource_id, "cluster1"))
            (self.refusals if answer else self.acknowledged).append(answer or resource_id)
            await asyncio.sleep(0.02 if answer else 0)

    def stop(self) -> None:
        self._is_over = True


def both(*servers_: PostgresServer) -> Dsn:
    """Return the address of a database with several hosts."""
    first, *others = servers_
    return replace(first.dsn, other_hosts=tuple(server.host for server in others))


async def health(server: harness.Running) -> tuple[int, str]:
    async with httpx.AsyncClient(verify=False, timeout=20) as client:
        answer = await client.get(f"{server.health}/healthcheck")
    return answer.status_code, str(answer.json().get("reason", ""))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("fault", ["killed", "frozen"])
async def test_promoted_standby_is_used_and_nothing_acknowledged_is_lost(
    fault: str, pair: tuple[PostgresServer, PostgresServer], tmp_path: Path
) -> None:
    primary, standby = pair
    dsn = both(primary, standby)
    await migrate.migrate(dsn)
    # A rescan that does not come in this test: what arrives was announced by a notification.
    program = fault_programs.server(tmp_path, dsn, "--sweep-interval=10m")
    async with fault_programs.programs(program):
        server = program.running()
        await server.add_consumer("cluster1")
        async with (
            source(server.sources) as a,
            a.subscribe() as statuses,
            agent(server.agents, "cluster1") as b,
            b.subscribe() as specs,
        ):
            load = Load(a)
            loading = asyncio.ensure_future(load.run())
            await waiting.until(lambda: len(load.acknowledged) >= 50, what="a load")
            await asyncio.to_thread(primary.kill if fault == "killed" else primary.freeze)
            if fault == "killed":
                await waiting.until(lambda: says_standby(server), what="the reason in the readiness")
            acknowledged_before = len(load.acknowledged)
            began = time.monotonic()
            await asyncio.to_thread(standby.promote)
            await waiting.until(lambda: len(load.acknowledged) > acknowledged_before + 50, what="the load afterwards")
            print(f"{fault}: requests were accepted again {time.monotonic() - began:.1f} s after the promotion began")
            await waiting.until(lambda: is_ready(server), what="readiness")
            load.stop()
            await loading
            assert {text.partition(":")[0] for text in load.refusals} <= {"UNAVAILABLE"}, set(load.refusals)
            stored = (await server.bundles()).keys()
            assert set(load.acknowledged) <= stored, "an acknowledged request is lost"
            print(f"{len(load.acknowledged)} acknowledged and stored, {len(load.refusals)} refused")

            # Agent and source have to resync: a standby may lack what the former primary had acknowledged.
            for stream in (specs, statuses):
                await asyncio.wait_for(stream.ended.wait(), waiting.TIMEOUT)
            await waiting.until(lambda: standby.sql(LISTENERS, database=DATABASE) == "1", what="the listener")
            async with b.subscribe() as again, a.subscribe() as statuses_again:
                await b.resync({})
                for resource_id in load.acknowledged:
                    await again.spec_of(resource_id)
                # A spec reaches the agent, and a status its source: notifications work again.
                began = time.monotonic()
                await a.create("last", "cluster1")
                await again.spec_of("last")
                await b.tell("last", 1)
                await statuses_again.spec_of("last")
                print(f"a spec and its status took {time.monotonic() - began:.2f} s afterwards")
    log = program.log.read_text()
    assert DatabasePhrase.MOVED in log
    assert DatabasePhrase.PROMOTED in log
    assert ListenerPhrase.CONNECTION_LOST in log
    assert "Traceback" not in log


@pytest.mark.timeout(120)
async def test_status_that_a_standby_lacks_is_requested_again(tmp_path: Path) -> None:
    """With asynchronous replication an acknowledged status can be lost; only its agent still has it."""
    with postgres_servers.installation() as installed, postgres_servers.pair(installed, is_synchronous=False) as pair:
        primary, standby = pair
        dsn = both(primary, standby)
        await migrate.migrate(dsn)
        program = fault_programs.server(tmp_path, dsn, "--sweep-interval=10m")
        async with fault_programs.programs(program):
            server = program.running()
            await server.add_consumer("cluster1")
            async with source(server.sources) as a, agent(server.agents, "cluster1") as b, b.subscribe() as specs:
                await a.create("r1", "cluster1")
                await specs.spec_of("r1")
                stored = "SELECT count(*) FROM resources WHERE id = 'r1'"
                await waiting.until(lambda: standby.sql(stored, database=DATABASE) == "1", what="the standby's copy")
                await asyncio.to_thread(standby.detach)
                await b.tell("r1", 1, hash="hash-1")
                await asyncio.to_thread(primary.kill)
                await asyncio.to_thread(standby.promote)
                await asyncio.wait_for(specs.ended.wait(), waiting.TIMEOUT)
                async with b.subscribe() as again:
                    request = await again.take(lambda received: received.type == event.STATUS_RESYNC_REQUEST)
                    assert b'"r1"' in request.data
                    assert b"hash-1" not in request.data, "the status is lost, and the server asks for it"


async def says_standby(server: harness.Running) -> bool:
    code, reason = await health(server)
    return code == 503 and "none of the 2 hosts can be used" in reason and "is a standby" in reason


async def is_ready(server: harness.Running) -> bool:
    return await server.probe() == 200


async def test_standby_is_never_used(pair: tuple[PostgresServer, PostgresServer]) -> None:
    primary, standby = pair
    connection = await servers.Connector(both(standby, primary)).connect()
    try:
        assert await connection.fetchval("SELECT current_setting('port')") == str(primary.port)
    finally:
        await connection.close()
    for target in (None, "any", "primary", "read-write"):
        with pytest.raises(errors.DatabaseReadOnly, match="is a standby"):
            await servers.Connector(replace(standby.dsn, target_session_attrs=target)).connect()


async def test_server_does_not_start_on_a_standby(pair: tuple[PostgresServer, PostgresServer], tmp_path: Path) -> None:
    primary, standby = pair
    await migrate.migrate(primary.dsn)
    text = await asyncio.to_thread(start_error, standby.dsn)
    assert "is read-only" in text
    assert "is a standby" in text
    assert "give the address of the primary, or of all hosts" in text


def start_error(dsn: Dsn, *flags: str) -> str:
    """Start a server that must not start, and return its complaint."""
    done = subprocess.run(
        [sys.executable, "-m", "maestropy.cli.main", "server", "--server-hostname=127.0.0.1", *flags],
        env={**os.environ, "MAESTRO_DB_DSN": str(dsn), "MAESTRO_ENV": ""},
        capture_output=True,
        check=False,
        timeout=60,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


async def test_old_primary_that_comes_back_read_only_is_left(pair: tuple[PostgresServer, PostgresServer]) -> None:
    """A pool on a primary that is fenced by making it read-only moves to the promoted one with the first write."""
    primary, standby = pair
    await migrate.migrate(primary.dsn)
    moves: list[str] = []
    opened = await pool.connect(both(primary, standby), max_connections=2, on_move=moves.append)
    try:
        async with opened.transaction() as connection:
            await connection.execute("CREATE TABLE t ()")
        primary.sql("ALTER SYSTEM SET default_transaction_read_only = on")
        primary.sql("SELECT pg_reload_conf()")
        await asyncio.to_thread(standby.promote)
        with contextlib.suppress(errors.DatabaseReadOnly):
            async with opened.transaction() as connection:
                await connection.execute("CREATE TABLE u ()")
        async with opened.transaction() as connection:
            await connection.execute("CREATE TABLE v ()")
        assert moves == [str(standby.host)]
    finally:
        await opened.close()
