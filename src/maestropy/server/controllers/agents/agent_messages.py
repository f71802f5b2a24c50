"""Handle the messages of agents that a message broker delivers, and acknowledge each when it is stored.

A status update goes to the status intake and is repeated here while the database is away; a spec resync goes to the
resync queue, which acknowledges it when it is answered. Implements `brokers.port.Receiver`.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from maestropy.aio import batches
from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import ResyncPhrase, StatusWriterPhrase
from maestropy.server.context import Context
from maestropy.server.decide import status_intake
from maestropy.server.telemetry import log_fields
from maestropy.server.telemetry.metrics import EventLabels
from maestropy.store import errors as store_errors
from maestropy.wire import errors
from maestropy.wire.events import event

# With the longest pause of five seconds about three minutes; after that the resync finds the status.
_ATTEMPTS = 40


class _Intake(Protocol):
    def log_received(self, received: event.CloudEvent) -> None: ...

    def read(self, received: event.CloudEvent, kind: event.CloudEventType) -> status_intake.StatusUpdate: ...

    def store(self, update: status_intake.StatusUpdate) -> Awaitable[status_intake.Verdict | None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    """The controllers that messages lead to."""

    intake: _Intake
    answer_resync: Callable[[event.CloudEvent, Callable[[], None]], None]
    """Answers a spec resync, and then calls its second argument."""
    request_statuses: Callable[[Iterable[str]], None]
    dispatch_pending: Callable[[], None]
    owns: Callable[[str], bool]
    owned: Callable[[], Awaitable[Iterable[str]]]
    note_seen: Callable[[str], None] = lambda _consumer: None
    """Notes that an agent of a consumer has sent something."""


class AgentMessages:
    """The receiver of a message broker."""

    def __init__(self, context: Context, handlers: Handlers, *, delays: Callable[[], Iterator[float]]) -> None:
        self._context = context
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.SERVER})
        self._handlers = handlers
        self._delays = delays

    async def on_online(self) -> None:
        """Dispatch what is pending, and request the statuses that were missed while there was no connection."""
        self._handlers.dispatch_pending()
        self._handlers.request_statuses(await self._handlers.owned())

    async def on_messages_lost(self) -> None:
        """Request the statuses that the broker may have dropped."""
        try:
            self._handlers.request_statuses(await self._handlers.owned())
        except store_errors.StoreError as error:
            self._journal.error(ResyncPhrase.CONSUMERS_UNKNOWN, err=error)

    async def receive(self, received: event.CloudEvent, acknowledge: Callable[[], None]) -> None:
        """Handle one message; raises `WireError` when it is wrong."""
        kind = event.parse_type(received.type)
        is_resync = kind.action == event.EventAction.RESYNC_REQUEST
        if kind.data_type != event.MANIFEST_BUNDLES:
            raise errors.UnsupportedEvent(f"unsupported event data type {kind.data_type[:256]}")
        if kind.subresource != (event.Subresource.SPEC if is_resync else event.Subresource.STATUS):
            raise errors.UnsupportedEvent(f"unsupported event type {received.type[:256]}: agents send statuses")
        self._handlers.intake.log_received(received)
        self._context.metrics.event_received(EventLabels.of(received))
        self._handlers.note_seen(received.optional_text(event.CLUSTER_NAME))
        if is_resync:
            self._answer_resync(received, acknowledge)
        elif await self._store(self._handlers.intake.read(received, kind)):
            acknowledge()

    def _answer_resync(self, received: event.CloudEvent, acknowledge: Callable[[], None]) -> None:
        """Answer a spec resync. Every instance that receives it does: a dead owner would leave it unanswered.

        The agent has been away, so status resync requests that were sent meanwhile are lost: the owner sends another.
        """
        consumer = received.text(event.CLUSTER_NAME)
        self._handlers.answer_resync(received, acknowledge)
        if self._handlers.owns(consumer):
            self._handlers.request_statuses([consumer])

    async def _store(self, update: status_intake.StatusUpdate) -> bool:
        """Store a status update; return whether the message is acknowledged."""
        for pause in itertools.islice(self._delays(), _ATTEMPTS):
            try:
                await self._handlers.intake.store(update)
            except batches.Stopped:
                return False
            except (batches.Overloaded, store_errors.StoreError):
                await asyncio.sleep(pause)
            else:
                return True
        fields = log_fields.with_operation(update.operation_id, update.id)
        error = "the database could not be reached for too long"
        self._journal.error(StatusWriterPhrase.HANDLE_FAILED, fields, err=error)
        return True
