"""What both services do with an open stream: register it, keep it alive, let it go."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from maestropy.server.streams import Leaving, Streams, Subscriber, TooSlow
from maestropy.transport import grpc_server, status
from maestropy.wire import envelope

# Messages written before the next look whether a heartbeat is due.
_WRITES_AT_ONCE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeats:
    """How often a stream hears that the server lives; no interval: never."""

    seconds: float | None
    new_id: Callable[[], str]


@asynccontextmanager
async def open_stream(
    streams: Streams, topic: str, *, subscription_id: str, heartbeats: Heartbeats
) -> AsyncIterator[tuple[Subscriber, grpc_server.Stream]]:
    """Register a subscriber of `topic` for as long as the context lasts."""
    task = asyncio.current_task()
    assert task
    subscriber = streams.open(topic, subscription_id=subscription_id, let_go=task.cancel)
    try:
        yield subscriber, grpc_server.Stream(id=subscription_id, messages=_messages(subscriber, heartbeats))
    except asyncio.CancelledError:
        # Either the caller has gone, or a write was stuck and the queue behind it ran over.
        if not subscriber.box.is_closed or task.uncancel():
            raise
        raise _too_slow() from None
    finally:
        streams.close(subscriber)


async def _messages(subscriber: Subscriber, heartbeats: Heartbeats) -> AsyncIterator[Sequence[bytes]]:
    clock = asyncio.get_running_loop().time
    due = None if heartbeats.seconds is None else clock() + heartbeats.seconds
    while True:
        messages: Sequence[bytes] = ()
        try:
            async with asyncio.timeout_at(due):
                messages = await subscriber.box.take()
        except TimeoutError:
            pass  # a heartbeat is due
        except Leaving:
            return
        except TooSlow:
            raise _too_slow() from None
        for start in range(0, len(messages) or 1, _WRITES_AT_ONCE):
            # Between messages too: clients take nothing but a heartbeat for a sign of life.
            if heartbeats.seconds is not None and due is not None and clock() >= due:
                due = clock() + heartbeats.seconds
                yield (envelope.heartbeat(heartbeats.new_id()),)
            yield messages[start : start + _WRITES_AT_ONCE]


def _too_slow() -> status.Refused:
    return status.Refused(status.Code.RESOURCE_EXHAUSTED, str(TooSlow()))
