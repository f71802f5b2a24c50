"""What a source hears last about an id is about the bundle that is there."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from simulation.actors import Listener
from simulation.memory_postgres import Engine, Pool

from maestropy.server.fanout import Fanout
from maestropy.server.metrics import Metrics
from maestropy.server.streams import Streams
from maestropy.server.world import World
from maestropy.store import pool
from maestropy.wire import envelope, event

NOW = datetime.now(UTC)
STATUS = '{"id":"%s","source":"agent","type":"' + event.STATUS_UPDATE + '","specversion":"1.0","data":{}}'


def told(*batches: list[str], has_successor: bool) -> list[str]:
    """Return the ids of the events that a subscriber is sent when status events become known in these batches."""

    async def scenario() -> list[str]:
        engine = Engine()
        base: dict[str, Any] = {"resource_id": "b", "resource_source": "s", "payload": None}
        engine.tables["status_events"] = {
            "last word": {**base, "id": "last word", "status": STATUS % "end", "status_event_type": "StatusDelete"},
            "first word": {**base, "id": "first word", "status": None, "status_event_type": "StatusUpdate"},
        }
        for row in engine.tables["status_events"].values():
            row["created_at"] = NOW - timedelta(seconds=1)
        if has_successor:
            row = {"id": "b", "source": "s", "created_at": NOW, "deleted_at": None, "data": b"{}", "consumer_name": "c"}
            engine.tables["resources"]["b"] = {**row, "status": STATUS % "beginning"}
        world = World(
            database=pool.Database(Pool(engine, "server")),
            journal=Listener(None),
            metrics=Metrics(CollectorRegistry()),
            instance_id="server",
        )
        streams = Streams(max_items=100, max_bytes=10_000)
        subscriber = streams.open("s", subscription_id="1", let_go=lambda: None)
        fanout = Fanout(world, streams)
        heard: list[str] = []
        for batch in batches:
            await fanout._broadcast(batch)
            heard += [envelope.decode_event(message).id for message in await subscriber.box.take()]
        return heard

    return asyncio.run(scenario())


@pytest.mark.parametrize("batch", [["last word", "first word"], ["first word", "last word"]], ids=["in-order", "not"])
def test_the_end_of_an_earlier_bundle_is_told_before_its_successor(batch: list[str]) -> None:
    assert told(batch, has_successor=True) == ["end", "beginning"]


def test_an_end_that_was_found_late_is_followed_by_what_is_there() -> None:
    assert told(["first word"], ["last word"], has_successor=True) == ["beginning", "end", "beginning"]


def test_an_end_is_the_last_word_where_nothing_is_left() -> None:
    assert told(["last word"], has_successor=False) == ["end"]
