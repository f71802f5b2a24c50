"""Lists on a real streaming replica: own writes are in them, their age is bounded, the primary answers when it must.

`--db-read-dsn` leads to a standby that the tests pause, freeze, kill and promote.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from maestropy import AsyncMaestro, Work
from maestropy.journal.phrases import DatabasePhrase
from maestropy.server.runtime.database import DatabaseUnusable
from maestropy.store.dsn import Dsn
from maestropy.store.lists import resource_lists
from maestropy.store.migrations import migrate
from maestropy.store.postgres import pool
from maestropy.wire import positions
from tests import waiting
from tests.faults import fault_programs
from tests.peers.postgres import postgres_servers
from tests.peers.postgres.pgbouncer import pgbouncer
from tests.peers.postgres.postgres_servers import DATABASE, PostgresServer
from tests.peers.postgres.test_failover import health, start_error
from tests.stack import harness

pytestmark = [pytest.mark.peers, pytest.mark.timeout(180)]

# Long enough for a busy computer: only the tests of the age wait for it.
MAX_LAG = "60s"
SHORT_LAG = "5s"


class Replicated:
    """A primary with a standby that may fall behind, and a migrated database on both."""

    def __init__(self, primary: PostgresServer, standby: PostgresServer) -> None:
        self.primary = primary
        self.standby = standby

    async def prepare(self) -> None:
        await migrate.migrate(self.primary.dsn)
        await self.caught_up()

    async def caught_up(self) -> None:
        position = self.primary.sql("SELECT pg_current_wal_flush_lsn()")
        reached = f"SELECT pg_last_wal_replay_lsn() >= '{position}'"
        await waiting.until(lambda: self.standby.sql(reached) == "t", what="the standby to catch up")

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let the standby receive, and replay nothing."""
        self.standby.sql("SELECT pg_wal_replay_pause()")
        try:
            yield
        finally:
            self.standby.sql("SELECT pg_wal_replay_resume()")


@pytest.fixture
def replicated() -> Iterator[Replicated]:
    with (
        postgres_servers.installation() as installed,
        postgres_servers.pair(installed, is_synchronous=False) as (primary, standby),
    ):
        servers = Replicated(primary, standby)
        asyncio.run(servers.prepare())
        yield servers


@contextlib.asynccontextmanager
async def server_on(replicated: Replicated, read_dsn: Dsn | None = None, **flags: str) -> AsyncIterator["Served"]:
    given = {"db_read_dsn": str(read_dsn or replicated.standby.dsn), "db_read_max_lag": MAX_LAG, **flags}
    # The check of the settings needs the primary too.
    async with harness.in_process(replicated.primary.dsn, db_dsn=str(replicated.primary.dsn), **given) as running:
        async with running.http() as http:
            yield Served(running, http)


class Served:
    """A server with a replica, and a REST client of it."""

    def __init__(self, running: harness.InProcess, http: httpx.AsyncClient) -> None:
        self.running = running
        self.http = http

    async def create(self, name: str) -> str:
        """Create a consumer and return the position that came with the response."""
        answer = await self.http.post("/consumers", json={"name": name})
        assert answer.status_code == 201, answer.text
        return answer.headers[positions.HEADER]

    async def names(self, position: str = "") -> set[str]:
        """Return the names of the consumers in a list."""
        answer = await self.answer(position)
        assert answer.status_code == 200, answer.text
        return {item["name"] for item in answer.json()["items"]}

    async def answer(self, position: str = "") -> httpx.Response:
        headers = {positions.HEADER: position} if position else {}
        return await self.http.get("/consumers", params={"size": 1000}, headers=headers)

    def reads(self, database: str, reason: str = "") -> float:
        """Return how many lists were read from a database."""
        return self.metric(f'maestropy_list_reads_total{{database="{database}",reason="{reason}"}}')

    def metric(self, name: str) -> float:
        text, _ = self.running.context.metrics.render("")
        lines = text.decode().splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} ")), 0.0)

    async def used(self) -> None:
        await waiting.until(lambda: self.metric("maestropy_read_replica_in_use") == 1, what="the replica, in use")

    async def unused(self) -> None:
        await waiting.until(lambda: self.metric("maestropy_read_replica_in_use") == 0, what="the replica, not in use")

    def logged(self, phrase: str) -> list[str]:
        return [str(line.get("reason", "")) for line in self.running.lines(phrase)]


async def test_lists_come_from_the_replica_with_every_write_before_the_request(replicated: Replicated) -> None:
    async with server_on(replicated, db_read_wait="5s") as served:
        await served.used()
        for number in range(20):
            position = await served.create(f"c{number}")
            expected = {f"c{before}" for before in range(number + 1)}
            assert await served.names(position) == expected
            assert await served.names() == expected, "a client without a position misses a write"
        assert served.reads("replica") == 40
        assert served.logged(DatabasePhrase.REPLICA_IN_USE) == [""]


async def test_own_writes_are_in_lists_while_the_replica_is_paused(replicated: Replicated) -> None:
    async with server_on(replicated, db_read_max_lag=SHORT_LAG) as served:
        await served.used()
        with replicated.paused():
            position = await served.create("mine")
            assert await served.names(position) == {"mine"}
            assert await served.names() == {"mine"}
            await served.unused()
            assert await served.names(position) == {"mine"}
            assert await served.names() == {"mine"}
        assert served.reads("replica") == 0
        assert served.reads("primary", "lag") >= 2


async def test_age_is_bounded_and_every_change_of_state_is_told_once(replicated: Replicated) -> None:
    async with server_on(replicated, db_read_wait="5s", db_read_max_lag=SHORT_LAG) as served:
        await served.used()
        earlier = await served.create("first")
        assert await served.names() == {"first"}
        with replicated.paused():
            await served.create("of-another-client")
            # A client that has not written since may get the older list, until it would be older than allowed.
            assert await served.names(earlier) <= {"first", "of-another-client"}
            await served.unused()
            assert await served.names(earlier) == {"first", "of-another-client"}
            code, reason = await health(served.running)
            assert code == 200
            assert "lists are read from the primary, not from the read replica: it is " in reason
            assert "s behind the primary, and 5 s are allowed" in reason
        await served.used()
        assert await served.names(earlier) == {"first", "of-another-client"}
        assert (await health(served.running)) == (200, "")
        assert len(served.logged(DatabasePhrase.REPLICA_UNUSED)) == 1
        assert len(served.logged(DatabasePhrase.REPLICA_IN_USE)) == 2
        assert served.metric("maestropy_read_replica_lag_seconds") <= 5


async def test_position_that_is_none_is_rejected_and_one_of_another_history_is_ignored(replicated: Replicated) -> None:
    async with server_on(replicated, db_read_wait="10s") as served:
        await served.used()
        position = positions.Position.parse(await served.create("first"))
        with replicated.paused():
            await served.create("second")
            for text in ("0/3000000", "x" * 4000, f"{position},{position}", str(position).upper(), "-"):
                answer = await served.answer(text)
                assert answer.status_code == 400
                assert "Maestro-Position is not a position of this server" in answer.json()["reason"]
            for lsn in (position.lsn + 2**40, 2**64 - 1):
                answer = await served.answer(str(replace(position, lsn=lsn)))
                assert answer.status_code == 400
                assert "Maestro-Position lies ahead of the database" in answer.json()["reason"]
        # A restored or promoted database: the position says nothing about it, and the list is as new as can be.
        for other in (replace(position, timeline=7, lsn=2**60), replace(position, system=1, lsn=1)):
            assert await served.names(str(other)) == {"first", "second"}


async def test_sdk_sends_back_the_position_of_its_writes(replicated: Replicated) -> None:
    async with server_on(replicated) as served, client_of(served) as client:
        await served.used()
        await client.consumers.create("cluster1")
        await replicated.caught_up()
        with replicated.paused():
            await client.works("cluster1").create(work("mine"))
            assert [found.name async for found in client.works("cluster1").list(allow_lag=True)] == ["mine"]
            assert [found.name async for found in client.works("cluster1").list()] == ["mine"]
            assert served.reads("primary", "position") == 2
        await served.used()
        await replicated.caught_up()
        assert [found.name async for found in client.works("cluster1").list(allow_lag=True)] == ["mine"]
        assert served.reads("replica") == 1


@pytest.mark.parametrize("is_long", [False, True], ids=["read-before-it-is-sent", "sent-while-it-is-read"])
async def test_primary_answers_when_the_standby_dies_in_the_middle_of_a_list(
    replicated: Replicated, monkeypatch: pytest.MonkeyPatch, *, is_long: bool
) -> None:
    async with server_on(replicated, db_read_wait="5s") as served, client_of(served) as client:
        await client.consumers.create("cluster1")
        names = {f"w{number}" for number in range(30)}
        for name in names:
            await client.works("cluster1").create(work(name, size=100_000 if is_long else 10))
        await served.used()
        killed_at = 2 if is_long else 1
        calls = 0
        original = resource_lists.ResourceSnapshot.rows

        async def rows(
            self: resource_lists.ResourceSnapshot, ids: Sequence[str], columns: resource_lists.ResourceColumns
        ) -> list[resource_lists.ResourceRow]:
            nonlocal calls
            calls += 1
            if calls == killed_at:
                await asyncio.to_thread(replicated.standby.kill)
            return await original(self, ids, columns)

        monkeypatch.setattr(resource_lists.ResourceSnapshot, "rows", rows)
        assert {found.name async for found in client.works("cluster1").list()} == names
        assert calls > killed_at
        # A list that has begun is asked for again by the client, when the server may or may not have noticed the end.
        assert served.reads("primary", "failed") in ((0, 1) if is_long else (1,))
        await served.unused()
        assert "it cannot be used" in (await health(served.running))[1]


async def test_frozen_standby_is_left_to_itself(replicated: Replicated) -> None:
    async with server_on(replicated) as served:
        await served.used()
        await served.create("first")
        replicated.standby.freeze()
        assert await served.names() == {"first"}
        await served.unused()
        assert await served.names() == {"first"}
        assert served.reads("replica") == 0


async def test_promoted_standby_is_not_read_any_more(replicated: Replicated) -> None:
    async with server_on(replicated) as served:
        await served.used()
        await asyncio.to_thread(replicated.standby.promote)
        await served.create("first")
        assert await served.names() == {"first"}
        await served.unused()
        assert "it is no standby: it was promoted, or is the primary itself" in (await health(served.running))[1]
    # A server that starts meanwhile has the primary, which is enough.
    async with server_on(replicated) as served:
        assert await served.names() == {"first"}
        assert len(served.logged(DatabasePhrase.REPLICA_UNUSED)) == 1


async def test_server_starts_without_its_replica_and_uses_it_later(replicated: Replicated) -> None:
    replicated.standby.stop()
    async with server_on(replicated) as served:
        await served.create("first")
        assert await served.names() == {"first"}
        assert served.reads("primary", "unreachable") == 1
        assert "[!]read-replica warning: degraded: lists are read from the primary" in await readyz(served)
        await asyncio.to_thread(replicated.standby.start)
        await served.used()
        assert "[+]read-replica ok\n" in await readyz(served)


async def test_other_database_is_an_error_at_start(replicated: Replicated) -> None:
    primary, standby = replicated.primary, replicated.standby
    primary.sql("CREATE DATABASE other")
    primary.sql("CREATE DATABASE empty")
    await migrate.migrate(replace(primary.dsn, database="other"))
    await replicated.caught_up()
    address = replace(standby.dsn, database="other")
    complaint = await asyncio.to_thread(start_error, primary.dsn, f"--db-read-dsn={address}")
    assert (
        f"--db-read-dsn={address} is no replica of {primary.dsn}: it has another Maestro database (ident" in complaint
    )
    with pytest.raises(DatabaseUnusable, match="identity none,"):
        async with server_on(replicated, replace(standby.dsn, database="empty")):
            pass


async def test_restored_dump_is_an_error_at_start(single: PostgresServer) -> None:
    """It has the identity of the original, and positions of its own."""
    await migrate.migrate(single.dsn)
    with postgres_servers.single(single.installed, "copy") as copy:
        await migrate.migrate(copy.dsn)
        identity = single.sql("SELECT id FROM maestropy_database", database=DATABASE)
        copy.sql(f"UPDATE maestropy_database SET id = '{identity}'", database=DATABASE)
        with pytest.raises(DatabaseUnusable, match="it belongs to another PostgreSQL") as raised:
            async with server_on(Replicated(single, copy)):
                pass
        assert "give the address of a streaming replica, or leave it out" in str(raised.value)


async def test_standby_of_a_former_primary_is_not_read(replicated: Replicated) -> None:
    """A second standby is promoted; ours still follows the former primary, whose log went another way."""
    primary, standby = replicated.primary, replicated.standby
    successor = PostgresServer(name="successor", installed=primary.installed)
    primary.installed.run(
        *("pg_basebackup", "-h", "127.0.0.1", "-p", str(primary.port), "-U", postgres_servers.USER),
        *("-D", str(successor.data), "-R", "-X", "stream", "--checkpoint=fast"),
    )
    try:
        await asyncio.to_thread(successor.start)
        await asyncio.to_thread(successor.promote)
        async with server_on(Replicated(successor, standby)) as served:
            await served.create("first")
            assert await served.names() == {"first"}
            assert served.reads("primary", "other-timeline") == 1
            assert "it is on timeline 1, the primary on 2" in (await health(served.running))[1]
    finally:
        successor.stop()


async def test_replica_behind_pgbouncer_in_transaction_mode(replicated: Replicated) -> None:
    with pgbouncer(replicated.standby, mode="transaction", backends=3) as pooler:
        async with server_on(replicated, pooler.dsn, db_read_wait="5s") as served:
            await served.used()
            await served.create("first")
            lists = await asyncio.gather(*(served.names() for _ in range(20)))
            assert all(names == {"first"} for names in lists)
            assert served.reads("replica") == 20


async def test_program_reads_the_address_from_the_environment(replicated: Replicated, tmp_path: Path) -> None:
    program = fault_programs.server(
        tmp_path, replicated.primary.dsn, "--workers=2", env={"MAESTRO_DB_READ_DSN": str(replicated.standby.dsn)}
    )
    async with fault_programs.programs(program):
        server = program.running()
        await server.add_consumer("cluster1")
        assert len(await server.bundles()) == 0
        # One worker may open several connections: only the log tells that both read from the replica.
        phrase = DatabasePhrase.REPLICA_IN_USE
        await waiting.until(lambda: program.log.read_text().count(phrase) == 2, what="a line of both workers")


async def test_pool_of_several_hosts_takes_the_standby(replicated: Replicated) -> None:
    address = replace(replicated.primary.dsn, other_hosts=(replicated.standby.host,))
    opened = await pool.connect(address, max_connections=1, accepts_standby=True)
    try:
        async with opened.connection() as connection:
            assert await connection.fetchval("SELECT pg_is_in_recovery()")
    finally:
        await opened.close()


async def readyz(served: Served) -> str:
    answer = await served.http.get(f"{served.running.health}/readyz?verbose")
    assert answer.status_code == 200, answer.text
    return answer.text


@contextlib.asynccontextmanager
async def client_of(served: Served) -> AsyncIterator[AsyncMaestro]:
    running = served.running
    async with AsyncMaestro(api_url=running.rest, grpc_url=running.sources, source="s1", environ={}) as client:
        yield client


def work(name: str, *, size: int = 10) -> Work:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"text": "x" * size},
    }
    return Work(name).add(manifest)
