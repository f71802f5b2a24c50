"""Each consumer gets its turn, however many there are and however long the queue of one is."""

import asyncio
import io

from prometheus_client import CollectorRegistry

from maestropy.journal.emit import Journal
from maestropy.server.deliver import Deliver
from maestropy.server.metrics import Metrics
from maestropy.server.streams import Streams
from maestropy.server.world import World
from maestropy.store import pool, rows


class Rounds(Deliver):
    """Remembers the rounds instead of sending them."""

    def __init__(self, streams: Streams) -> None:
        journal = Journal(io.BytesIO(), clock=lambda: 0.0)
        database = pool.Database(None)
        metrics = Metrics(CollectorRegistry())
        super().__init__(World(database=database, journal=journal, metrics=metrics, instance_id="i"), streams)
        self.rounds: list[list[str]] = []

    async def _send(self, batch: dict[str, list[rows.Pending]]) -> int:
        self.rounds.append([group[0].consumer or "" for group in batch.values()])
        return len(batch)


def deliver(backlog: dict[str, int]) -> list[list[str]]:
    """Return who was served in which round."""

    async def scenario() -> list[list[str]]:
        streams = Streams(max_items=10_000, max_bytes=2**30)
        for consumer in backlog:
            streams.open(consumer, subscription_id="s", let_go=lambda: None)
        found = [
            rows.Pending(f"event-{consumer}-{number}", f"{consumer}-{number}", "Create", consumer)
            for consumer, count in backlog.items()
            for number in range(count)
        ]
        stage = Rounds(streams)
        assert await stage._deliver(found) == len(found)
        return stage.rounds

    return asyncio.run(scenario())


def test_a_long_queue_does_not_come_before_a_short_one() -> None:
    rounds = deliver({"long": 500, "short": 1})
    assert "short" in rounds[0]


def test_with_more_consumers_than_a_round_serves_all_are_served_before_one_is_served_twice() -> None:
    consumers = {f"c{number}": 10 for number in range(200)}
    order = [consumer for batch in deliver(consumers) for consumer in batch]
    assert set(order[: len(consumers)]) == consumers.keys()


def test_a_bundle_with_several_events_is_sent_once() -> None:
    async def scenario() -> None:
        streams = Streams(max_items=10, max_bytes=1000)
        streams.open("c", subscription_id="s", let_go=lambda: None)
        stage = Rounds(streams)
        found = [rows.Pending(f"e{number}", "w1", "Update", "c") for number in range(5)]
        assert await stage._deliver(found) == 1
        assert stage.rounds == [["c"]]

    asyncio.run(scenario())


def test_events_of_consumers_that_are_not_here_are_left_alone() -> None:
    async def scenario() -> None:
        stage = Rounds(Streams(max_items=10, max_bytes=1000))
        assert (
            await stage._deliver([rows.Pending("e1", "w1", "Create", "away"), rows.Pending("e2", "w2", "X", None)]) == 0
        )
        assert stage.rounds == []

    asyncio.run(scenario())
