"""Databases with several hosts, and databases that take no writes: where connections go, and what clients are told."""

import asyncio
import contextlib
import io
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import grpc
import httpx
import pytest
from prometheus_client import CollectorRegistry

from maestropy.journal import Journal
from maestropy.journal.phrases import DatabasePhrase
from maestropy.sandbox import ports
from maestropy.server import settings as configuration
from maestropy.server.context import Context
from maestropy.server.primary_watch import PrimaryWatch
from maestropy.server.runtime.database import DatabaseUnusable, open_database
from maestropy.server.telemetry.metrics import Metrics
from maestropy.store import errors
from maestropy.store.dsn import Dsn, Host
from maestropy.store.migrations import migrate
from maestropy.store.postgres import pool, pooler, servers
from maestropy.wire.events import event
from tests import waiting
from tests.stack import harness
from tests.stack.clients import Source, agent, source

SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'"


@contextlib.asynccontextmanager
async def read_only(postgres: harness.Postgres, database: Dsn) -> AsyncIterator[None]:
    """Make a database read-only, as a cloud does when its disk is full, and writable again."""
    await postgres._run(f"ALTER DATABASE {database.database} SET default_transaction_read_only = on")
    await postgres._run(SESSIONS.format(database.database))
    try:
        yield
    finally:
        # Sessions of the server stay, and stay read-only: it has to replace them itself.
        await postgres._run(f"ALTER DATABASE {database.database} RESET default_transaction_read_only")


@contextlib.asynccontextmanager
async def silent_host() -> AsyncIterator[Host]:
    """Listen, and answer nothing, like a host that lost its network."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield Host("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()


def behind(first: Host, database: Dsn) -> Dsn:
    """Return the address of a database with another host before its own."""
    return replace(database, host=first.name, port=first.port, other_hosts=database.hosts)


async def backends(opened: pool.Database) -> int:
    async with opened.connection() as connection:
        return await servers.backend(connection)


async def test_host_that_refuses_is_passed_over(database: Dsn) -> None:
    (port,) = ports.free(1)
    moves: list[str] = []
    opened = await pool.connect(behind(Host("127.0.0.1", port), database), max_connections=2, on_move=moves.append)
    try:
        assert await backends(opened)
        assert moves == [str(database.hosts[0])]
    finally:
        await opened.close()


async def test_silent_host_delays_only_the_first_connection(database: Dsn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "CONNECT_TIMEOUT_SECONDS", 1.0)
    async with silent_host() as silent:
        connector = servers.Connector(behind(silent, database))
        (await connector.connect()).terminate()
        started = time.monotonic()
        (await connector.connect()).terminate()
        assert time.monotonic() - started < 0.4


async def test_error_names_every_host(database: Dsn) -> None:
    first, second = ports.free(2)
    address = replace(database, host="127.0.0.1", port=first, other_hosts=(Host("127.0.0.1", second),))
    with pytest.raises(errors.DatabaseUnavailable) as caught:
        await servers.Connector(address).connect()
    assert "none of the 2 hosts can be used" in str(caught.value)
    assert f"127.0.0.1:{first}: " in str(caught.value)
    assert f"127.0.0.1:{second}: " in str(caught.value)


async def test_read_only_host_is_passed_over_only_where_another_may_take_writes(
    database: Dsn, postgres: harness.Postgres
) -> None:
    async with read_only(postgres, database):
        (await servers.Connector(database).connect()).terminate()
        for target in (
            replace(database, target_session_attrs="read-write"),
            replace(database, other_hosts=database.hosts),
        ):
            with pytest.raises(errors.DatabaseReadOnly, match="default_transaction_read_only is on"):
                await servers.Connector(target).connect()


async def test_read_only_database_is_shown_and_clients_are_told_to_retry(
    database: Dsn, postgres: harness.Postgres
) -> None:
    async with (
        harness.in_process(database, sweep_interval="200ms") as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as b,
        httpx.AsyncClient(base_url=server.rest + harness.BASE, verify=False) as rest,
    ):
        await server.add_consumer("cluster1")
        await a.create("r1", "cluster1")
        async with read_only(postgres, database):
            await waiting.until(lambda: answers(server, 503), what="the probe's complaint")
            assert await health(server) == {
                "status": "not ready",
                "reason": "the database takes no writes: default_transaction_read_only is on",
            }
            assert await server.probe("/livez") == 200
            assert "maestropy_database_read_only 1\n" in server.context.metrics.render()[0].decode()
            assert len(server.lines(DatabasePhrase.READ_ONLY)) == 1
            await waiting.until(lambda: refuses_as_read_only(a), what="the rejection of a spec request")
            refused = await b.refused(b.report("r1", 1))
            assert refused.code() is grpc.StatusCode.UNAVAILABLE
            written = await rest.post("/consumers", json={"name": "cluster2"})
            assert (written.status_code, written.headers["Retry-After"]) == (503, "5")
            assert "The database is read-only at the moment" in written.json()["reason"]
            assert (await rest.get("/resource-bundles")).json()["total"] == 1
        await waiting.until(lambda: answers(server, 200), what="readiness")
        await waiting.until(lambda: accepts(a), what="a spec request that is accepted")
        assert "maestropy_database_read_only 0\n" in server.context.metrics.render()[0].decode()
        assert server.lines(DatabasePhrase.WRITABLE)


async def test_server_does_not_start_on_a_read_only_database(database: Dsn, postgres: harness.Postgres) -> None:
    settings = configuration.load({"--server-hostname": "127.0.0.1"}, {"HOME": "/"})
    journal = Journal(io.BytesIO(), clock=lambda: 0.0, verbosity=0)
    async with read_only(postgres, database):
        with pytest.raises(DatabaseUnusable, match=r"is read-only: it takes no writes.*address of the primary"):
            await open_database(settings, database, journal=journal)
    await (await open_database(settings, database, journal=journal)).close()


async def test_listening_address_must_lead_to_the_same_database(database: Dsn, postgres: harness.Postgres) -> None:
    other = await asyncio.to_thread(postgres.fresh)
    journal = Journal(io.BytesIO(), clock=lambda: 0.0, verbosity=0)
    flags = {"--server-hostname": "127.0.0.1", "--db-dsn": str(database)}
    for address, complaint in (
        (other, "leads to another PostgreSQL server or database"),
        (replace(database, host="127.0.0.1", port=ports.free(1)[0]), "cannot be used"),
    ):
        settings = configuration.load({**flags, "--db-listen-dsn": str(address)}, {"HOME": "/"})
        with pytest.raises(DatabaseUnusable, match=f"--db-listen-dsn=postgresql://.* {complaint}"):
            await open_database(settings, database, journal=journal)
    settings = configuration.load({**flags, "--db-listen-dsn": str(database)}, {"HOME": "/"})
    await (await open_database(settings, database, journal=journal)).close()


async def test_watch_of_the_primary_needs_no_permissions(database: Dsn, postgres: harness.Postgres) -> None:
    await postgres._run("DROP ROLE IF EXISTS plain")
    await postgres._run("CREATE ROLE plain LOGIN")
    plain = replace(database, user="plain")
    assert await pooler.detect(plain) is pooler.Pooling.NONE
    opened = await pool.connect(plain, max_connections=1)
    promotions: list[str] = []

    async def note() -> None:
        promotions.append("promotion")

    log = io.BytesIO()
    context = Context(
        database=opened,
        journal=Journal(log, clock=lambda: 0.0, verbosity=2),
        metrics=Metrics(CollectorRegistry()),
        instance_id="i",
    )
    try:
        async with opened.connection() as connection:
            assert len(await servers.timeline(connection)) == 8
            assert (await servers.server_process(connection)).database == database.database
        # As in a cloud that keeps the function from users.
        await harness.sql(database, "REVOKE EXECUTE ON FUNCTION pg_current_wal_lsn() FROM PUBLIC")
        watch = PrimaryWatch(context, on_promotion=note)
        assert await watch.check() == await watch.check() == ""
        context.journal.flush()
        assert log.getvalue().decode().count(DatabasePhrase.NO_TIMELINE) == 1
        assert promotions == []
    finally:
        await opened.close()


async def test_direct_connection_is_no_pooler(database: Dsn) -> None:
    assert await pooler.detect(database) is pooler.Pooling.NONE


async def test_without_sessions_every_transaction_has_its_settings(database: Dsn) -> None:
    opened = await pool.connect(database, max_connections=1, has_sessions=False)
    query = "SELECT current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout')"
    try:
        async with opened.transaction() as connection:
            assert tuple(await connection.fetchrow(query)) == ("500ms", "20s")
        async with opened.transaction(waits_for_locks=False) as connection:
            assert tuple(await connection.fetchrow(query)) == ("50ms", "20s")
        async with opened.snapshot() as connection:
            assert tuple(await connection.fetchrow(query)) == ("500ms", "45s")
        async with opened.connection() as connection:
            assert tuple(await connection.fetchrow(query)) == ("0", "0")
            assert await connection.fetchval("SELECT count(*) FROM pg_prepared_statements") == 0
    finally:
        await opened.close()


@pytest.mark.long
async def test_instances_that_migrate_at_once_share_the_work(postgres: harness.Postgres) -> None:
    await postgres._run("DROP DATABASE IF EXISTS empty_for_migration")
    await postgres._run("CREATE DATABASE empty_for_migration TEMPLATE template0")
    empty = replace(postgres._address, database="empty_for_migration")
    reports = await asyncio.gather(*(migrate.migrate(empty) for _ in range(3)))
    applied = [name for report in reports for name in report.applied]
    assert sorted(applied) == list(migrate.names())
    for report in reports:
        assert sorted((*report.applied, *report.already_there)) == list(migrate.names())


async def health(server: harness.Running) -> object:
    async with httpx.AsyncClient(verify=False) as client:
        return (await client.get(f"{server.health}/healthcheck")).json()


async def answers(server: harness.Running, code: int) -> bool:
    return await server.probe() == code


async def refuses_as_read_only(client: Source) -> bool:
    answer = await client.answer(client.spec(event.SPEC_CREATE, "r2", "cluster1"))
    return "UNAVAILABLE" in answer and "the database is read-only at the moment; try again later" in answer


async def accepts(client: Source) -> bool:
    return not await client.answer(client.spec(event.SPEC_CREATE, "r2", "cluster1"))
