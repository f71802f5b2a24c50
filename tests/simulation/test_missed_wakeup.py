"""Two agents of one consumer at two instances: a wake-up that only one instance heard reaches both agents."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry
from simulation.actors import _SETTINGS, Listener
from simulation.memory_postgres import Engine, Pool

from maestropy.aio.tasks import Crew
from maestropy.server.metrics import Metrics
from maestropy.server.stages import Stages
from maestropy.server.streams import Subscriber
from maestropy.server.world import World
from maestropy.store import pool, resources, rows, statuses
from maestropy.wire import envelope, event, record

PARTS = record.Parts(envelope=b'{"id":"e","source":"s","type":"t","specversion":"1.0"}', metadata=b"", data=b"{}")
PATIENCE_SECONDS = 20


def spec(version: int) -> rows.NewSpec:
    return rows.NewSpec(id="b", source="s", consumer="c", version=version, parts=PARTS, event_id=f"event-{version}")


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A server with an agent of the consumer."""

    stages: Stages
    agent: Subscriber


@asynccontextmanager
async def two_instances(engine: Engine) -> AsyncIterator[tuple[Instance, Instance]]:
    """Start two instances of which the first hears notifications, and the other does not."""
    engine.tables["consumers"]["c"] = {"id": "c", "name": "c"}
    instances, crews = [], []
    async with asyncio.timeout(PATIENCE_SECONDS):
        for name in ("one", "other"):
            world = World(
                database=pool.Database(Pool(engine, name)),
                journal=Listener(None),
                metrics=Metrics(CollectorRegistry()),
                instance_id=name,
            )
            stages, crew = Stages(_SETTINGS, world, delays=lambda: iter(())), Crew()
            stages.start(crew)
            agent = stages.agents.open("c", subscription_id=name, let_go=lambda: None)
            stages.hear_again()
            instances.append(Instance(stages=stages, agent=agent))
            crews.append(crew)
        await settle()
        channels = instances[0].stages.channels
        engine.listening["one"] = ("one", lambda channel, payload: channels[channel](payload))
        yield instances[0], instances[1]
        for crew in crews:
            await crew.stop()


async def create(engine: Engine) -> None:
    async with pool.Database(Pool(engine, "source")).connection() as connection:
        await resources.insert_new(connection, [spec(1)], now=datetime.now(UTC))


async def delete(engine: Engine) -> None:
    """Ask for the deletion, and let the agent of the first instance confirm it."""
    document = '{"id":"e","source":"c-agent","type":"t","specversion":"1.0","clustername":"c","resourceversion":"1"}'
    async with pool.Database(Pool(engine, "source")).connection() as connection:
        await resources.mark_deleting(connection, ["b"], event_ids=["deletion"], now=datetime.now(UTC))
        end = rows.NewStatus(id="b", source="s", document=document, event_id="end")
        await statuses.finish(connection, [end], now=datetime.now(UTC))


def test_what_another_instance_has_delivered_is_found_after_a_gap() -> None:
    async def scenario() -> None:
        engine = Engine()
        async with two_instances(engine) as (one, other):
            await create(engine)
            assert versions(await one.agent.box.take()) == [1]
            await settle()
            assert engine.tables["events"]["event-1"]["reconciled_date"] is not None

            other.stages.look_again()
            await settle()
            assert len(other.agent.box) == 0, "the sweep looks for what is pending, and this is not"
            other.stages.hear_again()
            assert versions(await other.agent.box.take()) == [1]

    asyncio.run(scenario())


def test_a_bundle_that_came_to_its_end_within_a_gap_is_dropped_by_the_other_agent() -> None:
    async def scenario() -> None:
        engine = Engine()
        async with two_instances(engine) as (_, other):
            await create(engine)
            await delete(engine)
            assert engine.tables["resources"] == {}
            other.stages.hear_again()
            assert deletions(await other.agent.box.take()) == ["b"]

    asyncio.run(scenario())


def test_a_bundle_that_ended_before_its_deletion_was_read_is_dropped_by_the_other_agent() -> None:
    async def scenario() -> None:
        engine = Engine()
        async with two_instances(engine) as (_, other):
            await create(engine)
            await delete(engine)
            other.stages.channels["events"]("deletion")
            assert deletions(await other.agent.box.take()) == ["b"]

    asyncio.run(scenario())


def test_who_has_the_same_id_by_now_is_not_dropped() -> None:
    async def scenario() -> None:
        engine = Engine()
        async with two_instances(engine) as (_, other):
            await create(engine)
            await delete(engine)
            del engine.tables["events"]["event-1"]
            await create(engine)
            other.stages.hear_again()
            assert versions(await other.agent.box.take()) == [1]
            await settle()
            assert len(other.agent.box) == 0

    asyncio.run(scenario())


async def settle() -> None:
    """Let everybody do what can be done now: nothing here takes any time."""
    for _ in range(500):
        await asyncio.sleep(0)


def versions(messages: "list[bytes]") -> list[int]:
    return [envelope.decode_event(message).integer(event.RESOURCE_VERSION) for message in messages]


def deletions(messages: "list[bytes]") -> list[str]:
    found = [envelope.decode_event(message) for message in messages]
    return [each.text(event.RESOURCE_ID) for each in found if each.timestamp(event.DELETION_TIMESTAMP) is not None]
