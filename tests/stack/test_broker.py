"""The server behind an MQTT broker that delays acknowledgements, rejects messages and breaks connections."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import asyncpg
import pytest

from maestropy.server.controllers.spec import spec_dispatcher
from maestropy.store.dsn import Dsn
from maestropy.transport import port
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt import connection as mqtt
from maestropy.transport.mqtt.agent import MqttTransport
from maestropy.wire.events import event
from tests import waiting
from tests.conformance.memory_broker import MemoryBroker, memory_broker
from tests.conformance.transport_cases import spec_resync_request
from tests.stack import harness
from tests.stack.clients import Agent, bundle_data, source

SPECS = "sources/maestro/consumers/cluster1/sourceevents"


def served(database: Dsn, broker: MemoryBroker, folder: Path) -> AbstractAsyncContextManager[harness.InProcess]:
    config = str(broker.config(folder))
    return harness.in_process(database, message_broker_type="mqtt", message_broker_config_file=config)


@contextlib.asynccontextmanager
async def listening(
    broker: MemoryBroker, folder: Path
) -> AsyncIterator[tuple[port.AgentConnection, list[event.CloudEvent]]]:
    """Connect as an agent that only listens."""
    endpoint = mqtt_config.read(broker.config(folder), flag="--x").endpoint
    transport = MqttTransport(endpoint, consumer="cluster1", client_id="agent", on_problem=pytest.fail)
    got: list[event.CloudEvent] = []
    async with transport.connect() as connection:

        async def read() -> None:
            async for received in connection.events():
                got.append(received)

        reading = asyncio.ensure_future(read())
        try:
            yield connection, got
        finally:
            reading.cancel()
            await asyncio.wait([reading])


def ids(got: list[event.CloudEvent]) -> set[str]:
    """Return the resources of spec events; status resync requests have none."""
    return {each.optional_text(event.RESOURCE_ID) for each in got} - {""}


def report(resource_id: str) -> event.CloudEvent:
    pen = Agent.__new__(Agent)
    pen.consumer, pen.last_sequence = "cluster1", 0
    return pen.report(resource_id, 1)


def has_joined(broker: MemoryBroker) -> bool:
    return bool(broker.sessions.get("maestro") and broker.sessions["maestro"].filters)


async def test_status_update_is_acknowledged_only_when_it_is_stored(database: Dsn, tmp_path: Path) -> None:
    async with memory_broker() as broker, served(database, broker, tmp_path) as server:
        await server.add_consumer("cluster1")
        await waiting.until(lambda: has_joined(broker), what="a subscription")
        async with listening(broker, tmp_path) as (connection, got), source(server.sources) as a:
            await a.create("w1", "cluster1", data=bundle_data("first"))
            await waiting.until(lambda: bool(got), what="the spec")
            owed = broker.sessions["maestro"].unacknowledged
            blocker = await asyncpg.connect(**database.connect_kwargs())
            holding = blocker.transaction()
            await holding.start()
            await blocker.execute("SELECT id FROM resources WHERE id = 'w1' FOR UPDATE")
            await connection.publish(report("w1"))
            blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            await waiting.until(lambda: is_positive(server, blocked), what="a server that waits for the row")
            assert len(owed) == 1, "received, not stored, so not acknowledged"
            await holding.rollback()
            await blocker.close()
            await waiting.until(lambda: not owed, what="the acknowledgement")
            shown = await server.bundle("w1")
            assert shown is not None
            assert shown["status"]


async def is_positive(server: harness.InProcess, statement: str) -> bool:
    return bool(await server.value(statement))


async def test_specs_that_the_broker_did_not_acknowledge_are_sent_again(
    database: Dsn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt, "PACKET_SECONDS", 0.3)

    async with memory_broker() as broker, served(database, broker, tmp_path) as server:
        await server.add_consumer("cluster1")
        await waiting.until(lambda: has_joined(broker), what="a subscription")
        async with source(server.sources) as a:
            broker.is_silent = True
            for number in range(10):
                await a.create(f"w{number}", "cluster1")
            await waiting.until(lambda: is_cut(server), what="a server that gives the connection up")
            assert await server.value("SELECT count(*) FROM events WHERE reconciled_date IS NULL") == 10
            broker.is_silent = False
            async with listening(broker, tmp_path) as (_, got):
                await waiting.until(lambda: len(ids(got)) == 10, what="all specs")
            await waiting.until(server.has_nothing_pending, what="an empty queue")


def is_cut(server: harness.InProcess) -> bool:
    return bool(server.lines("the cloudevents client is disconnected"))


@pytest.mark.long
async def test_consumer_whose_topic_is_rejected_does_not_delay_the_others(
    database: Dsn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spec_dispatcher, "_REST_SECONDS", 1.0)

    async with memory_broker(reasons={SPECS: 0x87}) as broker, served(database, broker, tmp_path) as server:
        for name in ("cluster1", "cluster2"):
            await server.add_consumer(name)
        await waiting.until(lambda: has_joined(broker), what="a subscription")
        async with source(server.sources) as a:
            await a.create("refused", "cluster1")
            await a.create("fine", "cluster2")
            pending = "SELECT array_agg(source_id) FROM events WHERE reconciled_date IS NULL"
            await waiting.until(lambda: holds(server, pending, ["refused"]), what="one event that waits")
            (line,) = server.lines("the broker rejects messages to a consumer")
            assert "not authorized (0x87)" in line["reason"]
            broker.reasons.clear()
            await waiting.until(server.has_nothing_pending, what="an empty queue")


async def holds(server: harness.InProcess, statement: str, expected: list[str]) -> bool:
    return bool(await server.value(statement) == expected)


# Rows as an older server or a person wrote them: REST and gRPC reject such names.
COPIES = """
    WITH names AS (SELECT consumer, 'copy-' || md5(consumer) AS copy FROM unnest($1::text[]) AS consumer),
         consumers AS (INSERT INTO consumers (id, name, created_at, updated_at)
                       SELECT copy, consumer, now(), now() FROM names WHERE consumer <> 'cluster1'),
         copies AS (INSERT INTO resources (id, created_at, updated_at, version, source, consumer_name, name, payload)
                    SELECT copy, now(), now(), 1, source, consumer, copy, payload FROM resources, names WHERE id = 'w1')
    INSERT INTO events (id, created_at, updated_at, source, source_id, event_type)
    SELECT copy, now(), now(), 'Resources', copy, 'Create' FROM names RETURNING id
"""


@pytest.mark.long
async def test_consumer_that_cannot_have_a_topic_does_not_delay_the_others(database: Dsn, tmp_path: Path) -> None:
    async with memory_broker() as broker, served(database, broker, tmp_path) as server:
        await server.add_consumer("cluster1")
        await waiting.until(lambda: has_joined(broker), what="a subscription")
        async with listening(broker, tmp_path) as (_, got), source(server.sources) as a:
            await a.create("w1", "cluster1")
            await waiting.until(lambda: ids(got) == {"w1"}, what="the spec")
            await waiting.until(server.has_nothing_pending, what="an empty queue")
            got.clear()
            await server.value(COPIES, ["a/b", "cluster1", "", "new\nline"])
            await waiting.until(server.has_nothing_pending, what="an empty queue")
            assert len(got) == 1
            reasons = [line["err"] for line in server.lines("Failed to publish resource")]
            assert len(reasons) == 3
            assert all("cannot stand in a topic" in reason for reason in reasons)


@pytest.mark.long
@pytest.mark.parametrize(
    ("payload", "found"),
    [(None, "null"), ("null", "null"), ("[]", "array"), ('"x"', "str")],
    ids=lambda value: repr(value),
)
async def test_resource_without_a_stored_event_is_named_and_can_be_published_again(
    database: Dsn, tmp_path: Path, payload: str | None, found: str
) -> None:
    async with memory_broker() as broker, served(database, broker, tmp_path) as server:
        await server.add_consumer("cluster1")
        await waiting.until(lambda: has_joined(broker), what="a subscription")
        async with listening(broker, tmp_path) as (_, got), source(server.sources) as a:
            await a.create("w1", "cluster1")
            await waiting.until(lambda: ids(got) == {"w1"}, what="the spec")
            await waiting.until(server.has_nothing_pending, what="an empty queue")
            copy = await server.value(COPIES.replace("payload FROM", "$2::jsonb FROM"), ["cluster1"], payload)
            await waiting.until(server.has_nothing_pending, what="an empty queue")
            (line,) = server.lines("Failed to publish resource")
            expected = f"the stored event is not a JSON object: Expected `object`, got `{found}`"
            assert line["err"] == f"{expected}; publish the spec of the work again"
            await a.update(copy, "cluster1")
            await waiting.until(lambda: ids(got) == {"w1", copy}, what="the spec that was published again")


async def test_resync_is_complete_without_the_spec_that_is_too_large_for_the_broker(
    database: Dsn, tmp_path: Path
) -> None:
    async with memory_broker(unannounced_limit=20_000) as broker, served(database, broker, tmp_path) as server:
        await server.add_consumer("cluster1")
        await waiting.until(lambda: has_joined(broker), what="a subscription")
        async with listening(broker, tmp_path) as (connection, got), source(server.sources) as a:
            await a.create("large", "cluster1", data=bundle_data(text="x" * 20_000))
            await a.create("small", "cluster1")
            await waiting.until(server.has_nothing_pending, what="an empty queue")
            assert ids(got) == {"small"}
            got.clear()
            await connection.publish(spec_resync_request())
            assert await connection.is_resync_answered(within=waiting.TIMEOUT)
            assert [each.text(event.RESOURCE_ID) for each in got if not each.is_set(event.ORPHAN)] == ["small"]
            assert not server.lines("failed to resync resources status for consumer")
            assert "packet too large (0x95)" in server.lines("Failed to publish resource")[-1]["err"]


async def test_resync_that_a_lost_connection_interrupts_is_finished_on_the_next_one(
    database: Dsn, tmp_path: Path
) -> None:
    async with memory_broker() as broker, served(database, broker, tmp_path) as server:
        await server.add_consumer("cluster1")
        await waiting.until(lambda: has_joined(broker), what="a subscription")
        names = {f"w{number}" for number in range(300)}
        async with source(server.sources) as a:
            await asyncio.gather(*(a.create(name, "cluster1") for name in names))
        await waiting.until(server.has_nothing_pending, what="an empty queue")
        async with listening(broker, tmp_path) as (connection, got):
            asking = asyncio.ensure_future(connection.publish(spec_resync_request()))
            await waiting.until(lambda: len(got) > 20, what="the beginning of an answer")
            broker.sessions["maestro"].writer.transport.abort()
            await waiting.until(lambda: ids(got) >= names, what="all of it")
            await asking


@pytest.mark.parametrize("bundles", [0, 2])
async def test_spec_resync_is_answered_even_when_there_is_nothing_to_send(
    database: Dsn, tmp_path: Path, bundles: int
) -> None:
    async with memory_broker() as broker, served(database, broker, tmp_path) as server:
        await server.add_consumer("cluster1")
        await waiting.until(lambda: has_joined(broker), what="a subscription")
        names = [f"w{number}" for number in range(bundles)]
        async with listening(broker, tmp_path) as (connection, got), source(server.sources) as a:
            for name in names:
                await a.create(name, "cluster1")
            await waiting.until(lambda: ids(got) == {*names}, what="the specs")
            got.clear()
            assert not await connection.is_resync_answered(within=0)
            await connection.publish(spec_resync_request(**dict.fromkeys(names, 1)))
            assert await connection.is_resync_answered(within=waiting.TIMEOUT)
            # Only the end of the answer is sent, and it names the database.
            assert [(end.is_set(event.ORPHAN), bool(end.text(event.DATABASE_ID))) for end in got] == [(True, True)]


async def test_paused_consumer_behind_a_broker_gets_its_specs_after_the_resumption(
    database: Dsn, tmp_path: Path
) -> None:
    async with memory_broker() as broker, served(database, broker, tmp_path) as server, server.http() as rest:
        await server.add_consumer("cluster1")
        await waiting.until(lambda: has_joined(broker), what="a subscription")
        async with listening(broker, tmp_path) as (connection, got), source(server.sources) as a:
            await a.create("before", "cluster1")
            await waiting.until(lambda: "before" in ids(got), what="the spec")
            await waiting.until(server.has_nothing_pending)
            got.clear()
            assert (await rest.post("/consumers/cluster1/pause", json={})).status_code == 200
            await a.create("during", "cluster1")
            await connection.publish(spec_resync_request())
            await waiting.until(lambda: server.lines("its spec resync is answered after the resumption"))
            server.server.rescan()
            # The request was a sign of life, also without a connection that the server could see.
            await server.server.presence.write()
            assert await server.value("SELECT count(*) FROM maestropy_agents WHERE consumer_name = 'cluster1'") == 1
            assert ids(got) == set()
            assert (await rest.post("/consumers/cluster1/resume", json={})).status_code == 200
            await waiting.until(lambda: ids(got) >= {"before", "during"}, what="all specs")
            await waiting.until(server.has_nothing_pending)
            got.clear()
            assert (await rest.post("/resource-bundles/before/resend", json={})).status_code == 200
            await waiting.until(lambda: ids(got) == {"before"}, what="the spec again")
            got.clear()
            assert (await rest.post("/consumers/cluster1/resync", json={})).status_code == 200
            await waiting.until(lambda: ids(got) >= {"before", "during"}, what="all specs again")
            await waiting.until(
                lambda: any(each.type.endswith(".status.resync_request") for each in got), what="a status resync"
            )
