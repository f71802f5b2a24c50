"""What both services do with an open stream: register it, keep it alive, let it go."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pymaestro.server.streams import Leaving, Streams, Subscriber, TooSlow
from pymaestro.transport import grpc_server, status
from pymaestro.wire import envelope


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeats:
    """How often a quiet stream hears that the server lives; no interval: never."""

    seconds: float | None
    new_id: Callable[[], str]


@asynccontextmanager
async def open_stream(
    streams: Streams, topic: str, *, subscription_id: str, heartbeats: Heartbeats
) -> AsyncIterator[tuple[Subscriber, grpc_server.Stream]]:
    """Register a subscriber of `topic` for as long as the context lasts."""
    subscriber = streams.open(topic, subscription_id=subscription_id)
    try:
        yield subscriber, grpc_server.Stream(id=subscription_id, messages=_messages(subscriber, heartbeats))
    finally:
        streams.close(subscriber)


async def _messages(subscriber: Subscriber, heartbeats: Heartbeats) -> AsyncIterator[Sequence[bytes]]:
    while True:
        try:
            async with asyncio.timeout(heartbeats.seconds):
                messages = await subscriber.box.take()
        except TimeoutError:
            messages = (envelope.heartbeat(heartbeats.new_id()),)
        except Leaving:
            return
        except TooSlow as slow:
            raise status.Refused(status.Code.RESOURCE_EXHAUSTED, str(slow)) from slow
        yield messages
