"""An agent that forgot a deletion is told of it again; one that takes its time is not pestered."""

import asyncio
import json
from dataclasses import dataclass

import harness
import pytest
from clients import Stream, agent, bundle_data, source

from maestropy.server.decide import patience
from maestropy.store.dsn import Dsn
from maestropy.wire import event

SPEC = """INSERT INTO resources
          (id, created_at, updated_at, deleted_at, name, source, consumer_name, version, type, payload)
          SELECT id, now(), now(), now() - $3 * interval '1 second', id, 'source-a', $2, 1, '', $4::jsonb
          FROM unnest($1::text[]) AS n (id)"""
REMINDER = "INSERT INTO maestropy_reminders VALUES ($1, now() + $2 * interval '1 second')"
EVENT = """INSERT INTO events (id, created_at, updated_at, source, source_id, event_type, reconciled_date)
           VALUES ('event-' || $1, now(), now(), 'Resources', $1, 'Delete', $2::timestamptz)"""
TIME_PASSES = [
    "UPDATE resources SET deleted_at = deleted_at - interval '1 hour' WHERE deleted_at IS NOT NULL",
    "UPDATE maestropy_reminders SET next_at = next_at - interval '1 hour'",
]


async def add_deleting(server: harness.InProcess, ids: list[str], *, seconds: float, consumer: str = "c1") -> None:
    """Add bundles whose deletion was asked for so long ago, and sent."""
    spec = {"id": "e", "source": "source-a", "type": event.SPEC_CREATE, "specversion": "1.0", "metadata": {"name": "w"}}
    document = json.dumps({**spec, "data": json.loads(bundle_data())})
    await server.sql(SPEC, ids, consumer, seconds, document)


async def time_passes(server: harness.InProcess) -> None:
    for statement in TIME_PASSES:
        await server.sql(statement)


async def deletion_of(got: Stream, name: str) -> None:
    told = await got.spec_of(name)
    assert (told.type, event.DELETION_TIMESTAMP in told.extensions) == (event.SPEC_DELETE, True)


async def reminded(server: harness.InProcess) -> set[str]:
    """Let the server remind, and return the bundles it did it for."""
    before = len(server.lines("Deletion is sent again"))
    await server.server.sweep.remind()
    return {line["resourceID"] for line in server.lines("Deletion is sent again")[before:]}


def test_a_forgotten_deletion_is_sent_again_less_and_less_often(database: Dsn) -> None:
    async def scenario() -> None:
        async with (
            harness.in_process(database) as server,
            source(server.sources) as a,
            agent(server.agents, "c1") as one,
            one.subscribe() as got,
        ):
            await server.add_consumer("c1")
            await a.create("w1", "c1")
            await got.spec_of("w1")
            await a.delete("w1", "c1")
            await deletion_of(got, "w1")
            await harness.until(server.has_nothing_pending, what="the mark")
            for _ in range(3):
                await time_passes(server)
                assert await reminded(server) == {"w1"}
                await deletion_of(got, "w1")
                await harness.until(server.has_nothing_pending, what="the mark")
                assert await reminded(server) == set()

            await one.tell("w1", 1, "Deleted")
            assert await server.bundle("w1") is None
            assert await server.value("SELECT count(*) FROM maestropy_reminders") == 0

    harness.play(scenario())


def test_an_agent_that_says_nothing_is_told_in_other_words(database: Dsn) -> None:
    """What an agent says about the other id concerns nobody, and no event counts as lost."""

    async def scenario() -> None:
        async with (
            harness.in_process(database, sweep_interval="1h") as server,
            agent(server.agents, "c1") as one,
            one.subscribe() as got,
        ):
            await server.add_consumer("c1")
            await add_deleting(server, ["w1"], seconds=41)
            await server.sql("UPDATE resources SET updated_at = deleted_at")
            assert await reminded(server) == {"w1"}
            told = await got.spec_of("w1-forgotten")
            assert (told.type, event.DELETION_TIMESTAMP in told.extensions) == (event.SPEC_DELETE, True)
            assert json.loads(told.text(event.METADATA))["name"] == "w1"
            await harness.until(server.has_nothing_pending, what="the mark")
            await one.tell("w1-forgotten", 1, "Deleted")
            assert await server.bundle("w1") is not None

            await server.sql("UPDATE resources SET deleted_at = deleted_at - interval '41 seconds'")
            await server.sql("UPDATE maestropy_reminders SET next_at = now()")
            assert await reminded(server) == {"w1"}
            await deletion_of(got, "w1")
            await one.tell("w1", 1, "Deleted")
            assert await server.bundle("w1") is None

    harness.play(scenario())


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """A deletion as the database knows it."""

    seconds: float = 60
    """How long ago it was asked for."""
    consumer: str = "c1"
    reminder_in: float | None = None
    event: str = "none"


@pytest.mark.parametrize(
    ("deletion", "is_repeated"),
    [
        pytest.param(Deletion(), True, id="old"),
        pytest.param(Deletion(seconds=1), False, id="fresh"),
        pytest.param(Deletion(seconds=-600), False, id="marked-by-a-clock-that-is-ahead"),
        pytest.param(Deletion(consumer="elsewhere"), False, id="its-agent-is-not-connected-here"),
        pytest.param(Deletion(reminder_in=-1), True, id="the-next-reminder-is-due"),
        pytest.param(Deletion(reminder_in=30), False, id="the-next-reminder-is-not-due"),
        pytest.param(Deletion(event="pending"), False, id="not-even-sent-once"),
        pytest.param(Deletion(event="done"), True, id="sent-and-still-on-record"),
        pytest.param(Deletion(seconds=86_400 * 30), True, id="older-than-stale-events-get"),
    ],
)
def test_what_is_repeated(database: Dsn, deletion: Deletion, is_repeated: bool) -> None:
    async def scenario() -> None:
        async with (
            harness.in_process(database, sweep_interval="1h", event_retention="1h") as server,
            agent(server.agents, "c1") as one,
            one.subscribe() as got,
        ):
            await server.add_consumer("c1")
            await server.add_consumer("elsewhere")
            await add_deleting(server, ["w1"], seconds=deletion.seconds, consumer=deletion.consumer)
            if deletion.reminder_in is not None:
                await server.sql(REMINDER, "w1", deletion.reminder_in)
            if deletion.event != "none":
                await server.sql(EVENT, "w1", server.world.now() if deletion.event == "done" else None)
            assert await reminded(server) == ({"w1"} if is_repeated else set())
            if is_repeated:
                await deletion_of(got, "w1")

    harness.play(scenario())


def test_two_instances_do_not_both_remind(database: Dsn) -> None:
    async def scenario() -> None:
        async with (
            harness.in_process(database, client_id="i1") as first,
            harness.in_process(database, client_id="i2") as second,
            agent(first.agents, "c1") as one,
            agent(second.agents, "c1") as other,
            one.subscribe() as got,
            other.subscribe() as got_too,
        ):
            await first.add_consumer("c1")
            await add_deleting(first, ["w1", "w2"], seconds=60)
            found = [*await asyncio.gather(reminded(first), reminded(second)), await reminded(second)]
            assert sorted(name for each in found for name in each) == ["w1", "w2"]
            for stream in (got, got_too):
                await deletion_of(stream, "w1")
                await deletion_of(stream, "w2")

    harness.play(scenario())


def test_a_crowd_of_stuck_deletions_is_worked_off_in_turns(database: Dsn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits behind what was just repeated, and nothing is repeated twice before all had their turn."""
    monkeypatch.setattr(patience, "AT_ONCE", 40)

    async def scenario() -> None:
        async with (
            harness.in_process(database, sweep_interval="1h") as server,
            agent(server.agents, "c1") as one,
            one.subscribe() as got,
        ):
            await server.add_consumer("c1")
            await add_deleting(server, [f"stuck{number}" for number in range(100)], seconds=86_400)
            await add_deleting(server, ["new"], seconds=6)
            turns = [await reminded(server) for _ in range(4)]
            assert [len(turn) for turn in turns] == [40, 40, 21, 0]
            assert len(set().union(*turns)) == 101
            await deletion_of(got, "new")
            await harness.until(server.has_nothing_pending, what="the marks")

    harness.play(scenario())


def test_a_bundle_made_anew_is_not_judged_by_its_predecessor(database: Dsn) -> None:
    async def scenario() -> None:
        async with (
            harness.in_process(database) as server,
            source(server.sources) as a,
            agent(server.agents, "c1") as one,
            one.subscribe() as got,
        ):
            await server.add_consumer("c1")
            await add_deleting(server, ["w1"], seconds=86_400)
            assert await reminded(server) == {"w1"}
            await deletion_of(got, "w1")
            await one.tell("w1", 1, "Deleted")
            await a.create("w1", "c1")
            await got.spec_of("w1", version=1)
            await a.delete("w1", "c1")
            await deletion_of(got, "w1")
            await harness.until(server.has_nothing_pending, what="the mark")
            await server.sql("UPDATE resources SET deleted_at = now() - interval '6 seconds'")
            assert await reminded(server) == {"w1"}

    harness.play(scenario())
