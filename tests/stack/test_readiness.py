"""When an instance is ready: while it serves and beats, and again after an outage, but never after it said goodbye."""

import harness

from maestropy.store.dsn import Dsn

READY = "SELECT ready FROM server_instances WHERE id = 'maestro'"


def test_a_heartbeat_brings_back_who_was_thought_dead(database: Dsn) -> None:
    async def scenario() -> None:
        async with harness.in_process(database) as server:
            assert await server.probe() == 200
            await server.sql("UPDATE server_instances SET last_heartbeat = now() - interval '1 hour'")
            await server.server.membership.judge()
            assert await server.value(READY) is False
            assert await server.probe() == 503
            await server.server.membership.beat()
            assert await server.value(READY) is True
            assert await server.probe() == 200

    harness.play(scenario())


def test_who_leaves_is_not_called_back(database: Dsn) -> None:
    async def scenario() -> None:
        async with (
            harness.in_process(database) as server,
            harness.in_process(database, client_id="other") as other,
        ):
            await server.server.membership.leave()
            assert await server.probe() == 503
            await server.server.membership.beat()
            await other.server.membership.judge()
            assert await server.value(READY) is False
            assert await server.probe() == 503
            assert await server.probe("/livez") == 200
            assert await other.probe() == 200

    harness.play(scenario())


def test_a_dead_instance_is_noticed_by_another(database: Dsn) -> None:
    async def scenario() -> None:
        async with harness.in_process(database) as server:
            await server.sql(
                """INSERT INTO server_instances (id, created_at, updated_at, last_heartbeat, ready) VALUES
                   ('dead', now(), now(), now() - interval '1 minute', true),
                   ('go', now(), now(), now(), false),
                   ('long-gone', now(), now(), now() - interval '2 days', true)"""
            )
            await server.server.membership.judge()
            await server.server.membership.judge()
            rows = await server.sql("SELECT id, ready FROM server_instances ORDER BY id")
            assert [tuple(row) for row in rows] == [("dead", False), ("go", True), ("maestro", True)]

    harness.play(scenario())


def test_an_outage_of_the_database_is_told_and_survived(database: Dsn, postgres: harness.Postgres) -> None:
    async def scenario() -> None:
        async with harness.in_process(database, sweep_interval="200ms") as server:
            async with postgres.outage(database):
                await harness.until(lambda: answers(server, 500), what="the probe's complaint")
                assert await server.probe("/livez") == 200
            await harness.until(lambda: answers(server, 200), what="readiness")
            await server.add_consumer("cluster1")

    harness.play(scenario())


async def answers(server: harness.Running, code: int) -> bool:
    return await server.probe() == code
