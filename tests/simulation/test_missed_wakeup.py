"""Two agents of one consumer at two instances: a wake-up that only one instance heard reaches both agents."""

import asyncio
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry
from simulation.actors import _SETTINGS, Listener
from simulation.memory_postgres import Engine, Pool

from pymaestro.aio.tasks import Crew
from pymaestro.server.metrics import Metrics
from pymaestro.server.stages import Stages
from pymaestro.server.world import World
from pymaestro.store import pool, resources, rows
from pymaestro.wire import envelope, event, record

PARTS = record.Parts(envelope=b'{"id":"e","source":"s","type":"t","specversion":"1.0"}', metadata=b"", data=b"{}")
PATIENCE_SECONDS = 20


def spec(version: int) -> rows.NewSpec:
    return rows.NewSpec(id="b", source="s", consumer="c", version=version, parts=PARTS, event_id=f"event-{version}")


def test_what_another_instance_has_delivered_is_found_after_a_gap() -> None:
    async def scenario() -> None:
        engine = Engine()
        now = datetime.now(UTC)
        engine.tables["consumers"]["c"] = {"id": "c", "name": "c"}
        instances = []
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
                instances.append((stages, crew, agent))
            await settle()
            (one, _, first), (other, _, second) = instances
            engine.listening["one"] = ("one", lambda channel, payload: one.channels[channel](payload))

            async with pool.Database(Pool(engine, "source")).connection() as connection:
                await resources.insert_new(connection, [spec(1)], now=now)
            assert versions(await first.box.take()) == [1]
            await settle()
            assert engine.tables["events"]["event-1"]["reconciled_date"] is not None

            other.look_again()
            await settle()
            assert len(second.box) == 0, "the sweep looks for what is pending, and this is not"
            other.hear_again()
            assert versions(await second.box.take()) == [1]
            for _, crew, _ in instances:
                await crew.stop()

    asyncio.run(scenario())


async def settle() -> None:
    """Let everybody do what can be done now: nothing here takes any time."""
    for _ in range(500):
        await asyncio.sleep(0)


def versions(messages: "list[bytes]") -> list[int]:
    return [envelope.decode_event(message).integer(event.RESOURCE_VERSION) for message in messages]
