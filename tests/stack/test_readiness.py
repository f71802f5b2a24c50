"""Readiness of instances: while they serve and send heartbeats, again after an outage, never after they left."""

import httpx

from maestropy.store.dsn import Dsn
from tests import waiting
from tests.stack import harness

READY = "SELECT ready FROM server_instances WHERE id = 'maestro'"


async def test_heartbeat_makes_an_unready_instance_ready(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        assert await server.probe() == 200
        await server.sql("UPDATE server_instances SET last_heartbeat = now() - interval '1 hour'")
        await waiting.until(lambda: is_unready(server), what="the instance to be unready")
        assert await server.probe() == 503
        await server.server.membership.beat()
        assert await server.value(READY) is True
        assert await server.probe() == 200


async def test_instance_that_leaves_stays_unready(database: Dsn) -> None:
    async with (
        harness.in_process(database) as server,
        harness.in_process(database, client_id="other") as other,
    ):
        await server.server.membership.leave()
        assert await server.probe() == 503
        await server.server.membership.beat()
        await other.server.membership.update_readiness()
        assert await server.value(READY) is False
        assert await server.probe() == 503
        assert await server.probe("/livez") == 200
        assert await other.probe() == 200


async def test_dead_instance_becomes_unready(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        await server.sql(
            """INSERT INTO server_instances (id, created_at, updated_at, last_heartbeat, ready) VALUES
                   ('dead', now(), now(), now() - interval '1 minute', true),
                   ('go', now(), now(), now(), false),
                   ('long-gone', now(), now(), now() - interval '2 days', true)"""
        )
        expected = [("dead", False), ("go", True), ("maestro", True)]
        await waiting.until(lambda: is_list(server, expected), what="the readiness of all instances")


async def test_database_outage_is_reported_and_survived(database: Dsn, postgres: harness.Postgres) -> None:
    async with harness.in_process(database, sweep_interval="200ms") as server:
        async with postgres.outage(database):
            await waiting.until(lambda: answers(server, 500), what="the probe's complaint")
            assert await server.probe("/livez") == 200
        await waiting.until(lambda: answers(server, 200), what="readiness")
        await server.add_consumer("cluster1")


async def test_read_replica_that_is_down_is_listed_as_degraded(database: Dsn) -> None:
    nobody = "postgres://nobody@127.0.0.1:1/maestro?sslmode=disable"
    async with (
        harness.in_process(database, db_dsn=str(database), db_read_dsn=nobody) as server,
        httpx.AsyncClient() as client,
    ):
        response = await client.get(f"{server.health}/readyz?verbose")
    assert response.status_code == 200
    assert "[!]read-replica warning: degraded: lists are read from the primary, not from the read rep" in response.text


async def test_verbose_readiness_lists_every_dependency(database: Dsn, postgres: harness.Postgres) -> None:
    async with harness.in_process(database, sweep_interval="200ms") as server, httpx.AsyncClient() as client:
        url = f"{server.health}/readyz"
        assert (await client.get(url)).text == "ok"
        everything = "[+]database ok\n[+]database-writable ok\n[+]instance ok\nreadyz check passed\n"
        assert (await client.get(f"{url}?verbose")).text == everything
        await server.server.membership.leave()
        unready = await client.get(url)
        assert unready.status_code == 503
        assert "[-]instance failed: it starts, stops, or has sent no heartbeat" in unready.text
        async with postgres.outage(database):
            await waiting.until(lambda: answers(server, 500), what="the outage")
            down = await client.get(url)
            assert down.status_code == 503
            assert down.text.startswith("[-]database failed: ")
            assert down.text.endswith("readyz check failed\n")
            # The metric follows the check.
            assert "maestropy_database_up 0" in server.context.metrics.render()[0].decode().splitlines()


async def is_unready(server: harness.InProcess) -> bool:
    # The instance's own periodic check may hold the lock; then this call changes nothing.
    await server.server.membership.update_readiness()
    return await server.value(READY) is False


async def is_list(server: harness.InProcess, expected: list[tuple[str, bool]]) -> bool:
    await server.server.membership.update_readiness()
    rows = await server.sql("SELECT id, ready FROM server_instances ORDER BY id")
    return [tuple(row) for row in rows] == expected


async def answers(server: harness.Running, code: int) -> bool:
    return await server.probe() == code
