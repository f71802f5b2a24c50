"""Agents that lose delete requests, in virtual time: they are reminded until all is deleted, less and less often."""

import asyncio
import itertools
import json
from collections import Counter
from dataclasses import dataclass, field

import pytest
from prometheus_client import CollectorRegistry

from maestropy.aio.tasks import TaskOwner
from maestropy.server.brokers.subscribers import Subscriber
from maestropy.server.context import Context
from maestropy.server.decide import status_intake
from maestropy.server.runtime.wiring import Controllers
from maestropy.server.telemetry.metrics import Metrics
from maestropy.store import resources, rows
from maestropy.store.postgres import pool
from maestropy.wire import ordering
from maestropy.wire.events import event, grpc_binding, stored_event
from tests.simulation.actors import _SETTINGS, Listener
from tests.simulation.memory_postgres import Engine, Pool
from tests.simulation.virtual_loop import VirtualLoop

PARTS = stored_event.StoredParts(
    envelope=b'{"id":"e","source":"s","type":"t","specversion":"1.0"}', metadata=b"{}", data=b"{}"
)
IDS = [f"b{number}" for number in range(20)]


@dataclass(kw_only=True)
class Copy:
    """A work in the cache of a Go agent; the agent does not notice the deletion of one without a finalizer."""

    id: str
    is_leaving: bool = False
    has_finalizer: bool = True


@dataclass(kw_only=True)
class GoAgent:
    """An older Go agent: it looks works up by their IDs and stores them under their names."""

    controllers: Controllers
    stream: Subscriber
    works: dict[str, Copy]
    is_stuck: bool = False
    received_requests: Counter[str] = field(default_factory=Counter)

    async def run(self) -> None:
        sequence = 0
        while True:
            for received in map(grpc_binding.decode_event, await self.stream.box.take()):
                id_, name = received.text(event.RESOURCE_ID), json.loads(received.text(event.METADATA))["name"]
                self.received_requests[name] += 1
                known = next((held for held in self.works.values() if held.id == id_), None)
                if known is None:
                    known = self.works[name] = Copy(id=id_)
                known.is_leaving = True
                if known.has_finalizer and not self.is_stuck:
                    await asyncio.sleep(0.5)
                    del self.works[name]
                    sequence = ordering.next_id(sequence, now_ms=1_800_000_000_000)
                    await self.controllers.status_writer.submit(report(id_, sequence=sequence))


def report(id_: str, *, sequence: int) -> status_intake.StatusUpdate:
    said = event.CloudEvent(
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
    return status_intake.read_status_update(said, source_id="maestro", operation_id="")


def play(works: dict[str, Copy], *, seconds: float, is_stuck: bool = False) -> tuple[Engine, GoAgent]:
    """Delete everything while an agent with `works` does not get the requests, and let time pass."""
    loop, engine = VirtualLoop(), Engine()
    engine.tables["consumers"]["c"] = {"id": "c", "name": "c"}

    async def scenario() -> GoAgent:
        numbers = itertools.count()
        context = Context(
            database=pool.Database(Pool(engine, "server")),
            journal=Listener(None, []),
            metrics=Metrics(CollectorRegistry()),
            instance_id="server",
            clock=loop.clock(),
            new_id=lambda: f"id-{next(numbers)}",
        )
        async with context.database.transaction() as connection:
            specs = [
                rows.NewSpec(id=each, source="s", consumer="c", version=1, parts=PARTS, event_id=f"create-{each}")
                for each in IDS
            ]
            await resources.insert_new(connection, specs, now=context.now())
        await asyncio.sleep(1)
        async with context.database.transaction() as connection:
            await resources.mark_deleting(
                connection, IDS, event_ids=[f"delete-{each}" for each in IDS], now=context.now()
            )
        for row in engine.tables["events"].values():
            row["reconciled_date"] = context.now()

        controllers, task_owner = Controllers(_SETTINGS, context, delays=lambda: iter(())), TaskOwner()
        controllers.start(task_owner)
        await controllers.join(task_owner)
        engine.listening["server"] = ("server", lambda channel, payload: controllers.channels[channel](payload))
        stream = controllers.agent_subscribers.open("c", subscription_id="1", disconnect=lambda: None)
        agent = GoAgent(controllers=controllers, stream=stream, works=works, is_stuck=is_stuck)
        task_owner.start("agent", agent.run())
        await asyncio.sleep(seconds)
        await task_owner.stop()
        return agent

    return engine, loop.play(scenario())


@pytest.mark.parametrize(
    "works",
    [
        pytest.param({each: Copy(id=each) for each in IDS}, id="lost-the-request"),
        pytest.param(
            {each: Copy(id=each, is_leaving=True, has_finalizer=False) for each in IDS},
            id="received-before-the-work-was-cached",
        ),
        pytest.param({}, id="final-status-lost"),
    ],
)
def test_every_deletion_is_confirmed(works: dict[str, Copy]) -> None:
    engine, agent = play(works, seconds=400)
    assert list(engine.tables["resources"]) == []
    assert agent.works == {}
    assert list(engine.tables["delete_recovery_consumers"]) == []
    assert max(agent.received_requests.values()) <= 5


def test_stuck_deletion_is_repeated_less_and_less_often() -> None:
    engine, agent = play({each: Copy(id=each) for each in IDS}, seconds=1300, is_stuck=True)
    assert sorted(engine.tables["resources"]) == sorted(IDS)
    assert set(agent.received_requests) == set(IDS)
    assert all(7 <= times <= 9 for times in agent.received_requests.values())
    assert len(engine.tables["events"]) <= len(IDS)
