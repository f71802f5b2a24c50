"""Open streams of subscribers with heartbeats and periodic checks of their credentials, for both gRPC services."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from maestropy.server.brokers.subscribers import ServerStopping, Subscriber, Subscribers, SubscriberTooSlow
from maestropy.transport.grpc import server as grpc_server
from maestropy.transport.grpc import status
from maestropy.wire.events import grpc_binding

# Messages written before the next check for a heartbeat.
_WRITES_AT_ONCE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeats:
    """Interval of the heartbeat events of a stream; None: no heartbeats."""

    seconds: float | None
    new_id: Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialCheck:
    """The periodic check of the credentials of a stream; None: never."""

    seconds: float | None
    check: Callable[[], Awaitable[None]]
    """Raises `CallRejected` if the client may no longer subscribe."""


@asynccontextmanager
async def open_stream(
    subscribers: Subscribers, topic: str, *, subscription_id: str, heartbeats: Heartbeats, recheck: CredentialCheck
) -> AsyncIterator[grpc_server.Stream]:
    """Register a subscriber of `topic` while the block runs."""
    task = asyncio.current_task()
    assert task
    subscriber = subscribers.open(topic, subscription_id=subscription_id, disconnect=task.cancel)
    try:
        yield grpc_server.Stream(id=subscription_id, messages=_messages(subscriber, heartbeats, recheck))
    except asyncio.CancelledError:
        # Either the client has disconnected, or a write was stuck and the queue is full.
        if not subscriber.box.is_closed or task.uncancel():
            raise
        raise _too_slow() from None
    finally:
        subscribers.close(subscriber)


class _Timer:
    """Says when `seconds` have passed since it last did; never if they are None. For one event loop."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._clock = asyncio.get_running_loop().time
        self.due_at = self._next()

    def is_due(self) -> bool:
        """Return whether the time has passed, and start again if so."""
        if self.due_at is None or self._clock() < self.due_at:
            return False
        self.due_at = self._next()
        return True

    def _next(self) -> float | None:
        return None if self._seconds is None else self._clock() + self._seconds


async def _messages(
    subscriber: Subscriber, heartbeats: Heartbeats, recheck: CredentialCheck
) -> AsyncIterator[Sequence[bytes]]:
    heartbeat_timer, recheck_timer = _Timer(heartbeats.seconds), _Timer(recheck.seconds)
    while True:
        messages: Sequence[bytes] = ()
        due_times = [timer.due_at for timer in (heartbeat_timer, recheck_timer) if timer.due_at is not None]
        try:
            async with asyncio.timeout_at(min(due_times, default=None)):
                messages = await subscriber.box.take()
        except TimeoutError:
            pass  # a heartbeat or a check is due
        except ServerStopping:
            return
        except SubscriberTooSlow:
            raise _too_slow() from None
        if recheck_timer.is_due():
            await recheck.check()
        for start in range(0, len(messages) or 1, _WRITES_AT_ONCE):
            # Also between messages: clients count only heartbeats as a sign of life.
            if heartbeat_timer.is_due():
                yield (grpc_binding.heartbeat(heartbeats.new_id()),)
            yield messages[start : start + _WRITES_AT_ONCE]


def _too_slow() -> status.CallRejected:
    return status.CallRejected(status.StatusCode.RESOURCE_EXHAUSTED, str(SubscriberTooSlow()))
