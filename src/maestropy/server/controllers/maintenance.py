"""Maintain the event tables periodically.

Wake-ups can be lost, agents can stay silent, and tables grow. Maintenance lets the dispatchers rescan, queues events of
unconfirmed resources again, and purges events that are finished. It sends nothing itself.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta

from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import MaintenancePhrase
from maestropy.server.context import Context
from maestropy.store import actions, consumers, data_safety, events, instances, statuses
from maestropy.store.postgres import locks

_PURGE_LIMIT = 5000
# By then every living instance has rescanned many times: one that has not broadcast an event never will.
_STATUS_EVENT_LIFETIME = timedelta(hours=1)
# Longer than status updates are repeated, and than an instance can miss notifications without noticing it.
_FINAL_STATUS_LIFETIME = timedelta(minutes=5)
_DETECTORS_EVERY = timedelta(minutes=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """How long maintenance waits."""

    undelivered: timedelta
    """A resource without any status is sent again after this time; zero: never."""
    stale_delete: timedelta
    """Pending delete events are given up after this time; zero: never."""
    event_retention: timedelta
    """How long reconciled events are kept."""

    @property
    def detectors_every(self) -> timedelta:
        """How often the two detectors run: every two minutes, more often when a threshold is shorter."""
        limits = [limit / 2 for limit in (self.undelivered, self.stale_delete) if limit]
        return min([_DETECTORS_EVERY, *limits])


class Maintenance:
    """The periodic tasks on the event tables."""

    def __init__(
        self,
        context: Context,
        *,
        thresholds: Thresholds,
        rescan: Callable[[], None],
        connected_consumers: Callable[[], Collection[str] | None] = lambda: None,
    ) -> None:
        """Prepare; `connected_consumers` are those whose agents are connected here, None if that cannot be known."""
        self._connected_consumers = connected_consumers
        self._started_at = context.now()
        self._context = context
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.CONTROLLERS})
        self._thresholds = thresholds
        self._rescan = rescan

    @property
    def detectors_every(self) -> timedelta:
        """How often `detect` should run."""
        return self._thresholds.detectors_every

    async def rescan(self) -> None:
        """Let the dispatchers read everything that is pending: a wake-up may have been lost."""
        self._rescan()

    async def purge(self) -> None:
        """Delete finished events, a bounded number at a time."""
        now = self._context.now()
        async with self._context.database.transaction(durable=False) as connection:
            done_before = now - self._thresholds.event_retention
            await events.purge_events(connection, done_before=done_before, limit=_PURGE_LIMIT)
            await events.purge_status_events(
                connection,
                broadcast_before=done_before,
                removed_before=now - _FINAL_STATUS_LIFETIME,
                created_before=now - _STATUS_EVENT_LIFETIME,
                limit=_PURGE_LIMIT,
            )

    async def retire_orphans(self) -> None:
        """Reconcile events whose resources a Go server or an operator has removed; ours do that with the removal."""
        async with self._context.database.transaction(durable=False) as connection:
            await events.retire_orphans(connection, now=self._context.now(), limit=_PURGE_LIMIT)

    async def detect(self) -> None:
        """Queue resources without a status again, and give up deletions that no agent takes; one instance at a time."""
        if self._thresholds.undelivered:
            await self._republish()
        if self._thresholds.stale_delete:
            await self._retire()

    async def measure(self) -> None:
        """Read the gauges."""
        now, connected = self._context.now(), self._connected_consumers()
        # What was stored before this instance was registered is not for it.
        since = max(self._started_at, now - _STATUS_EVENT_LIFETIME)
        async with self._context.database.connection() as connection:
            age = await events.oldest_pending_age(connection, now=now)
            usage = await events.notification_queue_usage(connection)
            status_age = await statuses.oldest_missed_age(connection, self._context.instance_id, since=since, now=now)
            counts = await consumers.count_with_works(connection, connected=connected or ())
            held = await data_safety.held(connection)
            deliverable = await events.oldest_pending_age_of(connection, connected, now=now) if connected else 0.0
            paused = await actions.count_pauses(connection, now=now)
        self._context.metrics.oldest_event(age)
        self._context.metrics.notification_queue(usage)
        dependencies = self._context.metrics.dependencies
        dependencies.oldest_status_event(status_age)
        dependencies.consumers(counts, knows_agents=connected is not None)
        if connected is not None:
            dependencies.oldest_deliverable_event(deliverable)
        dependencies.held(held)
        dependencies.paused(consumers=paused.consumers, oldest_seconds=paused.oldest_seconds)

    async def _republish(self) -> None:
        now = self._context.now()
        async with self._context.database.transaction() as connection:
            if not await instances.try_lock(connection, locks.UNDELIVERED_CHECK):
                self._journal.info(MaintenancePhrase.UNDELIVERED_ELSEWHERE, v=4)
                return
            republished = await events.republish_undelivered(
                connection, unchanged_since=now - self._thresholds.undelivered, now=now
            )
        for resource in republished:
            self._journal.info(
                MaintenancePhrase.REPUBLISHED,
                {
                    LogKey.RESOURCE_ID: resource.id,
                    LogKey.CONSUMER_NAME: resource.consumer,
                    LogKey.SOURCE: resource.source,
                    LogKey.AGE: f"{(now - resource.created_at).total_seconds():.1f}s",
                },
            )
        self._context.metrics.undelivered_republished(len(republished))

    async def _retire(self) -> None:
        now = self._context.now()
        async with self._context.database.transaction() as connection:
            if not await instances.try_lock(connection, locks.STALE_DELETE_CHECK):
                self._journal.info(MaintenancePhrase.STALE_DELETES_ELSEWHERE, v=4)
                return
            retired = await events.retire_stale_deletes(
                connection, deleted_before=now - self._thresholds.stale_delete, now=now
            )
        if retired:
            self._journal.info(MaintenancePhrase.STALE_DELETES_RETIRED, {LogKey.COUNT: retired})
        self._context.metrics.stale_deletes_retired(retired)
