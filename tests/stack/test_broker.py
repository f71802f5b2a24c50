"""The server behind an MQTT broker that delays acknowledgements, rejects messages and breaks connections."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import asyncpg
import pytest

from maestropy.server.controllers import spec_dispatcher
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
