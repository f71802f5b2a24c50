"""A stopping server ends the streams of its agents one after the other."""

import asyncio

import pytest

from maestropy.server.brokers.subscribers import ServerStopping, Subscribers


def open_streams(subscribers: Subscribers, count: int) -> None:
    for number in range(count):
        subscribers.open(f"c{number}", subscription_id=f"s{number}", disconnect=lambda: None)


def closed_count(subscribers: Subscribers) -> int:
    return sum(subscriber.box.is_closed for topic in subscribers.topics() for subscriber in subscribers.of(topic))


@pytest.mark.parametrize(
    ("streams", "seconds", "closed_first"),
    [
        pytest.param(0, 0.0, 0, id="none"),
        pytest.param(1, 0.002, 1, id="one"),
        pytest.param(50, 0.09, 50, id="few-at-once"),
        pytest.param(100, 0.2, 34, id="many-in-slices"),
    ],
)
async def test_streams_end_in_slices(streams: int, seconds: float, closed_first: int) -> None:
    subscribers = Subscribers(max_items=10, max_bytes=1000)
    open_streams(subscribers, streams)
    assert subscribers.count == streams

    closing = asyncio.ensure_future(subscribers.close_gradually(seconds=seconds))
    await asyncio.sleep(0)
    assert closed_count(subscribers) == closed_first
    await closing
    assert closed_count(subscribers) == streams


async def test_stream_that_ends_gradually_still_gets_its_messages() -> None:
    subscribers = Subscribers(max_items=10, max_bytes=1000)
    subscriber = subscribers.open("c1", subscription_id="s1", disconnect=lambda: None)
    subscriber.send("w1", b"spec")
    await subscribers.close_gradually(seconds=0)
    assert await subscriber.box.take() == [b"spec"]
    with pytest.raises(ServerStopping):
        await subscriber.box.take()
