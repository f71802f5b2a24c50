"""The last status event that a source gets for an ID is that of the incarnation that exists."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from maestropy.server.brokers.subscribers import Subscribers
from maestropy.server.context import Context
from maestropy.server.controllers.status.status_dispatcher import StatusDispatcher
from maestropy.server.telemetry.metrics import Metrics
from maestropy.store.postgres import pool
from maestropy.wire.events import event, grpc_binding
from tests.simulation.actors import Listener
from tests.simulation.memory_postgres import Engine, Pool

NOW = datetime.now(UTC)
STATUS = '{"id":"%s","source":"agent","type":"' + event.STATUS_UPDATE + '","specversion":"1.0","data":{}}'


def sent_events(*batches: list[str], has_successor: bool) -> list[str]:
    """Return the ids of the events that a subscriber is sent when status events become known in these batches."""

    async def scenario() -> list[str]:
        engine = Engine()
        base: dict[str, Any] = {"resource_id": "b", "resource_source": "s", "payload": None}
        engine.tables["status_events"] = {
            "final status": {
                **base,
                "id": "final status",
                "status": STATUS % "end",
                "status_event_type": "StatusDelete",
            },
            "first status": {**base, "id": "first status", "status": None, "status_event_type": "StatusUpdate"},
        }
        for row in engine.tables["status_events"].values():
            row["created_at"] = NOW - timedelta(seconds=1)
        if has_successor:
            row = {"id": "b", "source": "s", "created_at": NOW, "deleted_at": None, "data": b"{}", "consumer_name": "c"}
            engine.tables["resources"]["b"] = {**row, "status": STATUS % "beginning"}
        context = Context(
            database=pool.Database(Pool(engine, "server")),
            journal=Listener(None, []),
            metrics=Metrics(CollectorRegistry()),
            instance_id="server",
        )
        subscribers = Subscribers(max_items=100, max_bytes=10_000)
        subscriber = subscribers.open("s", subscription_id="1", disconnect=lambda: None)
        dispatcher = StatusDispatcher(context, subscribers)
        event_ids: list[str] = []
        for batch in batches:
            await dispatcher._broadcast(batch)
            event_ids += [grpc_binding.decode_event(message).id for message in await subscriber.box.take()]
        return event_ids

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    "batch", [["final status", "first status"], ["first status", "final status"]], ids=["in-order", "not"]
)
def test_final_status_is_sent_before_the_status_of_the_next_incarnation(batch: list[str]) -> None:
    assert sent_events(batch, has_successor=True) == ["end", "beginning"]


def test_late_final_status_is_followed_by_the_status_of_the_next_incarnation() -> None:
    assert sent_events(["first status"], ["final status"], has_successor=True) == ["beginning", "end", "beginning"]


def test_final_status_is_the_last_event_of_a_removed_resource() -> None:
    assert sent_events(["final status"], has_successor=False) == ["end"]
