"""What an agent may rely on: OK means stored; and what it says about one bundle never harms another."""

from collections.abc import Awaitable

import grpc
import pytest

from maestropy.store.dsn import Dsn
from maestropy.wire import resync
from maestropy.wire.events import event
from tests import waiting
from tests.stack import harness
from tests.stack.clients import agent, source


def is_status_resync(received: event.CloudEvent) -> bool:
    return received.type == event.STATUS_RESYNC_REQUEST


async def test_ok_means_stored(database: Dsn, postgres: harness.Postgres) -> None:
    """A report that cannot be stored is refused, and the same report is taken when it can."""

    async with (
        harness.in_process(database) as server,
        source(server.sources) as a,
        a.subscribe() as told,
        agent(server.agents, "cluster1") as one,
    ):
        await server.add_consumer("cluster1")
        await a.create("w1", "cluster1")
        report = one.report("w1", 1)

        await server.sql("ALTER TABLE status_events ADD CONSTRAINT no_more CHECK (false) NOT VALID")
        assert (await one.refused(report)).code() == grpc.StatusCode.INTERNAL
        assert await server.value("SELECT status FROM resources") is None
        await server.sql("ALTER TABLE status_events DROP CONSTRAINT no_more")

        async with postgres.outage(database):
            refused = await one.refused(report)
            assert refused.code() == grpc.StatusCode.UNAVAILABLE
            assert "the database is not available; try again" in str(refused.details())
        await waiting.until(lambda: is_taken(one.answer(report)), what="the database")
        assert await server.value("SELECT status ->> 'sequenceid' FROM resources") == str(one.last_sequence)
        await told.spec_of("w1")


async def is_taken(answer: Awaitable[str]) -> bool:
    return bool(await answer == "")


@pytest.mark.parametrize("is_unknown", [False, True], ids=["newer-than-all", "for-no-bundle"])
async def test_deleted_status_removes_only_deleting_resources(database: Dsn, *, is_unknown: bool) -> None:
    async with (
        harness.in_process(database) as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
        one.subscribe() as got,
    ):
        await server.add_consumer("cluster1")
        await a.create("w1", "cluster1")
        await got.spec_of("w1")
        await one.tell("nothing" if is_unknown else "w1", 1, "Deleted")
        shown = await server.bundle("w1")
        assert shown is not None
        assert "deleted_at" not in shown
        if not is_unknown:
            # The agent does not have it any more, and should.
            assert (await got.spec_of("w1", version=1)).type == event.SPEC_UPDATE


async def test_a_late_deleted_does_not_destroy_the_successor(database: Dsn) -> None:
    async with (
        harness.in_process(database) as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
        one.subscribe() as got,
    ):
        await server.add_consumer("cluster1")
        await a.create("w1", "cluster1")
        await one.tell("w1", 1)
        await a.delete("w1", "cluster1")
        last = one.report("w1", 1, "Deleted")
        await one.publish(last)
        assert await server.bundle("w1") is None
        await one.publish(last)

        await a.create("w1", "cluster1")
        await one.publish(last)
        assert await server.bundle("w1") is not None
        await one.tell("w1", 1)
        # Nothing shows that it is not of this incarnation. The agent sends its status again: that is not Deleted.
        assert (await one.refused(last)).code() == grpc.StatusCode.ABORTED
        assert (await one.refused(last)).code() == grpc.StatusCode.ABORTED
        shown = await server.bundle("w1")
        assert shown is not None
        assert [condition["type"] for condition in shown["status"]["conditions"]] == ["Applied", "Available"]
        await got.spec_of("w1")


async def test_reports_that_are_late_or_for_another_version_change_nothing(database: Dsn) -> None:
    async with (
        harness.in_process(database, event_retention="1h") as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
    ):
        await server.add_consumer("cluster1")
        await a.create("w1", "cluster1")
        early, late = one.report("w1", 1, "Applied"), one.report("w1", 1, "Available")
        await one.publish(late)
        assert (await one.refused(early)).code() == grpc.StatusCode.ABORTED
        await one.publish(late)
        await one.tell("w1", 2, "Applied")
        await one.tell("w1", 1, "Available", hash=str(late.extensions[event.STATUS_HASH]))
        assert await server.value("SELECT count(*) FROM status_events") == 1
        shown = await server.bundle("w1")
        assert shown is not None
        assert shown["status"]["SequenceID"] == late.extensions[event.SEQUENCE_ID]

        refused = await one.refused(one.report("w1", 1, consumer="another"))
        assert refused.code() == grpc.StatusCode.FAILED_PRECONDITION
        assert "unmatched consumer name" in str(refused.details())


async def test_an_agent_is_asked_for_lost_statuses_by_the_name_of_its_consumer(database: Dsn) -> None:
    async with (
        harness.in_process(database) as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
    ):
        assert await server.add_consumer("cluster1") != "cluster1"
        await server.add_consumer("cluster2")
        await a.create("w1", "cluster1")
        await a.create("w2", "cluster1")
        await a.create("w3", "cluster2")
        await one.tell("w1", 1, hash="h1")
        async with one.subscribe() as got:
            asked = await got.take(is_status_resync)
        assert asked.extensions[event.CLUSTER_NAME] == "cluster1"
        assert asked.source == "maestro"
        assert resync.decode_hashes(asked.data) == {"w1": "h1", "w2": ""}


async def test_a_spec_resync_sends_what_is_missing_and_removes_what_is_unknown(database: Dsn) -> None:
    async with (
        harness.in_process(database) as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
        one.subscribe() as got,
    ):
        await server.add_consumer("cluster1")
        # A server that has nothing at all does not ask an agent to delete all that it has.
        await one.resync({"orphan": 7})
        (hold,) = await server.sql("SELECT reason, works FROM maestropy_holds")
        assert (hold["reason"], hold["works"]) == ("TooManyOrphans", ["orphan"])
        assert not got.events

        for name in ("same", "older", "unknown", "leaving"):
            await a.create(name, "cluster1")
        await a.update("older", "cluster1", data=b'{"manifests":[]}')
        await a.delete("leaving", "cluster1")
        await waiting.until(lambda: got.seen >= 4)
        got.events.clear()
        await one.resync({"same": 1, "older": 1, "leaving": 1, "orphan": 7})
        found = {}
        for _ in range(4):
            answer = await got.take(lambda e: e.type == event.SPEC_RESYNC_RESPONSE)
            found[answer.extensions[event.RESOURCE_ID]] = answer
        assert found.keys() == {"older", "unknown", "leaving", "orphan"}
        assert found["older"].integer(event.RESOURCE_VERSION) == 2
        assert event.DELETION_TIMESTAMP in found["leaving"].extensions
        orphan = found["orphan"]
        assert orphan.integer(event.RESOURCE_VERSION) == 7
        assert orphan.timestamp(event.DELETION_TIMESTAMP) is not None
        assert orphan.extensions[event.CLUSTER_NAME] == "cluster1"
        assert orphan.source == "maestro"
        await waiting.until(server.has_nothing_pending, what="an empty queue")
