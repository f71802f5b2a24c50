"""Dispatch pending spec events to agents.

A wake-up names events, maintenance asks for everything that is pending. Either way the rows are read and sent as they
are now, so a superfluous wake-up is harmless and maintenance makes up for a lost one. Consumers take turns
(`decide.fairness`), and a resource with several pending events is sent once. The broker is a `brokers.port.Broker`;
`dispatch.spec_sender` keeps the order in which the states of a resource are sent.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import BrokerPhrase, SpecDispatcherPhrase
from maestropy.server.brokers import port
from maestropy.server.context import Context
from maestropy.server.decide import fairness
from maestropy.server.dispatch.dispatch_loop import DispatchLoop
from maestropy.server.dispatch.spec_sender import RESOURCES_AT_ONCE, SpecSender
from maestropy.store import events, resources, rows, statuses
from maestropy.store.postgres import pool
from maestropy.wire import resync

_PER_CONSUMER = 256
_SCAN_LIMIT = 5000
_SENT_AHEAD_LIMIT = 10_000
# A broker that rejects a topic does so until an operator changes its rules.
_REST_SECONDS = 30.0


class SpecDispatcher:
    """Sends pending events through the broker and marks them as reconciled."""

    def __init__(self, context: Context, broker: port.Broker, sender: SpecSender) -> None:
        self._context = context
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.CONTROLLERS})
        self._broker = broker
        self._capabilities = broker.capabilities
        self._sender = sender
        self._loop = DispatchLoop(context, queue=context.metrics.event_queue, controller=context.metrics.spec)
        self.wake_ups = self._loop.wake_ups
        # Events that a scan found and that were sent before their wake-up came: the wake-up must not send them again.
        self._found_by_scan: set[str] = set()
        self._sent_ahead: dict[str, None] = {}
        self._changed_since: datetime | None = None
        self._resting: dict[str, float] = {}
        """Until when a consumer is left out whose messages the broker rejects, by the monotonic clock."""

    def measure(self) -> None:
        """Set the gauges of the queue."""
        self._loop.measure()

    async def run(self) -> None:
        """Dispatch for ever."""
        await self._loop.run(
            self._dispatch,
            is_idle=lambda: not self._broker.is_online,
            journal=self._journal,
            failed=SpecDispatcherPhrase.HANDLE_FAILED,
            repeats=True,
        )

    def on_online(self) -> None:
        """Dispatch everything that is pending: the broker has been connected."""
        self._resting.clear()
        self.wake_ups.request_rescan()

    def resend_changed_since(self, moment: datetime) -> None:
        """Send again what changed after `moment`, although another instance may have sent it to its own agents."""
        if not self._capabilities.reaches_every_consumer:
            self._changed_since = min(moment, self._changed_since or moment)
            self.wake_ups.request_rescan()

    async def _dispatch(self, ids: Sequence[str], *, everything: bool) -> int:
        if self._changed_since is not None:
            await self._send_changed(self._changed_since)
        pending = await self._read_pending(ids, everything=everything)
        dispatched = 0
        for batch in fairness.fair_batches(pending, at_most=RESOURCES_AT_ONCE, is_ready=self._is_ready):
            dispatched += await self._send(batch)
        return dispatched

    def _is_ready(self, consumer: str) -> bool:
        """Return whether events are sent to `consumer` now; otherwise they stay pending and maintenance finds them."""
        if self._resting and self._resting.get(consumer, 0.0) > self._context.clock.monotonic():
            return False
        return self._broker.is_online and self._broker.has_room(consumer)

    async def _send_changed(self, since: datetime) -> None:
        consumers = self._broker.consumers() or ()
        async with self._context.database.connection() as connection:
            changed = await resources.changed_since(connection, consumers, since)
            removed = await statuses.removed_versions(connection, consumers, since=since)
        self._changed_since = None
        await self._delete_removed(removed)
        for start in range(0, len(changed), RESOURCES_AT_ONCE):
            # Without waiting for room: an agent that does not read is disconnected, and resyncs when it is back.
            await self._sender.send(changed[start : start + RESOURCES_AT_ONCE], can_wait=False)

    async def _read_pending(self, ids: Collection[str], *, everything: bool) -> list[rows.PendingEvent]:
        async with self._context.database.connection() as connection:
            named = await events.read_events(connection, ids) if ids else []
            pending = {event.id: event for event in named if event.id not in self._sent_ahead}
            self._found_by_scan.clear()
            if everything:
                scanned = await events.pending_events(
                    connection, self._broker.consumers(), per_consumer=_PER_CONSUMER, limit=_SCAN_LIMIT
                )
                self._found_by_scan.update(event.id for event in scanned)
                self._found_by_scan.difference_update(ids)
                pending.update((event.id, event) for event in scanned)
            removed = await self._reconcile_removed(connection, pending.values())
        await self._delete_removed(removed)
        return [event for event in pending.values() if self._is_due(event)]

    def _is_due(self, event: rows.PendingEvent) -> bool:
        if event.consumer is None:
            return False
        if self._capabilities.reaches_every_consumer:
            return not event.is_reconciled
        # An event that another instance has reconciled was sent to the agents connected there, not to ours.
        return self._broker.reaches(event.consumer)

    async def _reconcile_removed(
        self, connection: pool.Connection, pending: Collection[rows.PendingEvent]
    ) -> Mapping[str, Mapping[str, resync.StoredVersion]]:
        """Reconcile the events of removed resources; return those whose deletion our agents may not have received.

        Another instance was quicker, with an agent of its own; another agent of the consumer may be connected here.
        """
        orphaned = [event for event in pending if event.consumer is None]
        open_ids = [event.id for event in orphaned if not event.is_reconciled]
        if open_ids:
            await events.reconcile(connection, open_ids, now=self._context.now())
        deleted = [event.resource_id for event in orphaned if event.event_type == "Delete"]
        if not deleted or self._capabilities.reaches_every_consumer:
            return {}
        return await statuses.removed_versions(connection, self._broker.consumers() or (), ids=deleted)

    async def _delete_removed(self, removed: Mapping[str, Mapping[str, resync.StoredVersion]]) -> None:
        """Tell the agents here to delete removed resources; agents that have done so ignore it."""
        for consumer, resources_by_id in removed.items():
            absent = list(resources_by_id.values())
            for start in range(0, len(absent), RESOURCES_AT_ONCE):
                await self._sender.delete_removed(consumer, absent[start : start + RESOURCES_AT_ONCE])

    async def _send(self, batch: Mapping[str, Sequence[rows.PendingEvent]]) -> int:
        """Send a batch of resources and reconcile their events; return how many resources are done."""
        started = self._context.clock.monotonic()
        # A mark that is lost costs one more delivery, which changes nothing: the commit need not wait for the disk.
        if self._capabilities.needs_claims:
            async with self._context.database.transaction(durable=False) as connection:
                batch = await self._claim(connection, batch)
                if not batch:
                    return 0
                results = await self._sender.send_claimed(connection, batch)
                await events.reconcile(connection, _finished(batch, results), now=self._context.now())
        else:
            results = await self._sender.send_pending(batch)
            finished = _finished(batch, results)
            if finished:
                async with self._context.database.transaction(durable=False) as connection:
                    await events.reconcile(connection, finished, now=self._context.now())
                self._remember(self._found_by_scan.intersection(finished))
        sent = [batch[id_][-1].event_type for id_, result in results.items() if result.outcome in port.DELIVERED]
        self._context.metrics.specs_dispatched(sent, seconds=self._context.clock.monotonic() - started)
        self._rest(
            {batch[id_][-1].consumer or "": result.reason for id_, result in results.items() if _rejects(result)}
        )
        return sum(1 for id_ in batch if _is_done(results.get(id_)))

    async def _claim(
        self, connection: pool.Connection, batch: Mapping[str, Sequence[rows.PendingEvent]]
    ) -> dict[str, Sequence[rows.PendingEvent]]:
        """Take the events of a batch until the transaction ends, except those that another instance has taken."""
        claimed = await events.claim(connection, [event.id for pending in batch.values() for event in pending])
        taken = {id_: [event for event in pending if event.id in claimed] for id_, pending in batch.items()}
        return {id_: pending for id_, pending in taken.items() if pending}

    def _remember(self, sent: Collection[str]) -> None:
        self._sent_ahead.update(dict.fromkeys(sent))
        for oldest in list(self._sent_ahead)[: max(0, len(self._sent_ahead) - _SENT_AHEAD_LIMIT)]:
            del self._sent_ahead[oldest]

    def _rest(self, rejections: Mapping[str, str]) -> None:
        """Leave out consumers whose messages the broker rejects, for a while."""
        for consumer, reason in rejections.items():
            self._journal.error(BrokerPhrase.CONSUMER_REJECTED, {LogKey.CONSUMER: consumer, LogKey.REASON: reason})
            self._resting[consumer] = self._context.clock.monotonic() + _REST_SECONDS


def _finished(batch: Mapping[str, Sequence[rows.PendingEvent]], results: Mapping[str, port.SendResult]) -> list[str]:
    """Return the events to reconcile: their resources were sent, cannot be sent, or have been removed."""
    return [
        event.id
        for id_, pending in batch.items()
        if _is_done(results.get(id_))
        for event in pending
        if not event.is_reconciled
    ]


def _is_done(result: port.SendResult | None) -> bool:
    return result is None or result.outcome in port.DONE


def _rejects(result: port.SendResult) -> bool:
    return result.outcome is port.Outcome.REJECTED
