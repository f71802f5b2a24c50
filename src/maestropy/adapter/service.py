"""Run an adapter as a service: events come in, one at a time per resource, and are settled only when they are done.

An inbox is anything that brings deliveries: HTTP is built in (`inbox_http`), a broker needs a class with one method.
Whoever brings an event keeps it until it is settled, so an adapter that is killed loses nothing.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from maestropy.adapter import event as events
from maestropy.adapter.errors import MalformedEvent
from maestropy.adapter.event import Event
from maestropy.adapter.pipeline import Outcome

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Done:
    """It is dealt with: never bring it again."""


@dataclass(frozen=True, slots=True)
class Again:
    """Something is not there just now: bring it again after a while."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """It is no event that anybody could deal with: do not bring it again, and tell whoever sent it."""

    reason: str


Settlement = Done | Again | Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event, and the way to settle it."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    settle: Callable[[Settlement], Awaitable[None]]
    """To be awaited exactly once: acknowledges, asks for redelivery, or rejects."""


class Inbox(Protocol):
    """Brings events: HTTP, or a broker's subscription."""

    async def next(self) -> Delivery:
        """Wait for the next event; a broker hands out no more than are asked for."""


class Service:
    """Deals with deliveries until cancelled."""

    def __init__(self, inbox: Inbox, deal: Callable[[Event], Awaitable[Outcome]], *, workers: int = 8) -> None:
        self._inbox = inbox
        self._deal = deal
        self._workers = workers
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}

    async def run(self) -> None:
        """Work for ever."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"adapter-worker-{number}")

    async def _work(self) -> None:
        while True:
            delivery = await self._inbox.next()
            await delivery.settle(await self._dealt_with(delivery))

    async def _dealt_with(self, delivery: Delivery) -> Settlement:
        try:
            event = events.parse(delivery.body, delivery.headers)
        except MalformedEvent as error:
            _log.warning("an event is refused: %s", error)
            return Refused(str(error))
        try:
            async with self._turn(event.resource_id):
                return settlement(await self._deal(event))
        except Exception as error:  # noqa: BLE001 - unknown, and not the event's fault: its sender may try again
            _log.exception("event of %s %s failed unexpectedly", event.kind, event.resource_id)
            return Again(f"{type(error).__name__} in the adapter; its log has the details")

    @asynccontextmanager
    async def _turn(self, key: str) -> AsyncIterator[None]:
        """Let one event of a resource through at a time: two at once would undo each other's reports."""
        lock, waiting = self._turns.get(key, (asyncio.Lock(), 0))
        self._turns[key] = (lock, waiting + 1)
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._turns[key]
            if waiting == 1:
                del self._turns[key]
            else:
                self._turns[key] = (lock, waiting - 1)


def settlement(outcome: Outcome) -> Settlement:
    """Say what the end of an event means for whoever brought it."""
    if outcome.comes_again and outcome.failure is not None:
        return Again(outcome.failure.message)
    return Done()
