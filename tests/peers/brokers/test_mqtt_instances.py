"""Several instances behind one broker are one server: nothing is done twice, and nothing is lost when one dies."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import asyncpg
import pytest

from maestropy.server.decide import hash_ring
from maestropy.store.dsn import Dsn
from maestropy.wire import resync
from maestropy.wire.events import event
from tests import waiting
from tests.faults.fault_proxy import FaultProxy
from tests.peers.brokers.mqtt_agents import MqttAgent, agent
from tests.peers.mosquitto import Mosquitto
from tests.stack import harness
from tests.stack.clients import source

pytestmark = pytest.mark.peers

STORED = "resource status update event was sent"


def served(database: Dsn, config: Path, **flags: str) -> AbstractAsyncContextManager[harness.InProcess]:
    return harness.in_process(
        database,
        message_broker_type="mqtt",
        message_broker_config_file=str(config),
        heartbeat_interval="3",
        **flags,
    )


def process_flags(database: Dsn, config: Path, *more: str) -> list[str]:
    broker = ["--message-broker-type=mqtt", f"--message-broker-config-file={config}"]
    return [f"--db-dsn={database}", "--heartbeat-interval=3", *broker, *more]


async def connected(*servers: harness.InProcess) -> None:
    for server in servers:
        await waiting.until(lambda: bool(server.lines("subscribed to mqtt broker")), what="a subscription")


@contextlib.asynccontextmanager
async def agents(config: Path, names: list[str]) -> AsyncIterator[dict[str, MqttAgent]]:
    async with contextlib.AsyncExitStack() as stack:
        yield {name: await stack.enter_async_context(agent(config, name)) for name in names}


def is_question(received: event.CloudEvent) -> bool:
    return received.type == event.STATUS_RESYNC_REQUEST


async def test_instances_share_the_dispatch_and_each_spec_is_sent_once(database: Dsn, broker: Mosquitto) -> None:
    config = broker.config(share="maestro")
    async with (
        served(database, config, client_id="a") as a,
        served(database, config, client_id="b") as b,
        agent(broker.config("agent"), "cluster1") as one,
        source(a.sources) as publisher,
        publisher.subscribe() as told,
    ):
        await a.add_consumer("cluster1")
        await connected(a, b)
        names = [f"w{number}" for number in range(300)]
        await asyncio.gather(*(publisher.create(name, "cluster1") for name in names))
        for name in names:
            await one.spec_of(name)
        await waiting.until(a.has_nothing_pending, what="an empty queue")
        assert one.seen == len(names), "each spec was sent once"

        await asyncio.gather(*(one.tell(name, 1) for name in names))
        for name in names:
            await told.spec_of(name)
        await waiting.until(lambda: sum(shares(a, b)) >= len(names), what="the last line of the journals")
        assert sum(shares(a, b)) == len(names)
        assert all(shares(a, b)), "the broker spreads a shared subscription"


def shares(*servers: harness.InProcess) -> list[int]:
    return [len(server.lines(STORED)) for server in servers]


async def test_only_the_owner_stores_a_status(database: Dsn, broker: Mosquitto) -> None:
    config = broker.config()
    names = [f"cluster{number}" for number in range(12)]
    async with (
        served(database, config, client_id="a", subscription_type="broadcast") as a,
        served(database, config, client_id="b", subscription_type="broadcast") as b,
        agents(config, names) as crowd,
        source(a.sources) as publisher,
        publisher.subscribe() as told,
    ):
        for name in names:
            await a.add_consumer(name)
        await connected(a, b)
        table = hash_ring.build(["a", "b"])
        for server in (a, b):
            assert server.server.message_broker is not None
            owns = server.server.message_broker.ownership.owns
            await waiting.until(
                lambda: all(owns(name) == (table.owner(name) == server.context.instance_id) for name in names),
                what="one view of the ring",
            )
        for name in names:
            await publisher.create(f"of-{name}", name)
            await crowd[name].spec_of(f"of-{name}")
            await crowd[name].tell(f"of-{name}", 1)
            await told.spec_of(f"of-{name}")
        # The journal of who stored it may be a moment behind the source that was told.
        await waiting.until(lambda: sum(shares(a, b)) >= len(names), what="the last line of the journals")
        expected = Counter(table.owner(name) for name in names)
        assert shares(a, b) == [expected["a"], expected["b"]]


async def test_who_inherits_a_consumer_of_a_killed_instance_asks_for_what_was_lost(
    database: Dsn, broker: Mosquitto, tmp_path: Path
) -> None:
    config = broker.config()
    table = hash_ring.build(["a", "b"])
    mine = next(name for name in (f"cluster{n}" for n in range(50)) if table.owner(name) == "a")
    flags = process_flags(database, config, "--subscription-type=broadcast", "--client-id=a")
    async with (
        served(database, config, client_id="b", subscription_type="broadcast") as b,
        agent(config, mine) as one,
        source(b.sources) as publisher,
        harness.Place(folder=tmp_path).run(*flags) as a,
    ):
        await b.add_consumer(mine)
        assert b.server.message_broker is not None
        owns = b.server.message_broker.ownership.owns
        await waiting.until(lambda: not owns(mine), what="one view of the ring")
        await publisher.create("w1", mine)
        await one.spec_of("w1")
        a.kill()
        await a.process.wait()
        # Its owner is dead, and the heir does not know it yet: nobody stores this.
        await one.tell("w1", 1)
        await waiting.until(lambda: owns(mine), seconds=30, what="the move")
        question = await one.take(is_question)
        assert resync.decode_hashes(question.data) == {"w1": ""}
        await one.tell("w1", 1)
        await waiting.until(lambda: bool(b.lines(STORED)), what="a status stored by the heir")


async def test_a_report_that_was_received_but_not_stored_survives_a_kill(
    database: Dsn, broker: Mosquitto, tmp_path: Path
) -> None:
    """The server is killed while the row it wants to write is locked: it has the report, the database has not."""

    config = broker.config()
    flags = process_flags(database, config)
    place = harness.Place(folder=tmp_path)
    async with agent(config, "cluster1") as one:
        async with place.run(*flags) as server, source(server.sources) as a:
            await server.add_consumer("cluster1")
            await a.create("w1", "cluster1")
            await one.spec_of("w1")
            connection = await asyncpg.connect(**database.connect_kwargs())
            try:
                holding = connection.transaction()
                await holding.start()
                await connection.execute("SELECT id FROM resources WHERE id = 'w1' FOR UPDATE")
                await one.tell("w1", 1)
                await waiting.until(lambda: is_waiting(database), what="a server that waits for the row")
                # The packet that would acknowledge the report is the only one of its kind.
                assert "Received PUBACK from maestro" not in broker.log.read_text()
                server.kill()
                await server.process.wait()
                await holding.rollback()
            finally:
                await connection.close()
        async with place.run(*flags) as server:
            question = await one.take(is_question)
            assert resync.decode_hashes(question.data) == {"w1": ""}
            await one.tell("w1", 1)
            await waiting.until(lambda: has_status(server), what="the status")


async def is_waiting(database: Dsn) -> bool:
    blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    return bool(await harness.value(database, blocked))


async def has_status(server: harness.Running) -> bool:
    bundle = await server.bundle("w1")
    return bundle is not None and bool(bundle.get("status"))


async def test_an_instance_is_killed_under_load_and_nothing_is_missing(
    database: Dsn, broker: Mosquitto, tmp_path: Path
) -> None:
    config = broker.config(share="maestro")
    flags = process_flags(database, config, "--client-id=victim")
    async with (
        served(database, config, client_id="survivor") as survivor,
        agent(broker.config("agent"), "cluster1") as one,
        source(survivor.sources) as a,
    ):
        await survivor.add_consumer("cluster1")
        await connected(survivor)
        async with harness.Place(folder=tmp_path).run(*flags) as victim:
            names = [f"w{number}" for number in range(400)]
            loading = asyncio.gather(*(a.create(name, "cluster1") for name in names))
            await waiting.until(lambda: one.seen > 50, what="a load")
            victim.kill()
            await loading
        for name in names:
            await one.spec_of(name)
        await waiting.until(survivor.has_nothing_pending, what="an empty queue")


@pytest.mark.parametrize("kind", ["shared", "broadcast"])
async def test_rolling_restart_loses_no_spec_request_and_no_status(kind: str, database: Dsn, broker: Mosquitto) -> None:
    """Each instance is replaced while specs come in; in the end every spec has its status."""

    config = broker.config(share="maestro" if kind == "shared" else "")
    taken: list[str] = []

    async def request(server: harness.InProcess, name: str, count: int) -> None:
        async with source(server.sources) as a:
            for number in range(count):
                await a.create(f"{name}-{number}", "cluster1")
                taken.append(f"{name}-{number}")

    async with agent(broker.config("agent"), "cluster1") as one:
        obeying = asyncio.ensure_future(one.obey())
        async with served(database, config, client_id="first", subscription_type=kind) as first:
            await first.add_consumer("cluster1")
            async with served(database, config, client_id="second", subscription_type=kind) as second:
                await connected(first, second)
                requesting = asyncio.ensure_future(request(second, "a", 150))
                await waiting.until(lambda: len(taken) > 30, what="a load")
                await first.stop()
                await requesting
                async with served(database, config, client_id="third", subscription_type=kind) as third:
                    requesting = asyncio.ensure_future(request(third, "b", 150))
                    await waiting.until(lambda: len(taken) > 180, what="a load")
                    await second.stop()
                    await requesting
                    lacking = "SELECT count(*) FROM resources WHERE status ->> 'sequenceid' IS NULL"
                    await waiting.until(lambda: is_zero(third, lacking), seconds=30, what="every status")
                    await waiting.until(third.has_nothing_pending, what="an empty queue")
                    assert len(await third.bundles()) == len(taken) == 300
        obeying.cancel()
        await asyncio.wait([obeying])


async def is_zero(server: harness.InProcess, statement: str) -> bool:
    return bool(await server.value(statement) == 0)


async def test_who_is_cut_off_from_the_broker_leaves_its_consumers_to_the_others(
    database: Dsn, broker: Mosquitto, tmp_path: Path
) -> None:
    config = broker.config()
    table = hash_ring.build(["a", "b"])
    mine = next(name for name in (f"cluster{n}" for n in range(50)) if table.owner(name) == "a")
    async with FaultProxy(("127.0.0.1", broker.port)) as proxy:
        detour = tmp_path / "detour.yaml"
        detour.write_text(config.read_text().replace(broker.host, proxy.address))
        async with (
            served(database, detour, client_id="a", subscription_type="broadcast") as a,
            served(database, config, client_id="b", subscription_type="broadcast") as b,
            agent(config, mine) as one,
            source(b.sources) as publisher,
            publisher.subscribe() as told,
        ):
            await b.add_consumer(mine)
            await connected(a, b)
            assert a.server.message_broker is not None
            assert b.server.message_broker is not None
            owns = b.server.message_broker.ownership.owns
            await waiting.until(lambda: not owns(mine), what="one view of the ring")
            await publisher.create("w1", mine)
            await one.spec_of("w1")

            proxy.partition()
            proxy.cut()
            await waiting.until(lambda: owns(mine), seconds=40, what="the move")
            await one.tell("w1", 1)
            await told.spec_of("w1")
            assert await a.probe() == 200, "sources may still talk to it"

            proxy.heal()
            proxy.cut()  # who was let in and heard nothing tries again
            await waiting.until(lambda: not owns(mine), seconds=40, what="the way back")
            await one.tell("w1", 1, "Applied", "Available", "Degraded")
            await told.take(lambda e: b"Degraded" in e.data)
