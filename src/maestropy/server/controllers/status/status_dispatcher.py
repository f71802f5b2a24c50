"""Dispatch status events to the sources that subscribe to this instance.

Every instance sends every status event to its own subscribers. A status is encoded once for all of them, and a newer
status of a resource replaces one that a slow subscriber has not read yet.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Collection, Sequence
from datetime import timedelta

from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import StatusDispatcherPhrase
from maestropy.server.brokers.subscribers import Subscribers
from maestropy.server.context import Context
from maestropy.server.decide import admission, delivery
from maestropy.server.dispatch.dispatch_loop import DispatchLoop
from maestropy.server.telemetry import log_fields, request_spans
from maestropy.store import errors as store_errors
from maestropy.store import resources, rows, statuses
from maestropy.wire import errors as wire_errors
from maestropy.wire import resync
from maestropy.wire.events import grpc_binding

_ROWS_AT_ONCE = 64
_REMEMBERED = 100_000
_SCAN_LIMIT = 20_000
# Clocks of instances differ, and a transaction becomes visible later than its timestamp says.
_OVERLAP = timedelta(seconds=60)


class StatusDispatcher:
    """Sends the statuses of resources to their sources."""

    def __init__(self, context: Context, subscribers: Subscribers) -> None:
        self._context = context
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.CONTROLLERS})
        self._subscribers = subscribers
        metrics = context.metrics
        self._loop = DispatchLoop(context, queue=metrics.status_event_queue, controller=metrics.status)
        self.wake_ups = self._loop.wake_ups
        self._dispatched: OrderedDict[str, None] = OrderedDict()
        self._unrecorded: list[str] = []
        self._scan_from = context.now()
        self._in_order = asyncio.Lock()

    def measure(self) -> None:
        """Set the gauges of the queue."""
        self._loop.measure()

    async def run(self) -> None:
        """Dispatch for ever; maintenance finds the events that failed, since they are not recorded as dispatched."""
        await self._loop.run(
            self._dispatch,
            is_idle=lambda: False,
            journal=self._journal,
            failed=StatusDispatcherPhrase.HANDLE_RESOURCE_FAILED,
            repeats=False,
        )

    async def _dispatch(self, ids: Sequence[str], *, everything: bool) -> int:
        missed = await self._missed() if everything else []
        new_ids = [event_id for event_id in (*ids, *missed) if event_id not in self._dispatched]
        await self._broadcast(new_ids)
        return len(new_ids)

    async def _missed(self) -> list[str]:
        now = self._context.now()
        async with self._context.database.connection() as connection:
            event_ids = await statuses.missed_status_events(
                connection, instance=self._context.instance_id, since=self._scan_from - _OVERLAP, limit=_SCAN_LIMIT
            )
        if len(event_ids) < _SCAN_LIMIT:
            self._scan_from = now
        return event_ids

    async def _broadcast(self, ids: Sequence[str]) -> None:
        if not ids:
            return
        started = self._context.clock.monotonic()
        async with self._context.database.connection() as connection:
            events = await statuses.read_status_events(connection, ids)
        subscribed = [event for event in events if event.source in self._subscribers]
        if events and not subscribed:
            self._journal.info(StatusDispatcherPhrase.NO_CLIENTS, v=4)
        for event in subscribed:
            self._log_broadcast(event)
        final = [event.id for event in subscribed if event.is_final]
        for start in range(0, len(final), _ROWS_AT_ONCE):
            await self._send_final(final[start : start + _ROWS_AT_ONCE])
        # After the final statuses, and also for resources that have one: a row is then a later incarnation, and a
        # source that gets the final status last would take the later incarnation for deleted.
        resource_ids = list(dict.fromkeys(event.resource_id for event in subscribed))
        for start in range(0, len(resource_ids), _ROWS_AT_ONCE):
            await self._send_current(resource_ids[start : start + _ROWS_AT_ONCE])
        self._remember(ids)
        # Events without a subscriber count too, as in a Go server.
        self._measure(events, seconds=self._context.clock.monotonic() - started)

    async def _send_current(self, ids: Collection[str], *, can_wait: bool = False) -> list[str]:
        """Queue the current statuses of resources; with `can_wait`, return those for which there was no room."""
        waiting: list[str] = []
        async with self._in_order:
            async with self._context.database.connection() as connection:
                current = await statuses.read_statuses(connection, ids)
            for status in current:
                if can_wait and not self._subscribers.has_room(status.source):
                    waiting.append(status.id)
                else:
                    self._queue(status, is_final=False, is_resync=can_wait)
        return waiting

    async def _send_final(self, event_ids: Collection[str]) -> None:
        async with self._in_order:
            async with self._context.database.connection() as connection:
                final = await statuses.read_final_statuses(connection, event_ids)
            for status in final:
                self._queue(status, is_final=True)

    def _queue(self, status: rows.ResourceStatus, *, is_final: bool, is_resync: bool = False) -> None:
        subscribers = self._subscribers.of(status.source)
        if not subscribers:
            return
        spans, clock = self._context.spans, self._context.clock
        try:
            outgoing = delivery.status_event(status)
            sending = spans.dispatch_status(outgoing, is_resync=is_resync, now=clock.epoch()) if spans.is_on else None
            if sending is not None:
                outgoing = request_spans.with_parent(outgoing, sending)
            message = grpc_binding.encode_event(outgoing)
        except wire_errors.WireError as error:
            # A status that cannot be encoded must not stop the dispatch of the others.
            self._journal.error(
                StatusDispatcherPhrase.HANDLE_RESOURCE_FAILED, {LogKey.RESOURCE_ID: status.id}, err=error
            )
            return
        fields: dict[str, object] = {}
        operation_id = admission.operation_id(outgoing)
        if operation_id:
            fields[LogKey.OP_ID] = operation_id
        fields |= log_fields.event_fields(self._journal, outgoing)
        # One record for all of them: one each, as a Go server writes, costs more than sending.
        self._context.journal.info(
            StatusDispatcherPhrase.TO_STATUS_SUBSCRIBERS, {**fields, LogKey.COUNT: len(subscribers)}
        )
        for subscriber in subscribers:
            if is_final:
                # Under a key of its own: the status of a later incarnation must not replace the final status.
                subscriber.box.discard(status.id)
                subscriber.send(f"{status.id}/deleted", message)
            else:
                subscriber.send(status.id, message)
        if sending is not None:
            spans.status_dispatched(sending, subscribers=len(subscribers), is_final=is_final, now=clock.epoch())

    async def answer_resync(self, source: str, body: bytes) -> None:
        """Send a source the statuses it misses, by comparing hashes; an empty list asks for all."""
        reported = resync.decode_hashes(body)
        async with self._context.database.connection() as connection:
            stored = await resources.status_hashes_of_source(connection, source)
        left = deque(resync.status_resync_response(stored.items(), reported))
        while left and source in self._subscribers:
            await self._subscribers.wait_for_room(source)
            ids = [left.popleft() for _ in range(min(_ROWS_AT_ONCE, len(left)))]
            left.extendleft(reversed(await self._send_current(ids, can_wait=True)))

    async def record(self) -> None:
        """Record which status events this instance has broadcast; they are purged when every instance has."""
        batch, self._unrecorded = self._unrecorded[:5000], self._unrecorded[5000:]
        if not batch:
            return
        try:
            async with self._context.database.transaction(durable=False) as connection:
                await statuses.record_broadcasts(connection, batch, instance=self._context.instance_id)
        except store_errors.StoreError:
            self._unrecorded = (batch + self._unrecorded)[-_REMEMBERED:]
            raise

    def _remember(self, ids: Sequence[str]) -> None:
        self._dispatched.update(dict.fromkeys(ids))
        while len(self._dispatched) > _REMEMBERED:
            self._dispatched.popitem(last=False)
        self._unrecorded.extend(ids)

    def _measure(self, events: Sequence[rows.StatusEvent], *, seconds: float) -> None:
        metrics, now = self._context.metrics, self._context.now()
        metrics.statuses_dispatched((_event_type(event) for event in events), seconds=seconds)
        for event in events:
            age = now - event.created_at
            metrics.status_event_broadcast(event.consumer, event.source, instance_id=self._context.instance_id, age=age)

    def _log_broadcast(self, event: rows.StatusEvent) -> None:
        self._journal.info(
            StatusDispatcherPhrase.BROADCAST,
            {
                LogKey.STATUS_EVENT: event.id,
                LogKey.RESOURCE_ID: event.resource_id,
                LogKey.INSTANCE_ID: self._context.instance_id,
                LogKey.EVENT_ID: event.id,
                LogKey.SOURCE: event.source,
                LogKey.STATUS_EVENT_TYPE: _event_type(event),
            },
        )


def _event_type(event: rows.StatusEvent) -> str:
    return "StatusDelete" if event.is_final else "StatusUpdate"
