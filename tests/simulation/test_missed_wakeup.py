"""Two agents of one consumer at two instances: a wake-up that only one instance got reaches both agents."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry

from maestropy.aio.tasks import TaskOwner
from maestropy.server.brokers.subscribers import Subscriber
from maestropy.server.context import Context
from maestropy.server.runtime.wiring import Controllers
from maestropy.server.telemetry.metrics import Metrics
from maestropy.store import resources, rows, statuses
from maestropy.store.postgres import pool
from maestropy.wire.events import event, grpc_binding, stored_event
from tests.simulation.actors import _SETTINGS, Listener
from tests.simulation.memory_postgres import Engine, Pool

PARTS = stored_event.StoredParts(
    envelope=b'{"id":"e","source":"s","type":"t","specversion":"1.0"}', metadata=b"", data=b"{}"
)
PATIENCE_SECONDS = 20


def spec(version: int) -> rows.NewSpec:
    return rows.NewSpec(id="b", source="s", consumer="c", version=version, parts=PARTS, event_id=f"event-{version}")


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A server with an agent of the consumer."""

    controllers: Controllers
    agent: Subscriber


@asynccontextmanager
async def two_instances(engine: Engine) -> AsyncIterator[tuple[Instance, Instance]]:
    """Start two instances; only the first gets notifications."""
    engine.tables["consumers"]["c"] = {"id": "c", "name": "c"}
    instances, task_owners = [], []
    async with asyncio.timeout(PATIENCE_SECONDS):
        for name in ("one", "other"):
            context = Context(
                database=pool.Database(Pool(engine, name)),
                journal=Listener(None, []),
                metrics=Metrics(CollectorRegistry()),
                instance_id=name,
            )
            controllers, task_owner = Controllers(_SETTINGS, context, delays=lambda: iter(())), TaskOwner()
            controllers.start(task_owner)
            agent = controllers.agent_subscribers.open("c", subscription_id=name, disconnect=lambda: None)
            controllers.on_notification_gap()
            instances.append(Instance(controllers=controllers, agent=agent))
            task_owners.append(task_owner)
        await settle()
        channels = instances[0].controllers.channels
        engine.listening["one"] = ("one", lambda channel, payload: channels[channel](payload))
        yield instances[0], instances[1]
        for task_owner in task_owners:
            await task_owner.stop()


async def create(engine: Engine) -> None:
    async with pool.Database(Pool(engine, "source")).connection() as connection:
        await resources.insert_new(connection, [spec(1)], now=datetime.now(UTC))


async def delete(engine: Engine) -> None:
    """Request the deletion, and let the agent of the first instance confirm it."""
    document = '{"id":"e","source":"c-agent","type":"t","specversion":"1.0","clustername":"c","resourceversion":"1"}'
    async with pool.Database(Pool(engine, "source")).connection() as connection:
        await resources.mark_deleting(connection, ["b"], event_ids=["deletion"], now=datetime.now(UTC))
        end = rows.NewStatus(id="b", source="s", document=document, event_id="end")
        await statuses.remove(connection, [end], now=datetime.now(UTC))


async def test_spec_that_another_instance_has_dispatched_is_found_after_a_gap() -> None:
    engine = Engine()
    async with two_instances(engine) as (one, other):
        await create(engine)
        assert versions(await one.agent.box.take()) == [1]
        await settle()
        assert engine.tables["events"]["event-1"]["reconciled_date"] is not None

        other.controllers.rescan()
        await settle()
        assert len(other.agent.box) == 0, "the sweep looks for what is pending, and this is not"
        other.controllers.on_notification_gap()
        assert versions(await other.agent.box.take()) == [1]


async def test_resource_that_was_removed_during_a_gap_is_deleted_by_the_other_agent() -> None:
    engine = Engine()
    async with two_instances(engine) as (_, other):
        await create(engine)
        await delete(engine)
        assert engine.tables["resources"] == {}
        other.controllers.on_notification_gap()
        assert deletions(await other.agent.box.take()) == ["b"]


async def test_resource_that_was_removed_before_its_deletion_was_read_is_deleted_by_the_other_agent() -> None:
    engine = Engine()
    async with two_instances(engine) as (_, other):
        await create(engine)
        await delete(engine)
        other.controllers.channels["events"]("deletion")
        assert deletions(await other.agent.box.take()) == ["b"]


async def test_next_incarnation_of_a_removed_resource_is_not_deleted() -> None:
    engine = Engine()
    async with two_instances(engine) as (_, other):
        await create(engine)
        await delete(engine)
        del engine.tables["events"]["event-1"]
        await create(engine)
        other.controllers.on_notification_gap()
        assert versions(await other.agent.box.take()) == [1]
        await settle()
        assert len(other.agent.box) == 0


async def settle() -> None:
    """Run the event loop until no task can go on: nothing here takes time."""
    for _ in range(500):
        await asyncio.sleep(0)


def versions(messages: Sequence[bytes]) -> list[int]:
    return [grpc_binding.decode_event(message).integer(event.RESOURCE_VERSION) for message in messages]


def deletions(messages: Sequence[bytes]) -> list[str]:
    found = [grpc_binding.decode_event(message) for message in messages]
    return [each.text(event.RESOURCE_ID) for each in found if each.timestamp(event.DELETION_TIMESTAMP) is not None]
