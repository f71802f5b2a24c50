"""The order of status updates survives clocks behind a message broker, where no update is answered."""

import functools
import io
import time
from dataclasses import replace

import pytest

from maestropy import AsyncMaestro, Work
from maestropy.aio import clock as clocks
from maestropy.journal import emit
from maestropy.sandbox.cluster_agent import run_agent
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.store.dsn import Dsn
from maestropy.wire import ordering, resync
from maestropy.wire.events import event
from tests import waiting
from tests.conformance import sample_manifests as samples
from tests.peers.brokers.mqtt_agents import agent
from tests.peers.mosquitto import Mosquitto
from tests.stack import harness
from tests.stack.clients import source

pytestmark = pytest.mark.peers
DAY_MS = 86_400_000
STORED = "SELECT status ->> 'statushash' FROM resources WHERE id = 'w1'"


def sequence_id(offset_ms: int, step: int) -> str:
    return str(int(ordering.Snowflake(time.time_ns() // 10**6 + offset_ms, ordering.AGENT_NODE, step)))


@pytest.mark.parametrize("offset_ms", [DAY_MS, -DAY_MS], ids=["clock-ahead", "clock-behind"])
async def test_a_go_agent_with_a_wrong_clock_is_asked_and_its_answer_is_stored(
    database: Dsn, broker: Mosquitto, offset_ms: int
) -> None:
    config = broker.config()
    flags = {
        "message_broker_type": "mqtt",
        "message_broker_config_file": str(config),
        "delete_event_republish_interval": "5",
    }
    async with harness.in_process(database, **flags) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        await waiting.until(lambda: server.lines("subscribed to mqtt broker"), what="a subscription")
        async with agent(config, "cluster1") as one:

            def answer(step: int, *kinds: str) -> event.CloudEvent:
                report = one.report("w1", 1, *kinds, hash=f"new{kinds}", sequence=sequence_id(offset_ms, step))
                return replace(report, type=event.STATUS_RESYNC_RESPONSE)

            await a.create("w1", "cluster1")
            await one.spec_of("w1")
            await one.tell("w1", 1, "Applied", hash="first")
            await waiting.until(lambda: is_stored(server, "first"), what="the first status")

            await one.tell("w1", 1, "Available", hash="second", sequence=sequence_id(offset_ms, 0))
            question = await one.take(lambda got: got.type == event.STATUS_RESYNC_REQUEST)
            assert resync.decode_hashes(question.data) == {"w1": "first"}
            # A late message does not count as an answer.
            await one.tell("w1", 1, "Available", hash="late", sequence=sequence_id(offset_ms, 1))
            await one.take(lambda got: got.type == event.STATUS_RESYNC_REQUEST)
            assert await is_stored(server, "first")

            await one._connection.publish(answer(2, "Available"))
            await waiting.until(lambda: is_stored(server, "new('Available',)"), what="the answer")
            verification = await one.take(lambda got: got.type == event.STATUS_RESYNC_REQUEST)
            assert resync.decode_hashes(verification.data) == {"w1": "new('Available',)"}

            await a.delete("w1", "cluster1")
            for step in (3, 4):
                # The delete request is sent again, and a Go agent that has forgotten the work confirms it again.
                await one.take(lambda got: event.DELETION_TIMESTAMP in got.extensions)
                await one.tell("w1", 1, "Deleted", sequence=sequence_id(offset_ms, step))
            await waiting.until(lambda: is_gone(server), what="the removal")


async def is_stored(server: harness.InProcess, status_hash: str) -> bool:
    return bool(await server.value(STORED) == status_hash)


async def is_gone(server: harness.InProcess) -> bool:
    return await server.bundle("w1") is None


def has_value(value: str, work: Work) -> bool:
    return bool(work.feedback("value") == value)


async def test_our_agent_with_a_clock_one_day_ahead_that_is_corrected(database: Dsn, broker: Mosquitto) -> None:
    config = broker.config()
    flags = {"message_broker_type": "mqtt", "message_broker_config_file": str(config)}
    ahead = [86_400.0]
    clock = clocks.Clock(epoch=lambda: time.time() + ahead[0])
    async with (
        harness.in_process(database, **flags) as server,
        SandboxCluster(tls=False, delay=0.01) as sandbox,
        AsyncMaestro(api_url=server.rest, grpc_url=server.sources, source="sdk", environ={}) as client,
    ):
        await client.consumers.create("c1")
        works = client.works("c1")
        await waiting.until(lambda: server.lines("subscribed to mqtt broker"), what="a subscription")
        for value in ("ahead", "corrected"):
            journal = emit.Journal(io.BytesIO(), clock=time.time)
            async with run_agent(sandbox.kubeconfig, consumer="c1", broker=config, journal=journal, clock=clock):
                desired = Work("w").add(
                    samples.config_map("default", "w", data={"k": value}), feedback={"value": ".data.k"}
                )
                await works.apply(desired)
                await works.wait_for("w", functools.partial(has_value, value), timeout=30)
                stored = await server.value("SELECT status ->> 'sequenceid' FROM resources")
                assert not ordering.is_ahead(stored, now_ms=time.time_ns() // 10**6)
            ahead[0] = 0.0
