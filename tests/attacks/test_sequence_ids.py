"""Sequence IDs that an agent makes up stop nobody's status."""

import time

import grpc

from maestropy.store.dsn import Dsn
from maestropy.wire import ordering
from maestropy.wire.events import event
from tests.stack import harness
from tests.stack.clients import agent, source

LARGEST = 2**63 - 1
STORED = "SELECT status ->> 'sequenceid' FROM resources WHERE id = $1"


async def types_of(server: harness.InProcess, resource_id: str) -> list[str]:
    shown = await server.bundle(resource_id)
    assert shown is not None
    return [condition["type"] for condition in shown["status"]["conditions"]]


async def test_largest_sequence_id_for_a_work_of_its_own(database: Dsn) -> None:
    """send the largest possible sequence ID, so that every later status of the work looks old -> Aborted, with the \
field and the remedy; later statuses are stored"""
    async with (
        harness.in_process(database) as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
    ):
        await server.add_consumer("cluster1")
        await a.create("w1", "cluster1")
        for number in (LARGEST, LARGEST - 1, LARGEST - 1):
            refused = await one.refused(one.report("w1", 1, "Bad", sequence=str(number)))
            assert refused.code() == grpc.StatusCode.ABORTED
            assert f"failed to handle status event: sequenceid {number} is" in str(refused.details())
            assert "correct the clock of the agent's host" in str(refused.details())
        # It insists: stored, but under a sequence ID of the server.
        await one.tell("w1", 1, "Bad", sequence=str(LARGEST))
        assert not ordering.is_ahead(await server.value(STORED, "w1"), now_ms=time.time_ns() // 10**6)
        await one.tell("w1", 1, "Applied", hash="right")
        assert await types_of(server, "w1") == ["Applied"]
        await one.tell("w1", 1, "Available", hash="right-again")
        assert await types_of(server, "w1") == ["Available"]


async def test_largest_sequence_id_for_a_work_of_another_cluster(database: Dsn) -> None:
    """send the largest possible sequence ID for a work of another cluster -> FailedPrecondition; the work keeps its \
status and its order"""
    async with (
        harness.in_process(database) as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as victim,
        agent(server.agents, "cluster2") as attacker,
    ):
        await server.add_consumer("cluster1")
        await server.add_consumer("cluster2")
        await a.create("w1", "cluster1")
        await victim.tell("w1", 1, "Applied")
        for number in (LARGEST - 1, LARGEST):
            refused = await attacker.refused(attacker.report("w1", 1, "Bad", sequence=str(number)))
            assert refused.code() == grpc.StatusCode.FAILED_PRECONDITION
            assert "unmatched consumer name cluster2 for resource w1" in str(refused.details())
        assert await server.value(STORED, "w1") == str(victim.last_sequence)
        await victim.tell("w1", 1, "Available")
        assert await types_of(server, "w1") == ["Available"]


async def test_flood_of_unordered_updates_asks_the_agent_few_questions(database: Dsn) -> None:
    """send hundreds of statuses whose order is not known, so that the server asks for each -> Aborted; the questions \
are gathered"""
    async with (
        harness.in_process(database) as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
        one.subscribe() as received,
    ):
        await server.add_consumer("cluster1")
        await a.create("w1", "cluster1")
        await one.tell("w1", 1, "Applied", hash="right")
        for number in range(300, 0, -1):
            assert (await one.answer(one.report("w1", 1, "Bad", sequence=str(number)))).startswith("ABORTED")
        questions = [got for got in received.events if got.type == event.STATUS_RESYNC_REQUEST]
        assert len(questions) < 30
        assert await types_of(server, "w1") == ["Applied"]
