"""Run an adapter as a service: handle events, one at a time per resource, and settle each after it was handled.

An inbox delivers events: HTTP is built in (`transports.http_inbox`), a broker needs a class with one method. The sender
keeps an event until it is settled, so a killed adapter loses no event.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from maestropy.adapter import event as events
from maestropy.adapter.decide.pipeline import EventOutcome
from maestropy.adapter.errors import MalformedEvent
from maestropy.adapter.event import Event

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EventDone:
    """The event was handled: do not deliver it again."""


@dataclass(frozen=True, slots=True)
class EventRetry:
    """A dependency is unavailable: deliver the event again later."""

    reason: str


@dataclass(frozen=True, slots=True)
class EventRejected:
    """The event is malformed: do not deliver it again, and give its sender the reason."""

    reason: str


Settlement = EventDone | EventRetry | EventRejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event, and the callback that settles it."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    settle: Callable[[Settlement], Awaitable[None]]
    """Awaited exactly once: acknowledges, asks for redelivery, or rejects."""


class EventInbox(Protocol):
    """Delivers events: HTTP, or a broker's subscription."""

    async def next(self) -> Delivery:
        """Wait for the next event; a broker delivers no more events than are requested."""


class EventObserver(Protocol):
    """Counts what a service does with its events."""

    def handled(self, outcome: EventOutcome, *, seconds: float) -> None:
        """Count an event that was handled, and its failure."""

    def rejected(self) -> None:
        """Count an event that is malformed."""


class AdapterService:
    """Handles deliveries until cancelled."""

    def __init__(
        self,
        inbox: EventInbox,
        handle: Callable[[Event], Awaitable[EventOutcome]],
        *,
        workers: int = 8,
        observer: EventObserver | None = None,
    ) -> None:
        self._inbox = inbox
        self._handle_event = handle
        self._workers = workers
        self._observer = observer
        self._in_progress = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    async def run(self) -> None:
        """Run the workers until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"adapter-worker-{number}")

    async def drained(self) -> None:
        """Wait until no event is in progress; the inbox must not deliver new ones."""
        await self._idle.wait()

    async def _work(self) -> None:
        while True:
            delivery = await self._inbox.next()
            with self._progress():
                await delivery.settle(await self._handle(delivery))

    @contextmanager
    def _progress(self) -> Iterator[None]:
        self._in_progress += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._in_progress -= 1
            if self._in_progress == 0:
                self._idle.set()

    async def _handle(self, delivery: Delivery) -> Settlement:
        try:
            event = events.parse(delivery.body, delivery.headers)
        except MalformedEvent as error:
            _log.warning("an event is rejected: %s", error)
            if self._observer is not None:
                self._observer.rejected()
            return EventRejected(str(error))
        try:
            async with self._exclusive(event.resource_id):
                started = time.monotonic()
                outcome = await self._handle_event(event)
                if self._observer is not None:
                    self._observer.handled(outcome, seconds=time.monotonic() - started)
                return settlement(outcome)
        except Exception as error:  # noqa: BLE001 - an unexpected failure is not the event's fault: its sender may retry
            _log.exception("event of %s %s failed unexpectedly", event.kind, event.resource_id)
            return EventRetry(f"{type(error).__name__} in the adapter; its log has the details")

    @asynccontextmanager
    async def _exclusive(self, key: str) -> AsyncIterator[None]:
        """Serialize the events of one resource: two at once would overwrite each other's statuses."""
        lock, waiting = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = (lock, waiting + 1)
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._locks[key]
            if waiting == 1:
                del self._locks[key]
            else:
                self._locks[key] = (lock, waiting - 1)


def settlement(outcome: EventOutcome) -> Settlement:
    """Return the settlement that follows from an outcome."""
    if outcome.is_retryable and outcome.failure is not None:
        return EventRetry(outcome.failure.message)
    return EventDone()
