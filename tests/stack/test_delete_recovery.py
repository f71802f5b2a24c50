"""Delete recovery: unconfirmed deletions are sent again, once by all servers on a database, less and less often.

A second connection acts as a replica of the Go server, with the statements of Go Maestro of September 2026.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from maestropy.server.controllers.spec.delete_recovery import DeleteRecovery
from maestropy.server.decide.delete_recovery import RecoveryPolicy
from maestropy.store.dsn import Dsn
from maestropy.wire.events import event
from tests import waiting
from tests.go_delete_recovery import go_replica, go_round
from tests.stack import harness
from tests.stack.clients import Stream, agent, bundle_data, source

SPEC = """INSERT INTO resources
          (id, created_at, updated_at, deleted_at, name, source, consumer_name, version, type, payload)
          SELECT id, now(), now() - interval '1 year', now() - $3 * interval '1 second', id, 'source-a', $2, 1, '',
                 $4::jsonb
          FROM unnest($1::text[]) AS n (id)"""
SCHEDULED = """UPDATE resources SET delete_retry_at = now() + $2 * interval '1 second', delete_retry_delay = 60e9
               WHERE id = $1"""
CONSUMER_DUE = "INSERT INTO delete_recovery_consumers VALUES ($1, now()) ON CONFLICT DO NOTHING"
EVENT = """INSERT INTO events (id, created_at, updated_at, source, source_id, event_type, reconciled_date)
           VALUES ('event-' || $1, now(), now(), 'Resources', $1, 'Delete', $2::timestamptz)"""
TIME_PASSES = [
    "UPDATE resources SET deleted_at = deleted_at - interval '1 hour' WHERE deleted_at IS NOT NULL",
    "UPDATE resources SET delete_retry_at = delete_retry_at - interval '1 hour'",
    "UPDATE delete_recovery_consumers SET next_at = next_at - interval '1 hour'",
    "UPDATE delete_recovery_schedule SET next_at = next_at - interval '1 hour'",
]
BY_HAND = {"sweep_interval": "1h", "delete_event_republish_interval": "0"}
"""Rounds are run by the test itself, so that it knows when."""


async def add_deleting(server: harness.InProcess, ids: list[str], *, seconds: float, consumer: str = "c1") -> None:
    """Add resources whose deletion was requested `seconds` ago, and sent."""
    spec = {"id": "e", "source": "source-a", "type": event.SPEC_CREATE, "specversion": "1.0", "metadata": {"name": "w"}}
    document = json.dumps({**spec, "data": json.loads(bundle_data())})
    await server.sql(SPEC, ids, consumer, seconds, document)


async def time_passes(server: harness.InProcess) -> None:
    for statement in TIME_PASSES:
        await server.sql(statement)


async def deletion_of(got: Stream, name: str) -> None:
    told = await got.spec_of(name)
    assert (told.type, event.DELETION_TIMESTAMP in told.extensions) == (event.SPEC_DELETE, True)


def recovery_of(server: harness.InProcess, *, batch: int = 25) -> DeleteRecovery:
    return DeleteRecovery(server.context, RecoveryPolicy(batch=batch))


async def repeated(server: harness.InProcess, *, batch: int = 25, pause_ends: bool = True) -> list[str]:
    """Let the server do a round, and return the resources whose deletions it queued again."""
    if pause_ends:
        await server.sql("UPDATE delete_recovery_schedule SET next_at = now()")
    before = len(server.lines("Deletion is sent again"))
    await recovery_of(server, batch=batch).run_round()
    return [line["resourceID"] for line in server.lines("Deletion is sent again")[before:]]


@contextlib.asynccontextmanager
async def serving(database: Dsn, **flags: str) -> AsyncIterator[harness.InProcess]:
    """A server with the consumer c1, whose rounds the test runs."""
    async with harness.in_process(database, **{**BY_HAND, **flags}) as server:
        await server.add_consumer("c1")
        yield server


@pytest.mark.long
async def test_server_sends_unconfirmed_deletions_again_by_itself(database: Dsn) -> None:
    async with (
        harness.in_process(database, sweep_interval="1h", delete_event_republish_interval="1") as server,
        agent(server.agents, "c1") as one,
        one.subscribe() as got,
    ):
        await server.add_consumer("c1")
        await add_deleting(server, ["w1"], seconds=2)
        await deletion_of(got, "w1")
        await deletion_of(got, "w1")
        assert len(server.lines("Starting delete recovery scheduler")) == 1


async def test_unconfirmed_deletion_is_sent_again_less_and_less_often(database: Dsn) -> None:
    async with (
        serving(database) as server,
        source(server.sources) as a,
        agent(server.agents, "c1") as one,
        one.subscribe() as got,
    ):
        await a.create("w1", "c1")
        await got.spec_of("w1")
        await a.delete("w1", "c1")
        await deletion_of(got, "w1")
        await waiting.until(server.has_nothing_pending, what="the mark")
        delays = []
        for _ in range(3):
            await time_passes(server)
            await repeated(server)
            await deletion_of(got, "w1")
            await waiting.until(server.has_nothing_pending, what="the mark")
            delays.append(await server.value("SELECT delete_retry_delay / 1000000000 FROM resources"))
            assert await repeated(server) == []
        assert delays == [120, 240, 480]

        await one.tell("w1", 1, "Deleted")
        assert await server.bundle("w1") is None


async def test_silent_agent_gets_a_replacement(database: Dsn) -> None:
    """The status of the replacement concerns no resource, and its event is reconciled."""
    async with (
        serving(database) as server,
        agent(server.agents, "c1") as one,
        one.subscribe() as got,
    ):
        await add_deleting(server, ["w1"], seconds=130)
        await repeated(server)
        told = await got.spec_of("w1-forgotten")
        assert (told.type, event.DELETION_TIMESTAMP in told.extensions) == (event.SPEC_DELETE, True)
        assert json.loads(told.text(event.METADATA))["name"] == "w1"
        await waiting.until(server.has_nothing_pending, what="the mark")
        await one.tell("w1-forgotten", 1, "Deleted")
        assert await server.bundle("w1") is not None

        await server.sql(
            "UPDATE resources SET deleted_at = deleted_at - interval '170 seconds', delete_retry_at = now()"
        )
        await server.sql("UPDATE delete_recovery_consumers SET next_at = now()")
        await repeated(server)
        await deletion_of(got, "w1")
        await one.tell("w1", 1, "Deleted")
        assert await server.bundle("w1") is None


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """A deletion in the database."""

    seconds: float = 90
    """How long ago it was requested."""
    retry_in: float | None = None
    event: str = "none"
    is_locked: bool = False


@pytest.mark.parametrize(
    ("deletion", "is_repeated"),
    [
        pytest.param(Deletion(), True, id="old"),
        pytest.param(Deletion(seconds=59), False, id="fresh"),
        pytest.param(Deletion(seconds=-600), False, id="deleted-in-the-future"),
        pytest.param(Deletion(retry_in=-1), True, id="due"),
        pytest.param(Deletion(retry_in=30), False, id="not-due"),
        pytest.param(Deletion(event="pending"), False, id="event-pending"),
        pytest.param(Deletion(event="done"), True, id="event-reconciled"),
        pytest.param(Deletion(seconds=86_400 * 30), True, id="older-than-stale-events"),
        pytest.param(Deletion(is_locked=True), False, id="status-update-under-way"),
    ],
)
async def test_which_deletions_are_sent_again(database: Dsn, deletion: Deletion, is_repeated: bool) -> None:
    async with serving(database, event_retention="1h") as server:
        await add_deleting(server, ["w1"], seconds=deletion.seconds)
        if deletion.retry_in is not None:
            await server.sql(SCHEDULED, "w1", deletion.retry_in)
            await server.sql(CONSUMER_DUE, "c1")
        if deletion.event != "none":
            await server.sql(EVENT, "w1", server.context.now() if deletion.event == "done" else None)
        lock = "SELECT 1 FROM resources FOR UPDATE" if deletion.is_locked else "SELECT 1"
        async with go_replica(database) as other, other.transaction():
            await other.execute(lock)
            assert await repeated(server) == (["w1"] if is_repeated else [])


async def test_many_stuck_deletions_do_not_delay_those_of_another_consumer(database: Dsn) -> None:
    async with serving(database) as server:
        await server.add_consumer("c2")
        await add_deleting(server, [f"stuck{number:03}" for number in range(100)], seconds=86_400)
        await add_deleting(server, ["other"], seconds=90, consumer="c2")
        turns = []
        for _ in range(6):
            turns.append(await repeated(server, batch=40))
            await server.sql("UPDATE events SET reconciled_date = now()")
        assert [len(turn) for turn in turns] == [40, 40, 21, 0, 0, 0], "no more than the batch, in every round"
        repeats = [id_ for turn in turns for id_ in turn]
        assert len(set(repeats)) == len(repeats) == 101, "none is sent twice before all were"
        assert "other" in turns[2], "in the round that put it into the schedule"


async def test_two_instances_queue_a_deletion_once(database: Dsn) -> None:
    async with (
        harness.in_process(database, client_id="i1", **BY_HAND) as first,
        harness.in_process(database, client_id="i2", **BY_HAND) as second,
        agent(first.agents, "c1") as one,
        agent(second.agents, "c1") as other,
        one.subscribe() as got,
        other.subscribe() as got_too,
    ):
        await first.add_consumer("c1")
        await add_deleting(first, ["w1", "w2"], seconds=90)
        await asyncio.gather(*(recovery_of(server).run_round() for server in (first, second, first, second)))
        for stream in (got, got_too):
            await deletion_of(stream, "w1")
            await deletion_of(stream, "w2")
        repeats = [*first.lines("Deletion is sent again"), *second.lines("Deletion is sent again")]
        assert sorted(line["resourceID"] for line in repeats) == ["w1", "w2"]


async def test_interval_zero_sends_nothing_again_and_keeps_the_schedule(database: Dsn) -> None:
    async with serving(database) as server:
        await add_deleting(server, ["w1"], seconds=86_400)
        await server.sql(SCHEDULED, "w1", -1)
        await asyncio.sleep(1.2)
        assert server.lines("Starting delete recovery scheduler") == []
        assert await server.value("SELECT delete_retry_delay FROM resources") == 60_000_000_000
        assert await server.value("SELECT count(*) FROM events") == 0


async def test_metrics_and_log_of_a_round(database: Dsn) -> None:
    async with serving(database) as server:
        await add_deleting(server, ["w1", "w2"], seconds=90)
        await repeated(server)
        await recovery_of(server).report()
        shown = server.context.metrics.render()[0].decode()
        for line in (
            'delete_recovery_work_total{kind="initialized"} 2',
            'delete_recovery_work_total{kind="published"} 2',
            'delete_recovery_round_duration_seconds_count{outcome="error"} 0',
            'delete_recovery_tombstone_backlog{state="delayed"} 2',
            'delete_recovery_consumer_queue{state="scheduled"} 1',
            "delete_recovery_pending_delete_events 2",
            "delete_recovery_snapshot_errors_total 0",
        ):
            assert line in shown
        (record,) = server.lines("Delete recovery round complete")
        assert (record["initialized"], record["consumers"], record["published"]) == (2, 1, 2)


async def test_retired_event_gives_way_to_a_new_one_with_its_own_time(database: Dsn) -> None:
    """A pending event of a deletion is retired when it is old itself, not because the deletion is."""
    async with serving(database, stale_delete_event_threshold="3600") as server:
        await add_deleting(server, ["w1"], seconds=86_400)
        await server.sql(EVENT, "w1", None)
        await server.server.maintenance.detect()
        assert await server.value("SELECT reconciled_date FROM events") is None
        await server.sql("UPDATE events SET created_at = created_at - interval '2 hours'")
        await server.server.maintenance.detect()
        assert await server.value("SELECT count(*) FROM events WHERE reconciled_date IS NULL") == 0
        assert await repeated(server) == ["w1"]


@pytest.mark.long
async def test_go_and_python_replicas_send_each_deletion_once(database: Dsn) -> None:
    """Both run rounds as fast as they can; the pause ends at once. Nothing is queued twice, nothing is left out."""
    ids = [f"w{number:03}" for number in range(120)]
    async with serving(database) as server:
        await server.add_consumer("c2")
        await add_deleting(server, ids[:80], seconds=90)
        await add_deleting(server, ids[80:], seconds=120, consumer="c2")
        async with go_replica(database) as go:
            by_go: list[str] = []
            by_python: list[str] = []

            async def count() -> int:
                return int(await server.value("SELECT count(*) FROM events"))

            # Alone first: of two that begin at once, the same one may always be faster.
            await server.sql("UPDATE delete_recovery_schedule SET next_at = now()")
            by_python += await repeated(server, batch=7, pause_ends=False)
            await server.sql("UPDATE delete_recovery_schedule SET next_at = now()")
            by_go += await go_round(go) or []
            while await count() < len(ids):
                await server.sql("UPDATE delete_recovery_schedule SET next_at = now()")
                go_did, python_did = await asyncio.gather(go_round(go), repeated(server, batch=7, pause_ends=False))
                by_go += go_did or []
                by_python += python_did
                assert await count() == len(by_go) + len(by_python)
        assert sorted(by_go + by_python) == ids
        assert by_go, "the Go replica took part"
        assert by_python, "and so did ours"


async def test_pause_of_a_round_is_kept_by_the_other_kind_of_server(database: Dsn) -> None:
    async with serving(database) as server, go_replica(database) as go:
        await add_deleting(server, ["w1"], seconds=90)
        assert await go_round(go) == ["w1"]
        assert await server.value("SELECT cooldown_pending FROM delete_recovery_schedule") is True
        await add_deleting(server, ["w2"], seconds=90)
        assert await repeated(server, pause_ends=False) == [], "it starts the pause that the Go server owes"
        assert await go_round(go) is None
        left = "SELECT next_at - clock_timestamp() FROM delete_recovery_schedule"
        assert timedelta() < await server.value(left) <= timedelta(seconds=1)

        await server.sql("UPDATE delete_recovery_schedule SET next_at = now()")
        assert await repeated(server) == ["w2"]
        assert await server.value("SELECT cooldown_pending FROM delete_recovery_schedule") is False
        assert await go_round(go) is None, "the pause has begun with the end of our round"


async def test_python_takes_over_rows_that_a_go_replica_has_scheduled(database: Dsn) -> None:
    async with serving(database) as server, go_replica(database) as go:
        await add_deleting(server, ["w1"], seconds=90)
        assert await go_round(go) == ["w1"]
        await server.sql("UPDATE events SET reconciled_date = now()")
        await time_passes(server)
        await server.sql("UPDATE delete_recovery_schedule SET cooldown_pending = false")
        assert await repeated(server) == ["w1"]
        assert await server.value("SELECT delete_retry_delay / 1000000000 FROM resources") == 240


async def test_recreated_resource_does_not_inherit_the_schedule_of_its_predecessor(database: Dsn) -> None:
    async with (
        serving(database) as server,
        source(server.sources) as a,
        agent(server.agents, "c1") as one,
        one.subscribe() as got,
    ):
        await add_deleting(server, ["w1"], seconds=300)
        await repeated(server)
        await deletion_of(got, "w1")
        await one.tell("w1", 1, "Deleted")
        await a.create("w1", "c1")
        await got.spec_of("w1", version=1)
        assert await server.value("SELECT delete_retry_at FROM resources") is None
        await a.delete("w1", "c1")
        await deletion_of(got, "w1")
        await waiting.until(server.has_nothing_pending, what="the mark")
        await server.sql("UPDATE resources SET deleted_at = now() - interval '61 seconds', delete_retry_at = NULL")
        await repeated(server)
        await deletion_of(got, "w1")
        assert await server.value("SELECT delete_retry_delay / 1000000000 FROM resources") == 120


SLOW_COMMIT = """
CREATE FUNCTION sleep_at_commit() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN PERFORM pg_sleep(1.2); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER slow_commit AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION sleep_at_commit();
"""


async def test_slow_commit_does_not_shorten_the_pause(database: Dsn) -> None:
    async with serving(database) as server, go_replica(database) as other:
        await other.execute(SLOW_COMMIT)
        await add_deleting(server, ["w1"], seconds=90)
        await server.sql("UPDATE delete_recovery_schedule SET next_at = now()")
        began = await other.fetchval("SELECT clock_timestamp()")
        await recovery_of(server).run_round()
        next_at = await other.fetchval("SELECT next_at FROM delete_recovery_schedule")
        assert next_at - began >= timedelta(seconds=2.2)


async def test_round_that_fails_leaves_nothing_behind_and_is_repeated(database: Dsn) -> None:
    """Neither a schedule without its event nor an event without its schedule."""
    async with serving(database) as server, go_replica(database) as other:
        await add_deleting(server, ["w1"], seconds=90)
        await other.execute("ALTER TABLE events ADD CONSTRAINT broken CHECK (event_type <> 'Delete')")
        assert await repeated(server) == []
        (record,) = server.lines("Delete recovery round failed")
        assert "w1" not in json.dumps(record)
        assert 'outcome="error"} 1' in server.context.metrics.render()[0].decode()
        left = "SELECT delete_retry_at IS NULL AND NOT cooldown_pending FROM resources, delete_recovery_schedule"
        assert await server.value(left) is True
        await other.execute("ALTER TABLE events DROP CONSTRAINT broken")
        assert await repeated(server) == ["w1"]
