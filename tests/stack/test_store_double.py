"""One suite for two databases: PostgreSQL, and the double that the simulation plays with.

The same random statements must give the same answers and leave the same rows; the same scenarios with two connections
must wait, skip, fail and be heard alike. What drifts apart here would make the simulation prove the wrong thing.
"""

import asyncio
import contextlib
import contextvars
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from maestropy.store import (
    actions,
    consumers,
    data_safety,
    delete_recovery,
    errors,
    events,
    instances,
    resources,
    rows,
    statuses,
)
from maestropy.store.dsn import Dsn
from maestropy.store.history import history_entries
from maestropy.store.postgres import locks, pool, servers
from maestropy.store.postgres.notifications import ListenerCallbacks, listen
from maestropy.wire import resync
from maestropy.wire.events import stored_event
from tests import waiting
from tests.simulation.memory_data_safety import DATABASE_ID
from tests.simulation.memory_postgres import Engine, Pool

DAY = datetime(2026, 8, 20, tzinfo=UTC)
IDS = ("b0", "b1", "b2", "b3")
CONSUMERS = ("c0", "c1")
PATIENCE_SECONDS = 60
SEEDS = range(5)
STATEMENTS = 60


@dataclass(kw_only=True)
class Base:
    """A database to play with."""

    database: pool.Database
    dump: Callable[[], Awaitable[dict[str, list[Any]]]]
    hear: Callable[[Callable[[str], None]], contextlib.AbstractAsyncContextManager[None]]


@contextlib.asynccontextmanager
async def memory() -> AsyncIterator[Base]:
    engine = Engine()

    async def dump() -> dict[str, list[Any]]:
        return {
            table: plain([{c: row[c] for c in columns} for row in engine.tables[table].values()])
            for table, columns in COLUMNS.items()
        }

    @contextlib.asynccontextmanager
    async def hear(heard: Callable[[str], None]) -> AsyncIterator[None]:
        engine.listening["test"] = ("test", lambda _, payload: heard(payload))
        yield

    yield Base(database=pool.Database(Pool(engine, "test")), dump=dump, hear=hear)


@contextlib.asynccontextmanager
async def postgres_at(address: Dsn) -> AsyncIterator[Base]:
    database = await pool.connect(address, max_connections=4)
    async with database.connection() as connection:
        await connection.execute("UPDATE maestropy_database SET id = $1", DATABASE_ID)

    async def dump() -> dict[str, list[Any]]:
        async with database.connection() as connection:
            return {
                table: plain([dict(row) for row in await connection.fetch(f"SELECT {', '.join(columns)} FROM {table}")])
                for table, columns in COLUMNS.items()
            }

    @contextlib.asynccontextmanager
    async def hear(heard: Callable[[str], None]) -> AsyncIterator[None]:
        ready = asyncio.Event()
        listening = asyncio.ensure_future(
            listen(
                servers.Connector(address),
                channels={"events": heard, "status_events": heard},
                callbacks=ListenerCallbacks(on_gap=ready.set, on_alive=lambda: None, on_loss=lambda _: None),
                delays=lambda: iter(()),
            )
        )
        await ready.wait()
        try:
            yield
        finally:
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening

    try:
        yield Base(database=database, dump=dump, hear=hear)
    finally:
        await database.close()


COLUMNS = {
    "resources": (
        *("id", "created_at", "updated_at", "deleted_at", "source", "consumer_name", "version", "status"),
        *("delete_retry_at", "delete_retry_delay"),
    ),
    # Without their ids: some are made by the database.
    "events": ("created_at", "source_id", "event_type", "reconciled_date"),
    "status_events": ("id", "created_at", "resource_id", "resource_source", "status", "status_event_type"),
    "event_instances": ("event_id", "instance_id"),
    "server_instances": ("id", "last_heartbeat", "ready"),
    "delete_recovery_consumers": ("consumer_name", "next_at"),
    "delete_recovery_schedule": ("next_at", "cooldown_pending"),
    "maestropy_pauses": ("consumer_name", "paused_at", "paused_by", "reason"),
    "maestropy_agents": ("consumer_name", "seen_at"),
    "maestropy_history": (
        *("at", "kind", "subject_id", "consumer_name", "source", "version"),
        *("actor", "address", "operation_id", "result", "detail"),
    ),
}


def plain(value: Any) -> Any:
    """Return a value in a form that can be compared: JSON read, collections without an order sorted."""
    match value:
        case bytes() | str() if value[:1] in (b"{", "{"):
            return plain(json.loads(value))
        case dict():
            return {key: plain(each) for key, each in value.items()}
        case set() | frozenset():
            return sorted(value)
        case list() | tuple():
            return sorted((plain(each) for each in value), key=repr)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return plain(asdict(value))
    return value


def parts(text: str) -> stored_event.StoredParts:
    envelope = b'{"id":"e","source":"s","type":"t","specversion":"1.0"}'
    return stored_event.StoredParts(
        envelope=envelope, metadata=b'{"name":"work"}', data=json.dumps({"manifests": [{"a": text}]}).encode()
    )


def spec(dice: random.Random, number: int, *, id_: str) -> rows.NewSpec:
    consumer = dice.choice((*CONSUMERS, *CONSUMERS, "unknown"))
    return rows.NewSpec(
        id=id_,
        source="s",
        consumer=consumer,
        version=number,
        parts=parts(str(number)),
        event_id=f"e{number}-{id_}",
        created_by=dice.choice(("", "request-1", "request-2")),
        history=record(number),
    )


def record(number: int) -> rows.Record | None:
    """Return what two of three changes record."""
    if number % 3 == 0:
        return None
    requester = rows.Requester(user=f"user-{number}", address="10.0.0.1")
    return rows.Record(requester, f"operation-{number}", json.dumps({"number": number}))


def status(number: int, id_: str) -> rows.NewStatus:
    document = {"sequenceid": str(number), "statushash": f"h{number}", "resourceversion": str(number), "data": {}}
    document["clustername"] = CONSUMERS[number % 2]
    return rows.NewStatus(
        id=id_, source="s", document=json.dumps(document), event_id=f"s{number}-{id_}", history=record(number)
    )


Statement = Callable[[pool.Connection, random.Random, int], Awaitable[Any]]


def at(number: int) -> datetime:
    return DAY + timedelta(seconds=number)


def some(dice: random.Random, chosen: Iterable[str]) -> list[str]:
    known = sorted(chosen)
    return dice.sample(known, k=min(len(known), dice.randint(1, 3)))


async def write_statuses(connection: pool.Connection, dice: random.Random, number: int) -> Any:
    held = await statuses.read_for_status_update(connection, some(dice, IDS))
    await statuses.write_statuses(connection, [status(number, each) for each in held], now=at(number))
    return held


async def write_updates(connection: pool.Connection, dice: random.Random, number: int) -> Any:
    held = await resources.read_for_change(connection, some(dice, IDS))
    fresh = [spec(random.Random(1), number, id_=each) for each in held]
    await resources.write_updates(connection, fresh, now=at(number))
    return held


async def mark_deleting(connection: pool.Connection, dice: random.Random, number: int) -> Any:
    held = await resources.read_for_change(connection, some(dice, IDS))
    await resources.mark_deleting(
        connection,
        list(held),
        event_ids=[f"d{number}-{each}" for each in held],
        now=at(number),
        records=[record(number) for _ in held],
    )
    entry = rows.HistoryEntry(kind="agent.connected", at=at(number), consumer="c1", result="", detail="{}")
    await history_entries.record(connection, [entry])
    return held, sorted((await statuses.read_status_data(connection, list(held))).items())


async def finish(connection: pool.Connection, dice: random.Random, number: int) -> Any:
    held = await statuses.read_for_status_update(connection, some(dice, IDS))
    await statuses.remove(connection, [status(number, each) for each in held], now=at(number))


async def redeliver(connection: pool.Connection, dice: random.Random, number: int) -> Any:
    held = await statuses.read_for_status_update(connection, some(dice, IDS))
    await statuses.redeliver(connection, list(held), event_ids=[f"r{number}-{each}" for each in held], now=at(number))


async def recover(connection: pool.Connection, dice: random.Random, number: int) -> Any:
    """A round of delete recovery, or the start of its pause."""
    claimed = await delete_recovery.claim_round(connection, now=at(number))
    if claimed:
        await delete_recovery.start_pause(connection, until=at(number + dice.randint(0, 3)))
    if claimed is not False:
        return claimed
    unscheduled = await delete_recovery.lock_unscheduled(connection, limit=dice.randint(1, 4))
    retries = {each.id: rows.Retry(at=at(number + dice.randint(-9, 9)), delay_ns=number) for each in unscheduled}
    await delete_recovery.set_retries(connection, retries)
    turns = {each.consumer: at(number + dice.randint(-5, 5)) for each in sorted(unscheduled, key=lambda each: each.id)}
    await delete_recovery.queue_consumers(connection, turns)
    due = await delete_recovery.due_consumers(connection, now=at(number), limit=dice.randint(1, 2))
    locked = await delete_recovery.lock_due(connection, due, now=at(number), per_consumer=dice.randint(1, 2))
    event_ids = {each.id: f"m{number}-{each.id}" for each in locked}
    queued = await delete_recovery.announce_again(connection, event_ids, now=at(number))
    retries = {each.id: rows.Retry(at=at(number + 7), delay_ns=2 * number) for each in locked}
    await delete_recovery.set_retries(connection, retries)
    await delete_recovery.advance_consumers(connection, due, now=at(number))
    await delete_recovery.owe_pause(connection)
    return sorted(unscheduled, key=lambda each: each.id), due, sorted(locked, key=lambda each: each.id), queued


async def tell(connection: pool.Connection, dice: random.Random, number: int) -> Any:
    missed = await statuses.missed_status_events(connection, instance="i0", since=at(dice.randint(0, number)), limit=3)
    await statuses.record_broadcasts(connection, missed, instance=dice.choice(("i0", "i1")))
    found = [await read(connection, missed) for read in (statuses.read_status_events, statuses.read_final_statuses)]
    return missed, found


async def reconcile(connection: pool.Connection, dice: random.Random, number: int) -> Any:
    wanted = await events.pending_of_consumers(connection, some(dice, CONSUMERS))
    pending = await events.pending_events(connection, CONSUMERS, per_consumer=2, limit=3)
    everywhere = await events.pending_events(connection, None, per_consumer=1, limit=9)
    await events.reconcile(connection, [each.id for each in pending], now=at(number))
    return (
        {name: len(found) for name, found in wanted.items()},
        [(p.resource_id, p.event_type, p.is_repeated) for p in pending],
        len(everywhere),
    )


async def live(connection: pool.Connection, dice: random.Random, number: int) -> Any:
    name = dice.choice(("i0", "i1"))
    await instances.write_heartbeat(connection, name, now=at(number), ready=dice.random() < 0.7)
    if dice.random() < 0.5:
        await instances.register_own(connection, name, now=at(number))
    if dice.random() < 0.3:
        await instances.set_ready(connection, name, ready=dice.random() < 0.5, now=at(number))
    changed = await instances.update_readiness(connection, alive_since=at(number - 8), now=at(number))
    return changed, await instances.ready(connection), await instances.is_ready(connection, name)


async def purge(connection: pool.Connection, dice: random.Random, number: int) -> Any:
    return (
        await events.retire_orphans(connection, now=at(number), limit=5),
        await events.purge_events(connection, done_before=at(number - 20), limit=100),
        await events.purge_status_events(
            connection,
            broadcast_before=at(number - 10),
            removed_before=at(number - 20),
            created_before=at(number - 40),
            limit=100,
        ),
        await events.retire_stale_deletes(connection, deleted_before=at(number - 15), now=at(number)),
        len(await events.republish_undelivered(connection, unchanged_since=at(number - 15), now=at(number))),
    )


async def read(connection: pool.Connection, dice: random.Random, number: int) -> Any:
    return (
        await resources.read_specs(connection, IDS),
        await resources.versions_of_consumers(connection, CONSUMERS, with_event_ids=True),
        await resources.versions_of_consumers(connection, CONSUMERS, with_event_ids=False),
        await resources.unconfirmed_of_consumer(connection, "c1"),
        await resources.changed_since(connection, CONSUMERS, at(number - 5)),
        await resources.status_hashes_of_consumers(connection, CONSUMERS),
        await resources.status_hashes_of_resources(connection, some(dice, IDS), consumer="c1"),
        await resources.status_hashes_of_source(connection, "s"),
        await resources.existing_consumers(connection, ["c1", "unknown"]),
        await statuses.read_statuses(connection, IDS),
        await statuses.removed_versions(connection, CONSUMERS[:1], ids=IDS[:1], since=at(number - 5)),
        await statuses.removed_versions(connection, CONSUMERS, ids=IDS[:2]),
        await statuses.last_sequence_ids(connection, IDS[:3]),
        await events.oldest_pending_age(connection, now=at(number)),
        await statuses.oldest_missed_age(connection, "i0", since=at(number - 30), now=at(number)),
        await consumers.count_with_works(connection, connected=["c1", "unknown"]),
        await consumers.names(connection),
    )


async def insert(connection: pool.Connection, dice: random.Random, number: int) -> Any:
    return await resources.insert_new(
        connection, [spec(dice, number, id_=each) for each in some(dice, IDS)], now=at(number)
    )


async def act(connection: pool.Connection, dice: random.Random, number: int) -> Any:
    """Pause and resume consumers, queue their works again, and note their agents."""
    name, work = dice.choice(CONSUMERS), dice.choice((None, *IDS))
    changed = (
        await actions.pause(connection, rows.Pause(name, at(number), "someone", "why"))
        if dice.random() < 0.5
        else await actions.resume(connection, name)
    )
    await actions.note_seen(connection, [name, "unknown"], now=at(number * 20))
    connected = rows.HistoryEntry(kind="agent.connected", at=at(number * 20), consumer=name, detail='{"instance":"i"}')
    await history_entries.record(connection, [connected] if dice.random() < 0.5 else [])
    lost = await history_entries.end_lost_connections(
        connection,
        after=dice.choice((None, at(number * 20 - 300))),
        seen_before=at(number * 20 - 100),
        now=at(number * 20),
    )
    return (
        changed,
        sorted(lost),
        await actions.paused_among(connection, CONSUMERS),
        await actions.count_pauses(connection, now=at(number)),
        await actions.queue_works(connection, dice.choice(CONSUMERS), work_id=work, now=at(number)),
    )


async def hold(connection: pool.Connection, dice: random.Random, number: int) -> Any:
    """Store and remove what agents hold."""
    name, count = dice.choice(CONSUMERS), dice.randint(0, 3)
    if dice.random() < 0.7:
        pending = resync.PendingEvictions(count=dice.randint(0, 2), deadline=at(number).isoformat())
        reported = resync.ReportedHold(
            id=f"hold-{dice.randint(0, 1)}",
            reason="database",
            message="m",
            database="d",
            count=count,
            works=IDS[:count],
            pending=dice.choice((None, pending)),
        )
        await data_safety.write_hold(connection, name, reported, now=at(number))
    else:
        await data_safety.remove_hold(connection, name)
    return await data_safety.held_consumers(connection, CONSUMERS), await data_safety.held(connection)


ALL: tuple[Statement, ...] = (
    act,
    hold,
    insert,
    insert,
    write_updates,
    mark_deleting,
    write_statuses,
    finish,
    redeliver,
    recover,
    recover,
    tell,
    reconcile,
    live,
    purge,
    read,
)


async def prepare(base: Base) -> None:
    for name in CONSUMERS:
        row = consumers.ConsumerRow(id=name, name=name, labels=None, created_at=DAY, updated_at=DAY)
        await consumers.create(base.database, row)
    async with base.database.connection() as connection:
        for name in ("i0", "i1"):
            await instances.write_heartbeat(connection, name, now=DAY, ready=True)
        await delete_recovery.start_pause(connection, until=DAY)


async def history(base: Base, seed: int) -> list[Any]:
    """Carry out the statements of a seed; returns every answer and every state."""
    dice, found = random.Random(seed), []
    for number in range(1, STATEMENTS):
        statement = dice.choice(ALL)
        async with base.database.transaction() as connection:
            answer = await statement(connection, dice, number)
        found.append((number, statement.__name__, plain(answer), await base.dump()))
    return found


@pytest.mark.parametrize("seed", SEEDS)
async def test_memory_store_matches_postgresql(database: Dsn, seed: int) -> None:
    async with memory() as double, postgres_at(database) as real:
        for base in (double, real):
            await prepare(base)
        for played, true in zip(await history(double, seed), await history(real, seed), strict=True):
            assert played == true


Scenario = Callable[[Base], Awaitable[None]]


async def nobody_sees_what_is_not_committed(base: Base) -> None:
    heard: list[str] = []
    async with base.hear(heard.append):
        async with base.database.transaction() as one:
            await resources.insert_new(one, [new("b0")], now=DAY)
            assert [row.id for row in await resources.read_specs(one, ["b0"])] == ["b0"]
            assert await apart(base, lambda other: resources.read_specs(other, ["b0"])) == []
            assert heard == []
        assert [row.id for row in await apart(base, lambda other: resources.read_specs(other, ["b0"]))] == ["b0"]
        await waiting.until(lambda: heard == ["event-b0"])


async def what_fails_is_undone_and_not_heard(base: Base) -> None:
    heard: list[str] = []
    async with base.hear(heard.append):
        with contextlib.suppress(ZeroDivisionError):
            async with base.database.transaction() as one:
                await resources.insert_new(one, [new("b0")], now=DAY)
                raise ZeroDivisionError
        async with base.database.transaction() as one:
            await resources.insert_new(one, [new("b1")], now=DAY)
        await waiting.until(lambda: heard == ["event-b1"])
        assert [row["id"] for row in (await base.dump())["resources"]] == ["b1"]


async def a_changer_waits_for_the_row_and_sees_it_new(base: Base) -> None:
    await put(base, "b0")
    async with base.database.transaction() as one:
        await resources.read_for_change(one, ["b0"])
        await resources.write_updates(one, [new("b0", version=2)], now=DAY)
        blocked = asyncio.ensure_future(apart(base, lambda other: resources.read_for_change(other, ["b0"])))
        await stays(blocked)
    assert (await blocked)["b0"].version == 2


async def a_creation_waits_for_another_of_its_id(base: Base) -> None:
    for is_kept in (False, True):
        blocked = None
        with contextlib.suppress(ZeroDivisionError):
            async with base.database.transaction() as one:
                assert await resources.insert_new(one, [new("b0")], now=DAY) == {"b0"}
                blocked = asyncio.ensure_future(
                    apart(base, lambda other: resources.insert_new(other, [new("b0", event="other")], now=DAY))
                )
                await stays(blocked)
                if not is_kept:
                    raise ZeroDivisionError
        assert blocked is not None
        assert await blocked == (set() if is_kept else {"b0"})
        if not is_kept:
            async with base.database.transaction() as one:
                await statuses.remove(one, [status(1, "b0")], now=DAY)


async def what_somebody_claimed_is_skipped(base: Base) -> None:
    await put(base, "b0")
    await put(base, "b1")
    async with base.database.transaction() as one:
        assert await events.claim(one, ["event-b0"]) == {"event-b0"}
        assert await apart(base, lambda other: events.claim(other, ["event-b0", "event-b1"])) == {"event-b1"}
        await apart(base, lambda other: events.reconcile(other, ["event-b0", "event-b1"], now=DAY))
        seen = await elsewhere(base.dump())
        assert [row["reconciled_date"] for row in seen["events"]].count(None) == 1
    assert await apart(base, lambda other: events.claim(other, ["event-b0"])) == {"event-b0"}


async def one_at_a_time_holds_an_advisory_lock(base: Base) -> None:
    async with base.database.transaction() as one:
        assert await instances.try_lock(one, locks.LIVENESS_CHECK)
        assert await instances.try_lock(one, locks.LIVENESS_CHECK), "whoever has it may ask again"
        assert not await apart(base, lambda other: instances.try_lock(other, locks.LIVENESS_CHECK))
        await resources.lock(one, ["b0"], kind=locks.RESOURCES)
        blocked = asyncio.ensure_future(apart(base, lambda other: resources.lock(other, ["b0"], kind=locks.RESOURCES)))
        await stays(blocked)
    await blocked


async def who_is_impatient_gives_up(base: Base) -> None:
    await put(base, "b0")
    async with base.database.transaction() as one:
        await resources.read_for_change(one, ["b0"])

        async def try_it() -> None:
            async with base.database.transaction(waits_for_locks=False) as other:
                await resources.read_for_change(other, ["b0"])

        with pytest.raises(errors.DatabaseUnavailable):
            await elsewhere(try_it())


async def of_two_who_wait_for_each_other_not_both_succeed(base: Base) -> None:
    await put(base, "b0")
    await put(base, "b1")
    met = asyncio.Barrier(2)

    async def change(first: str, second: str) -> None:
        async with base.database.transaction() as connection:
            await resources.read_for_change(connection, [first])
            await met.wait()
            await resources.read_for_change(connection, [second])

    outcomes = await asyncio.gather(change("b0", "b1"), change("b1", "b0"), return_exceptions=True)
    failed = [outcome for outcome in outcomes if outcome is not None]
    # PostgreSQL finds it out after a while, in which the other may have lost its patience too.
    assert failed
    assert all(isinstance(each, errors.DatabaseUnavailable) for each in failed)


SCENARIOS: tuple[Scenario, ...] = (
    nobody_sees_what_is_not_committed,
    what_fails_is_undone_and_not_heard,
    a_changer_waits_for_the_row_and_sees_it_new,
    a_creation_waits_for_another_of_its_id,
    what_somebody_claimed_is_skipped,
    one_at_a_time_holds_an_advisory_lock,
    who_is_impatient_gives_up,
    of_two_who_wait_for_each_other_not_both_succeed,
)


@pytest.fixture(params=["double", "postgres"])
def opened(request: pytest.FixtureRequest) -> contextlib.AbstractAsyncContextManager[Base]:
    return postgres_at(request.getfixturevalue("database")) if request.param == "postgres" else memory()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_both_promise_the_same(opened: contextlib.AbstractAsyncContextManager[Base], scenario: Scenario) -> None:
    async with opened as base, asyncio.timeout(PATIENCE_SECONDS):
        await prepare(base)
        await scenario(base)


def new(id_: str, *, version: int = 1, event: str = "event") -> rows.NewSpec:
    return rows.NewSpec(
        id=id_,
        source="s",
        consumer="c0",
        version=version,
        parts=parts("x"),
        event_id=f"{event}-{id_}{'' if version == 1 else version}",
    )


async def put(base: Base, id_: str) -> None:
    async with base.database.connection() as connection:
        await resources.insert_new(connection, [new(id_)], now=DAY)


async def apart(base: Base, do: Callable[[pool.Connection], Awaitable[Any]]) -> Any:
    """Do something in a transaction of another task, which has a connection of its own."""

    async def alone() -> Any:
        async with base.database.transaction() as connection:
            return await do(connection)

    return await elsewhere(alone())


async def elsewhere(work: Any) -> Any:
    # A task inherits what its maker holds; the store would refuse it a connection.
    return await asyncio.get_running_loop().create_task(work, context=contextvars.Context())


async def stays(blocked: "asyncio.Future[Any]") -> None:
    """Make sure that somebody waits, as far as that can be seen."""
    done, _ = await asyncio.wait([blocked], timeout=0.2)
    assert not done
