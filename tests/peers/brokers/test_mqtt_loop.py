"""The loop through a real broker: specs go down, statuses come up, and what breaks on the way is made up for."""

import asyncio
import json
import re
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from maestropy.store.dsn import Dsn
from maestropy.transport import port
from maestropy.wire import resync
from maestropy.wire.events import event, mqtt_binding
from tests import waiting
from tests.peers.brokers.mqtt_agents import agent, question, raw_client
from tests.peers.mosquitto import Mosquitto, mosquitto
from tests.stack import harness
from tests.stack.clients import bundle_data, is_about, source

pytestmark = pytest.mark.peers


GROW = """
WITH grown AS (UPDATE renditions SET data = $1 WHERE id = 'grown' RETURNING id)
INSERT INTO events (id, created_at, updated_at, source, source_id, event_type)
SELECT 'grown', now(), now(), 'Resources', id, 'Update' FROM grown
"""


def is_deleting(received: event.CloudEvent) -> bool:
    return event.DELETION_TIMESTAMP in received.extensions


def is_question(received: event.CloudEvent) -> bool:
    return received.type == event.STATUS_RESYNC_REQUEST


def served(database: Dsn, config: Path, **flags: str) -> AbstractAsyncContextManager[harness.InProcess]:
    return harness.in_process(database, message_broker_type="mqtt", message_broker_config_file=str(config), **flags)


async def connected(server: harness.InProcess, *, times: int = 1) -> None:
    await waiting.until(lambda: len(server.lines("subscribed to mqtt broker")) >= times, what="a subscription")


async def test_create_update_delete(database: Dsn, broker: Mosquitto) -> None:
    config = broker.config()
    async with served(database, config) as server, source(server.sources) as a, a.subscribe() as told:
        await server.add_consumer("cluster1")
        await connected(server)
        async with agent(config, "cluster1") as one:
            await a.create("w1", "cluster1", data=bundle_data("first"))
            spec = await one.spec_of("w1", version=1)
            assert spec.type == event.SPEC_CREATE
            assert spec.source == "maestro"
            assert spec.data == bundle_data("first")
            assert json.loads(str(spec.extensions[event.METADATA]))["name"] == "w1"
            await one.tell("w1", 1)
            status = await told.spec_of("w1")
            assert json.loads(status.data)["manifestBundle"] == json.loads(bundle_data("first"))

            await a.update("w1", "cluster1", version=1, data=bundle_data("second"))
            assert (await one.spec_of("w1", version=2)).data == bundle_data("second")
            await one.tell("w1", 2)
            await told.take(lambda e: is_about(e, "w1", version=2))

            await a.delete("w1", "cluster1")
            await one.take(is_deleting)
            await one.tell("w1", 2, "Deleted")
            await told.take(lambda e: b'"Deleted"' in e.data)
            assert await server.bundle("w1") is None
            await waiting.until(server.has_nothing_pending, what="an empty queue")


async def test_an_agent_that_was_away_is_sent_what_it_lacks(database: Dsn, broker: Mosquitto) -> None:
    config = broker.config()
    async with served(database, config) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        await connected(server)
        for name in ("new", "same", "old", "leaving"):
            await a.create(name, "cluster1")
        await a.update("old", "cluster1", version=1, data=bundle_data("newer"))
        await a.delete("leaving", "cluster1")
        # Nobody listens, so the broker has thrown everything away; only the resync can bring it back.
        await waiting.until(server.has_nothing_pending, what="an empty queue")
        async with agent(config, "cluster1") as one:
            await one.resync({"same": 1, "old": 1, "orphan": 7})
            got = {str(each.extensions[event.RESOURCE_ID]): each for each in [await one.take() for _ in range(4)]}
            assert got.keys() == {"new", "old", "leaving", "orphan"}
            assert {each.type for each in got.values()} == {event.SPEC_RESYNC_RESPONSE}
            assert got["old"].integer(event.RESOURCE_VERSION) == 2
            assert is_deleting(got["leaving"])
            assert is_deleting(got["orphan"])
            assert got["orphan"].integer(event.RESOURCE_VERSION) == 7


async def test_an_agent_that_asks_before_it_subscribes_is_answered_again(database: Dsn, broker: Mosquitto) -> None:
    """Go agents do: what answers them at once is thrown away by the broker, which says so."""

    config = broker.config()
    async with served(database, config) as server, source(server.sources) as a, raw_client(config) as hasty:
        await server.add_consumer("cluster1")
        await connected(server)
        await a.create("w1", "cluster1")
        await waiting.until(server.has_nothing_pending, what="an empty queue")
        await hasty.publish(
            "sources/maestro/consumers/cluster1/agentevents", mqtt_binding.encode(question("cluster1", {}))
        )
        await waiting.until(lambda: server.lines("has not subscribed yet"), what="an answer without a listener")
        async with agent(config, "cluster1") as one:
            assert (await one.spec_of("w1")).type == event.SPEC_RESYNC_RESPONSE


async def test_server_without_resources_deletes_orphans_of_a_known_consumer(database: Dsn, broker: Mosquitto) -> None:
    config = broker.config()
    async with served(database, config) as server:
        await connected(server)
        await server.add_consumer("cluster1")
        async with agent(config, "cluster1") as one:
            await one.resync({"orphan": 1})
            assert is_deleting(await one.spec_of("orphan"))


async def test_an_agent_learns_that_no_server_listens(broker: Mosquitto) -> None:
    async with agent(broker.config(), "cluster1") as one:
        with pytest.raises(port.Disconnected, match="no server is subscribed"):
            await one.resync({})
        with pytest.raises(port.Disconnected, match="no server is subscribed"):
            await one.tell("w1", 1)


async def test_the_broker_goes_and_comes_back(database: Dsn, broker: Mosquitto) -> None:
    config = broker.config()
    async with served(database, config) as server, source(server.sources) as a, a.subscribe() as told:
        await server.add_consumer("cluster1")
        await connected(server)
        async with agent(config, "cluster1") as one:
            await a.create("w1", "cluster1")
            await one.spec_of("w1")
            await one.tell("w1", 1, hash="h1")
            await told.spec_of("w1")
        broker.stop()
        await waiting.until(lambda: bool(server.lines("is disconnected")), what="the loss")
        await a.create("w2", "cluster1")
        await a.delete("w1", "cluster1")
        broker.start()
        await connected(server, times=2)
        async with agent(config, "cluster1") as one:
            await one.resync({"w1": 1})
            await one.spec_of("w2")
            await one.take(is_deleting)
        await waiting.until(server.has_nothing_pending, what="an empty queue")


async def test_a_server_that_was_away_asks_for_statuses_and_repeats_deletions(database: Dsn, broker: Mosquitto) -> None:
    config = broker.config()
    async with agent(config, "cluster1") as one:
        async with served(database, config) as server, source(server.sources) as a:
            await server.add_consumer("cluster1")
            await connected(server)
            for name in ("w1", "w2", "going"):
                await a.create(name, "cluster1")
                await one.spec_of(name)
            await one.tell("w1", 1, hash="h1")
            await waiting.until(lambda: _has_status(server, "w1"), what="a status")
            await a.delete("going", "cluster1")
            await one.take(is_deleting)
        # Its last word about `going` was lost, and it has forgotten it: only a repeated deletion helps.
        async with served(database, config) as server:
            question = await one.take(is_question)
            assert question.extensions[event.CLUSTER_NAME] == "cluster1"
            assert resync.decode_hashes(question.data) == {"w1": "h1", "w2": "", "going": ""}
            await one.take(is_deleting)
            await one.tell("going", 1, "Deleted")
            # Nobody knows whether it was delivered before the server went.
            await one.spec_of("w2")
            assert not any(is_about(each, "w1") for each in one.received), "what was answered for is not sent again"
            await one.tell("w2", 1)
            await waiting.until(lambda: _has_status(server, "w2"), what="the status that was lost")
            await waiting.until(lambda: _is_gone(server, "going"), what="the end of the bundle")


async def _has_status(server: harness.InProcess, bundle_id: str) -> bool:
    bundle = await server.bundle(bundle_id)
    return bundle is not None and bool(bundle.get("status"))


async def _is_gone(server: harness.InProcess, bundle_id: str) -> bool:
    return await server.bundle(bundle_id) is None


async def test_messages_stay_below_the_brokers_limit(database: Dsn, tmp_path: Path) -> None:
    limit = 20_000

    with mosquitto(tmp_path / "small", settings=f"max_packet_size {limit}") as broker:
        config = broker.config()
        names = [f"bundle-{number:04}" for number in range(300)]
        async with agent(config, "cluster1") as one:
            async with served(database, config) as server, source(server.sources) as a:
                await server.add_consumer("cluster1")
                await connected(server)
                refusal = await a.refused(a.spec(event.SPEC_CREATE, "huge", "cluster1", data=bundle_data("x" * limit)))
                assert "the message broker takes at most 20000; split the work" in str(refusal.details())
                # Of one that was stored before the broker had its limit, the operator is told.
                await a.create("grown", "cluster1")
                await one.spec_of("grown")
                await server.sql(GROW, bundle_data("x" * limit))
                await asyncio.gather(*(a.create(name, "cluster1") for name in names))
                for name in names:
                    await one.spec_of(name)
                await waiting.until(server.has_nothing_pending, what="an empty queue")
                (line,) = server.lines("Failed to publish resource")
                assert line["resourceID"] == "grown"
                assert re.search(
                    r"has \d+ bytes and the broker accepts at most 20000; make it smaller", json.dumps(line)
                )
            async with served(database, config) as server:
                asked: dict[str, str] = {}
                while len(asked) < len(names) + 1:
                    question = await one.take(is_question)
                    assert len(question.data) < limit
                    asked |= resync.decode_hashes(question.data)
                # What an agent says it has is split as well, and each part is answered.
                orphans = {f"{name}-{'x' * 900}": 1 for name in names[:8]}
                await one.resync(dict.fromkeys(names, 1) | orphans)
                for orphan in orphans:
                    await one.take(lambda e: is_about(e, orphan) and is_deleting(e))


async def test_a_burst_of_more_reports_than_a_broker_keeps_is_stored_to_the_last(
    database: Dsn, broker: Mosquitto
) -> None:
    """Mosquitto keeps a thousand messages beyond those that it may send, and drops the rest without a word."""

    config = broker.config()
    async with served(database, config) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        await connected(server)
        async with agent(config, "cluster1") as one:
            names = [f"w{number}" for number in range(2500)]
            for start in range(0, len(names), 100):
                await asyncio.gather(*(a.create(name, "cluster1") for name in names[start : start + 100]))
            await waiting.until(lambda: one.seen == len(names), what="all specs")
            await asyncio.gather(*(one.tell(name, 1) for name in names))
            told = "SELECT count(*) FROM resources WHERE status ->> 'sequenceid' <> ''"
            await waiting.until(lambda: counts(server, told, len(names)), what="all statuses")


async def counts(server: harness.InProcess, statement: str, expected: int) -> bool:
    return bool(await server.value(statement) == expected)


async def test_malformed_and_foreign_status_updates_change_nothing(database: Dsn, broker: Mosquitto) -> None:
    config = broker.config()
    async with served(database, config) as server, source(server.sources) as a, raw_client(config) as stranger:
        for name in ("cluster1", "cluster2"):
            await server.add_consumer(name)
        await connected(server)
        topic = "sources/maestro/consumers/cluster2/agentevents"
        rubbish = mqtt_binding.MqttMessage(content_type="", properties=(("x", "y"),), payload=b"\xff{")
        await stranger.publish(topic, rubbish)
        async with agent(config, "cluster1") as one:
            await a.create("w1", "cluster1")
            await one.spec_of("w1")
            await stranger.publish(topic, mqtt_binding.encode(one.report("w1", 1)))
            await waiting.until(lambda: len(server.lines("invalid event")) == 2, what="two refusals")
            assert not await _has_status(server, "w1")
            await one.tell("w1", 1)
            await waiting.until(lambda: _has_status(server, "w1"), what="a status")


async def test_a_report_waits_for_the_database(
    database: Dsn, broker: Mosquitto, stack_postgres: harness.Postgres
) -> None:
    config = broker.config()
    async with served(database, config) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        await connected(server)
        async with agent(config, "cluster1") as one:
            await a.create("w1", "cluster1")
            await one.spec_of("w1")
            async with stack_postgres.outage(database):
                await one.tell("w1", 1)
                await waiting.until(lambda: bool(server.lines("failed to handle status event")), what="a failure")
            await waiting.until(lambda: _has_status(server, "w1"), what="the status after all")
