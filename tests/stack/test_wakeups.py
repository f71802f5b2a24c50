"""Wake-ups of the dispatchers: a lost one is made up for, a superfluous one is harmless, none delays another."""

import asyncio
import json
import time

import pytest

from maestropy.journal.phrases import ListenerPhrase
from maestropy.server.controllers.status import status_dispatcher
from maestropy.store.dsn import Dsn
from maestropy.wire.events import event
from tests import waiting
from tests.stack import harness
from tests.stack.clients import Stream, agent, bundle_data, source

SPEC = """INSERT INTO resources (id, created_at, updated_at, name, source, consumer_name, version, type, payload)
          SELECT id, now(), now(), id, 'source-a', $2, 1, '', $3::jsonb FROM unnest($1::text[]) AS n (id)"""
EVENT = """INSERT INTO events (id, created_at, updated_at, source, source_id, event_type)
           SELECT 'event-' || id, now(), now(), 'Resources', id, $2 FROM unnest($1::text[]) AS n (id)"""

STATUS_EVENT = """INSERT INTO status_events (id, created_at, updated_at, resource_id, resource_source, resource_type,
                  status_event_type) VALUES ('s1', now(), now(), $1, 'source-a', '', 'StatusUpdate')"""
STATUS = {"id": "s", "source": "agent", "type": event.STATUS_UPDATE, "specversion": "1.0", "data": {}}


def stored_spec() -> str:
    """Return a spec as a Go server stores it."""
    return json.dumps(
        {
            "id": "e1",
            "source": "source-a",
            "type": event.SPEC_CREATE,
            "specversion": "1.0",
            "datacontenttype": "application/json",
            "time": "2026-01-02T03:04:05Z",
            "resourceid": "x",
            "resourceversion": 0,
            "clustername": "cluster1",
            "originalsource": "",
            "metadata": {"name": "work"},
            "data": json.loads(bundle_data()),
        }
    )


async def add_silently(server: harness.InProcess, ids: list[str], consumer: str, *, kind: str = "Create") -> None:
    """Add resources with their events but without a wake-up."""
    await server.sql(SPEC, ids, consumer, stored_spec())
    await server.sql(EVENT, ids, kind)


def specs_in(got: Stream) -> set[object]:
    return {each.extensions[event.RESOURCE_ID] for each in got.events if event.RESOURCE_ID in each.extensions}


async def test_event_without_a_wake_up_is_found_within_seconds(database: Dsn) -> None:
    async with (
        harness.in_process(database, sweep_interval="500ms") as server,
        source(server.sources) as a,
        a.subscribe() as told,
        agent(server.agents, "cluster1") as one,
        one.subscribe() as got,
    ):
        await server.add_consumer("cluster1")
        await add_silently(server, ["w1"], "cluster1")
        began = time.monotonic()
        assert (await got.spec_of("w1", version=1)).type == event.SPEC_CREATE
        assert time.monotonic() - began < 5
        await waiting.until(server.has_nothing_pending, what="the mark")

        await server.sql("UPDATE resources SET status = $1::jsonb", json.dumps(STATUS))
        await server.sql(STATUS_EVENT, "w1")
        assert (await told.take()).id == STATUS["id"]


async def test_wake_up_after_the_rescan_sends_nothing_again(database: Dsn) -> None:
    async with (
        harness.in_process(database, sweep_interval="200ms", event_retention="1h") as server,
        agent(server.agents, "cluster1") as one,
        one.subscribe() as got,
    ):
        await server.add_consumer("cluster1")
        await add_silently(server, ["w1"], "cluster1")
        await got.spec_of("w1")
        await waiting.until(server.has_nothing_pending, what="the mark")
        await server.sql("SELECT pg_notify('events', 'event-w1')")
        # What comes after it shows that the wake-up has been dealt with.
        await add_silently(server, ["w2"], "cluster1")
        await server.sql("SELECT pg_notify('events', 'event-w2')")
        await got.spec_of("w2")
        assert specs_in(got) == set(), "nothing but the two was sent"


async def is_zero(server: harness.InProcess, query: str) -> bool:
    return bool(await server.value(query) == 0)


async def test_listener_reconnects_after_its_connection_was_killed(database: Dsn) -> None:
    async with (
        # A sweep that does not come in this test: the listener has to notice by itself.
        harness.in_process(database, sweep_interval="10m") as server,
        source(server.sources) as a,
        a.subscribe() as told,
        agent(server.agents, "cluster1") as one,
        one.subscribe() as got,
    ):
        await server.add_consumer("cluster1")
        killed: set[int] = set()
        for life in range(2):
            pids = await waiting.until(lambda: listeners(server, killed), what="a new listener")
            for pid in pids:
                await server.sql("SELECT pg_terminate_backend($1)", pid)
            killed |= pids
            await a.create(f"w{life}", "cluster1")
            assert await got.spec_of(f"w{life}")
            await one.tell(f"w{life}", 1)
            assert await told.spec_of(f"w{life}")
        await waiting.until(
            lambda: len(server.lines(ListenerPhrase.CONNECTION_LOST)) >= 2, what="both losses in the log"
        )


async def listeners(server: harness.InProcess, killed: set[int]) -> set[int]:
    """Return the listening connections that have not been killed."""
    return {row["pid"] for row in await server.sql(harness.LISTENERS)} - killed


@pytest.mark.long
async def test_events_without_a_resource_and_reconciled_events_are_not_read_again(database: Dsn) -> None:
    async with harness.in_process(database, event_retention="1h", sweep_interval="200ms") as server:
        await server.add_consumer("cluster1")
        async with agent(server.agents, "cluster1") as one, one.subscribe() as got:
            await server.sql(EVENT, [f"gone{number}" for number in range(50)], "Update")
            await server.sql("SELECT pg_notify('events', 'event-gone0'), pg_notify('events', 'never-existed')")
            await waiting.until(
                server.has_nothing_pending,
                what="the end of the events of bundles that are gone",
            )
            await add_silently(server, ["w1"], "cluster1")
            await got.spec_of("w1")
            await waiting.until(server.has_nothing_pending, what="quiet")
            assert len(server.server.spec_dispatcher.wake_ups) == 0
            assert got.seen == 1


async def test_backlog_of_absent_agents_does_not_delay_the_others(database: Dsn) -> None:
    """5,000 deletions without an agent are pending before one creation with an agent."""

    async with harness.in_process(database, sweep_interval="500ms") as server:
        for name in ("away1", "away2", "here"):
            await server.add_consumer(name)
        for name in ("away1", "away2"):
            await add_silently(server, [f"{name}-{number}" for number in range(2500)], name, kind="Delete")
        await server.sql("UPDATE resources SET deleted_at = now()")
        await server.sql("SELECT count(pg_notify('events', id)) FROM events")
        async with (
            source(server.sources) as a,
            agent(server.agents, "here") as one,
            one.subscribe() as got,
        ):
            for number in range(5):
                began = time.monotonic()
                await a.create(f"w{number}", "here")
                await got.spec_of(f"w{number}")
                assert time.monotonic() - began < 3
        left = "SELECT count(*) - 5000 FROM events WHERE reconciled_date IS NULL"
        await waiting.until(lambda: is_zero(server, left), what="the backlog, untouched, alone")


async def test_backlog_is_dispatched_at_once_when_the_agent_subscribes(database: Dsn) -> None:
    """Pending events are sent as fast as the agent reads, not a few at every rescan."""

    async with harness.in_process(database, sweep_interval="10m") as server:
        await server.add_consumer("cluster1")
        ids = [f"w{number}" for number in range(1000)]
        await add_silently(server, ids, "cluster1")
        async with agent(server.agents, "cluster1") as one, one.subscribe() as got:
            await waiting.until(lambda: len(specs_in(got)) == len(ids), what=f"all {len(ids)} specs")
            assert specs_in(got) == set(ids)


async def test_row_that_cannot_be_encoded_does_not_stop_the_others(database: Dsn) -> None:
    """Other servers write rows too; one that is no event must not stop the dispatch of the others."""

    async with (
        harness.in_process(database, sweep_interval="200ms") as server,
        source(server.sources) as a,
        a.subscribe() as told,
        agent(server.agents, "cluster1") as one,
        one.subscribe() as got,
    ):
        await server.add_consumer("cluster1")
        await add_silently(server, ["no-payload", "no-event", "huge-version"], "cluster1")
        await server.sql("UPDATE resources SET payload = NULL WHERE id = 'no-payload'")
        await server.sql("UPDATE resources SET payload = '[]' WHERE id = 'no-event'")
        await server.sql("UPDATE resources SET version = 5000000000 WHERE id = 'huge-version'")
        await server.sql("SELECT count(pg_notify('events', id)) FROM events")
        await a.create("w1", "cluster1")
        await got.spec_of("w1")
        await one.resync({})
        await got.take(lambda e: e.type == event.SPEC_RESYNC_RESPONSE)

        await server.sql("""UPDATE resources SET status = '{"no": "event"}' WHERE id = 'no-payload'""")
        await server.sql(STATUS_EVENT, "no-payload")
        await asyncio.gather(one.tell("w1", 1), one.tell("no-event", 1))
        await told.spec_of("w1")
        await asyncio.gather(a.create("w2", "cluster1"), a.update("no-event", "cluster1"))
        await got.spec_of("w2")
        await got.spec_of("no-event", version=2)


@pytest.mark.long
async def test_resource_without_a_status_is_sent_again(database: Dsn) -> None:
    """Whether its status is an SQL NULL or a JSON null; and not any more once it has one."""

    flags = {"undelivered_resource_threshold": "1", "sweep_interval": "300ms"}
    async with (
        harness.in_process(database, **flags) as server,
        agent(server.agents, "cluster1") as one,
        one.subscribe() as got,
    ):
        await server.add_consumer("cluster1")
        await server.sql(SPEC, ["sql-null", "json-null", "answered", "deleting"], "cluster1", stored_spec())
        await server.sql("UPDATE resources SET status = 'null'::jsonb WHERE id = 'json-null'")
        await server.sql("""UPDATE resources SET status = '{"sequenceid": "1"}' WHERE id = 'answered'""")
        await server.sql("UPDATE resources SET deleted_at = now() WHERE id = 'deleting'")
        for _ in range(2):
            await got.spec_of("sql-null")
            await got.spec_of("json-null")
        assert got.events == [] or {e.extensions[event.RESOURCE_ID] for e in got.events} <= {
            "sql-null",
            "json-null",
        }
        await one.tell("sql-null", 1)
        await one.tell("json-null", 1)
        left = await server.value(
            "SELECT count(*) FROM resources WHERE status IS NULL OR jsonb_typeof(status) = 'null'"
        )
        assert left == 1  # the one that is being deleted


@pytest.mark.long
async def test_deletions_that_no_agent_takes_are_given_up(database: Dsn) -> None:
    flags = {"stale_delete_event_threshold": "1", "sweep_interval": "300ms"}
    async with harness.in_process(database, **flags) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        await a.create("w1", "cluster1")
        await a.delete("w1", "cluster1")
        await waiting.until(lambda: is_zero(server, "SELECT count(*) FROM events"), what="the end of the events")
        async with agent(server.agents, "cluster1") as one, one.subscribe() as got:
            await one.resync({"w1": 1})
            gone = await got.spec_of("w1")
            assert event.DELETION_TIMESTAMP in gone.extensions


async def test_dispatched_status_events_do_not_hide_one_that_is_not(
    database: Dsn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a long retention, a status event whose wake-up was lost is still found."""
    monkeypatch.setattr(status_dispatcher, "_SCAN_LIMIT", 5)

    async with (
        harness.in_process(database, sweep_interval="200ms", event_retention="1h") as server,
        source(server.sources) as a,
        a.subscribe() as told,
        agent(server.agents, "cluster1") as one,
    ):
        await server.add_consumer("cluster1")
        await a.create("w1", "cluster1")
        for _ in range(10):
            await one.tell("w1", 1)
        recorded = "SELECT (SELECT count(*) FROM status_events) - (SELECT count(*) FROM event_instances)"
        await waiting.until(lambda: is_zero(server, recorded), what="the record")
        await a.create("w2", "cluster1")
        await server.sql("""UPDATE resources SET status = $1::jsonb WHERE id = 'w2'""", json.dumps(STATUS))
        await server.sql(STATUS_EVENT, "w2")
        assert (await told.take(lambda e: e.id == STATUS["id"])).source == STATUS["source"]


@pytest.mark.long
async def test_finished_events_are_purged(database: Dsn) -> None:
    async with (
        harness.in_process(database, sweep_interval="200ms") as server,
        source(server.sources) as a,
        a.subscribe() as told,
        agent(server.agents, "cluster1") as one,
        one.subscribe() as got,
    ):
        await server.add_consumer("cluster1")
        for number in range(20):
            await a.create(f"w{number}", "cluster1")
            await one.tell(f"w{number}", 1)
        for number in range(20):
            await got.spec_of(f"w{number}")
            await told.spec_of(f"w{number}")
        for table in ("events", "status_events", "event_instances"):
            await waiting.until(lambda: is_zero(server, f"SELECT count(*) FROM {table}"), what=f"empty {table}")
