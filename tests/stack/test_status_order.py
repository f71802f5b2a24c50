"""The order of status updates survives clocks that are wrong, and clocks that are corrected."""

import io
import json
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest

from maestropy import AsyncMaestro, Work
from maestropy.aio import clock as clocks
from maestropy.journal import emit
from maestropy.kube.config import load as config
from maestropy.sandbox.cluster_agent import run_agent
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.store.dsn import Dsn
from maestropy.wire import ordering, resync
from maestropy.wire.events import event
from tests import waiting
from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import Cluster
from tests.stack import harness
from tests.stack.clients import agent, source

DAY_MS = 86_400_000
STORED = "SELECT status ->> 'sequenceid' FROM resources WHERE id = 'w1'"
SET_STORED = "UPDATE resources SET status = jsonb_set(status, '{sequenceid}', to_jsonb($1::text)) WHERE id = 'w1'"
METRIC = "maestropy_status_updates_unordered_total"


def sequence_id(*, offset_ms: int = 0, step: int = 0) -> str:
    """Return what an agent sends whose clock is wrong by `offset_ms`."""
    return str(int(ordering.Snowflake(time.time_ns() // 10**6 + offset_ms, ordering.AGENT_NODE, step)))


def is_status_resync(received: event.CloudEvent) -> bool:
    return received.type == event.STATUS_RESYNC_REQUEST


async def conditions(server: harness.InProcess) -> list[str]:
    shown = await server.bundle("w1")
    assert shown is not None
    return [condition["type"] for condition in shown["status"]["conditions"]]


async def test_a_status_resync_tells_the_stored_sequence_id_and_the_time_of_the_database(database: Dsn) -> None:
    async with (
        harness.in_process(database) as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
    ):
        await server.add_consumer("cluster1")
        await a.create("w1", "cluster1")
        await a.create("w2", "cluster1")
        await one.tell("w1", 1, hash="h1")
        async with one.subscribe() as received:
            request = await received.take(is_status_resync)
        assert resync.decode_status_marks(request.data) == [("w1", "h1", str(one.last_sequence)), ("w2", "", "")]
        # A Go agent reads the two members that it knows.
        assert json.loads(request.data)["statusHashes"][1] == {"resourceID": "w2", "statusHash": ""}
        database_time = request.timestamp(event.DATABASE_TIME)
        assert database_time is not None
        assert abs(database_time.seconds - time.time()) < 60


@pytest.mark.parametrize("offset_ms", [DAY_MS, -DAY_MS], ids=["clock-ahead", "clock-behind"])
async def test_a_go_agent_with_a_wrong_clock_gets_an_error_and_its_next_attempt_is_stored(
    database: Dsn, offset_ms: int
) -> None:
    async with (
        harness.in_process(database) as server,
        source(server.sources) as a,
        a.subscribe() as statuses,
        agent(server.agents, "cluster1") as one,
        one.subscribe() as received,
    ):
        await server.add_consumer("cluster1")
        await a.create("w1", "cluster1")
        await one.tell("w1", 1, "Applied", hash="first")
        await statuses.spec_of("w1")
        before = await server.value(STORED)

        first = one.report("w1", 1, "Available", hash="second", sequence=sequence_id(offset_ms=offset_ms))
        refused = await one.refused(first)
        assert refused.code() == grpc.StatusCode.ABORTED
        assert f"sequenceid {first.text(event.SEQUENCE_ID)}" in str(refused.details())
        assert "the clock of the agent's host" in str(refused.details())
        assert await conditions(server) == ["Applied"]
        question = await received.take(is_status_resync)
        assert resync.decode_status_marks(question.data) == [("w1", "first", before)]
        assert (await one.refused(first)).code() == grpc.StatusCode.ABORTED, "the same message is no second attempt"

        # A Go agent computes its status again and sends it.
        retried = {event.SEQUENCE_ID: sequence_id(offset_ms=offset_ms, step=1)}
        again = replace(first, extensions={**first.extensions, **retried})
        await one.publish(again)
        assert await conditions(server) == ["Available"]
        stored = await server.value(STORED)
        assert ordering.is_newer(stored, before), "sources never see a sequence ID that goes back"
        assert not ordering.is_ahead(stored, now_ms=time.time_ns() // 10**6)
        assert (await statuses.spec_of("w1")).extensions[event.SEQUENCE_ID] == stored
        await one.publish(again)

        # The agent is restarted with the right clock.
        await one.tell("w1", 1, "Applied", hash="third", sequence=sequence_id(offset_ms=1000))
        assert await conditions(server) == ["Applied"]
        cause = "ahead" if offset_ms > 0 else "older"
        assert f'{METRIC}{{cause="{cause}"}} 2\n' in server.context.metrics.render()[0].decode()


async def test_an_answer_to_a_status_resync_is_never_an_error(database: Dsn) -> None:
    """A Go agent does not send the other statuses that the server requested when one of them is rejected."""

    async with (
        harness.in_process(database) as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
        one.subscribe() as received,
    ):
        await server.add_consumer("cluster1")
        await a.create("w1", "cluster1")
        await one.tell("w1", 1, "Applied")

        async def answer(step: int) -> None:
            report = one.report("w1", 1, "Available", hash="new", sequence=sequence_id(offset_ms=-DAY_MS, step=step))
            await one.publish(replace(report, type=event.STATUS_RESYNC_RESPONSE))

        await answer(0)
        assert await conditions(server) == ["Applied"], "not stored, but asked for again"
        await received.take(is_status_resync)
        await answer(1)
        assert await conditions(server) == ["Available"]
        # The answer may have been a late one: the server makes sure.
        verification = await received.take(is_status_resync)
        assert resync.decode_hashes(verification.data) == {"w1": "new"}


@pytest.mark.parametrize(
    "stored", [str(2**63 - 1), sequence_id(offset_ms=DAY_MS)], ids=["largest-sequence-id", "one-day-ahead"]
)
async def test_a_stored_sequence_id_far_ahead_freezes_nothing(database: Dsn, stored: str) -> None:
    async with (
        harness.in_process(database) as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
    ):
        await server.add_consumer("cluster1")
        await a.create("w1", "cluster1")
        await one.tell("w1", 1, "Applied")
        # As a Go server stores it.
        await server.sql(SET_STORED, stored)
        await one.tell("w1", 1, "Available")
        assert await conditions(server) == ["Available"]
        await server.sql(SET_STORED, stored)
        await a.delete("w1", "cluster1")
        await one.tell("w1", 1, "Deleted")
        assert await server.bundle("w1") is None


@pytest.mark.parametrize("offset_ms", [DAY_MS, -DAY_MS], ids=["clock-ahead", "clock-behind"])
async def test_a_go_agent_with_a_wrong_clock_can_confirm_a_deletion(database: Dsn, offset_ms: int) -> None:
    async with (
        harness.in_process(database) as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
    ):
        await server.add_consumer("cluster1")
        await a.create("w1", "cluster1")
        await one.tell("w1", 1, "Applied")
        await a.delete("w1", "cluster1")
        first = one.report("w1", 1, "Deleted", sequence=sequence_id(offset_ms=offset_ms))
        assert (await one.refused(first)).code() == grpc.StatusCode.ABORTED
        # A Go agent tries again every two seconds.
        await one.tell("w1", 1, "Deleted", sequence=sequence_id(offset_ms=offset_ms, step=1))
        assert await server.bundle("w1") is None


class WrongClock:
    """The clock of a host, which a test sets."""

    def __init__(self) -> None:
        self.ahead = 86_400.0

    def clock(self) -> clocks.Clock:
        return clocks.Clock(epoch=lambda: time.time() + self.ahead)


@asynccontextmanager
async def client_of(server: harness.InProcess) -> AsyncIterator[AsyncMaestro]:
    async with AsyncMaestro(api_url=server.rest, grpc_url=server.sources, source="sdk", environ={}) as client:
        yield client


def wrong_agent(
    sandbox: SandboxCluster, server: harness.InProcess, clock: clocks.Clock, log: io.BytesIO
) -> AbstractAsyncContextManager[Any]:
    journal = emit.Journal(log, clock=time.time)
    return run_agent(sandbox.kubeconfig, consumer="c1", broker=server.agents, journal=journal, clock=clock)


@pytest.mark.parametrize("is_restarted", [False, True], ids=["while-it-runs", "with-a-restart"])
async def test_our_agent_with_a_clock_one_day_ahead_that_is_corrected(database: Dsn, *, is_restarted: bool) -> None:
    hands, log = WrongClock(), io.BytesIO()
    async with (
        harness.in_process(database) as server,
        SandboxCluster(tls=False, delay=0.01) as sandbox,
        Cluster(config.from_kubeconfig([sandbox.kubeconfig])) as cluster,
        client_of(server) as client,
    ):
        await client.consumers.create("c1")
        works = client.works("c1")
        live = samples.config_map("default", "w")

        async def reports(value: str) -> None:
            await cluster.edit(live, {"data": {"test": value}})
            await works.wait_for("w", lambda work: work.feedback("value") == value, timeout=30)
            (stored,) = await server.sql("SELECT status ->> 'sequenceid' FROM resources")
            assert not ordering.is_ahead(stored[0], now_ms=time.time_ns() // 10**6)

        async with wrong_agent(sandbox, server, hands.clock(), log) as running:
            wanted = Work("w").add(live, feedback={"value": ".data.test"}, update_strategy="CreateOnly")
            await works.apply(wanted)
            await works.wait_for("w", "Available", timeout=30)
            await reports("ahead")
            if not is_restarted:
                hands.ahead = 0.0
                await reports("corrected")
            assert running.is_ready
        await waiting.until(lambda: b"the clock of this host is wrong" in log.getvalue(), what="a warning")
        hands.ahead = 0.0
        async with wrong_agent(sandbox, server, hands.clock(), io.BytesIO()):
            await reports("right")
            await works.delete("w", wait=True, timeout=30)
