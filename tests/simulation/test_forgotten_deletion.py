"""Agents that forget deletions, in virtual time: they are reminded until all is done, and less and less often."""

import asyncio
import itertools
import json
from collections import Counter
from dataclasses import dataclass, field

import pytest
from prometheus_client import CollectorRegistry
from simulation.actors import _SETTINGS, Listener
from simulation.memory_postgres import Engine, Pool
from simulation.virtual_loop import VirtualLoop

from maestropy.aio.tasks import Crew
from maestropy.server.decide import intake
from maestropy.server.metrics import Metrics
from maestropy.server.stages import Stages
from maestropy.server.streams import Subscriber
from maestropy.server.world import World
from maestropy.store import pool, resources, rows
from maestropy.wire import envelope, event, order, record

PARTS = record.Parts(envelope=b'{"id":"e","source":"s","type":"t","specversion":"1.0"}', metadata=b"{}", data=b"{}")
IDS = [f"b{number}" for number in range(20)]


@dataclass(kw_only=True)
class Copy:
    """A work as a Go agent holds it; one that goes without a finalizer is never seen to have gone."""

    id: str
    is_leaving: bool = False
    has_finalizer: bool = True


@dataclass(kw_only=True)
class GoAgent:
    """What an older Go agent does with deletions: it finds works by their ids and keeps them under their names."""

    stages: Stages
    stream: Subscriber
    works: dict[str, Copy]
    is_stuck: bool = False
    told: Counter[str] = field(default_factory=Counter)

    async def run(self) -> None:
        sequence = 0
        while True:
            for received in map(envelope.decode_event, await self.stream.box.take()):
                id_, name = received.text(event.RESOURCE_ID), json.loads(received.text(event.METADATA))["name"]
                self.told[name] += 1
                known = next((held for held in self.works.values() if held.id == id_), None)
                if known is None:
                    known = self.works[name] = Copy(id=id_)
                known.is_leaving = True
                if known.has_finalizer and not self.is_stuck:
                    await asyncio.sleep(0.5)
                    del self.works[name]
                    sequence = order.next_id(sequence, now_ms=1_800_000_000_000)
                    await self.stages.absorb.submit(report(id_, sequence=sequence))


def report(id_: str, *, sequence: int) -> intake.Report:
    said = event.Event(
        id=f"report-{sequence}",
        source="agent",
        type=event.STATUS_UPDATE,
        extensions={
            event.RESOURCE_ID: id_,
            event.RESOURCE_VERSION: 1,
            event.CLUSTER_NAME: "c",
            event.ORIGINAL_SOURCE: "maestro",
            event.SEQUENCE_ID: str(sequence),
        },
        data=b'{"conditions":[{"type":"Deleted","status":"True"}]}',
    )
    return intake.read_report(said, source_id="maestro", operation_id="")


def play(works: dict[str, Copy], *, seconds: float, is_stuck: bool = False) -> tuple[Engine, GoAgent]:
    """Delete everything behind the back of an agent that holds `works`, and let time pass."""
    loop, engine = VirtualLoop(), Engine()
    engine.tables["consumers"]["c"] = {"id": "c", "name": "c"}

    async def story() -> GoAgent:
        numbers = itertools.count()
        world = World(
            database=pool.Database(Pool(engine, "server")),
            journal=Listener(None),
            metrics=Metrics(CollectorRegistry()),
            instance_id="server",
            clock=loop.clock(),
            new_id=lambda: f"id-{next(numbers)}",
        )
        async with world.database.transaction() as connection:
            specs = [
                rows.NewSpec(id=each, source="s", consumer="c", version=1, parts=PARTS, event_id=f"create-{each}")
                for each in IDS
            ]
            await resources.insert_new(connection, specs, now=world.now())
        await asyncio.sleep(1)
        async with world.database.transaction() as connection:
            await resources.mark_deleting(
                connection, IDS, event_ids=[f"delete-{each}" for each in IDS], now=world.now()
            )
        for row in engine.tables["events"].values():
            row["reconciled_date"] = world.now()

        stages, crew = Stages(_SETTINGS, world, delays=lambda: iter(())), Crew()
        stages.start(crew)
        await stages.join(crew)
        engine.listening["server"] = ("server", lambda channel, payload: stages.channels[channel](payload))
        stream = stages.agents.open("c", subscription_id="1", let_go=lambda: None)
        agent = GoAgent(stages=stages, stream=stream, works=works, is_stuck=is_stuck)
        crew.start("agent", agent.run())
        await asyncio.sleep(seconds)
        await crew.stop()
        return agent

    return engine, loop.play(story())


@pytest.mark.parametrize(
    "works",
    [
        pytest.param({each: Copy(id=each) for each in IDS}, id="forgot-it"),
        pytest.param(
            {each: Copy(id=each, is_leaving=True, has_finalizer=False) for each in IDS}, id="got-it-too-early"
        ),
        pytest.param({}, id="has-done-it-and-was-not-heard"),
    ],
)
def test_every_deletion_ends(works: dict[str, Copy]) -> None:
    engine, agent = play(works, seconds=180)
    assert list(engine.tables["resources"]) == []
    assert agent.works == {}
    assert list(engine.tables["maestropy_reminders"]) == []
    assert max(agent.told.values()) <= 5


def test_what_is_stuck_is_repeated_less_and_less_often() -> None:
    engine, agent = play({each: Copy(id=each) for each in IDS}, seconds=1300, is_stuck=True)
    assert sorted(engine.tables["resources"]) == sorted(IDS)
    assert set(agent.told) == set(IDS)
    assert all(7 <= times <= 9 for times in agent.told.values())
    assert len(engine.tables["events"]) <= len(IDS)
