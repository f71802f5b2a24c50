"""Stage: from time to time, look at the world again.

Wake-ups can be lost, agents can fall silent, tables grow. The sweep finds what nobody was told of within seconds,
sends again what nobody answered, and removes what nobody needs.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta

from maestropy.journal.fields import Key, Logger
from maestropy.journal.fields import Sweep as Phrase
from maestropy.server.decide import patience
from maestropy.server.world import World
from maestropy.store import events, instances, locks, reminders

_PURGE_LIMIT = 5000
# By then every living instance has swept many times: whoever has not passed an event on will not do so any more.
_STATUS_EVENT_LIFETIME = timedelta(hours=1)
# Longer than reports are repeated, and than an instance can be without notifications and not know it.
_LAST_WORDS_KEPT = timedelta(minutes=5)
_DETECTORS_EVERY = timedelta(minutes=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """How patient the sweep is."""

    undelivered: timedelta
    """After this long without any status a bundle is sent again; zero: never."""
    stale_delete: timedelta
    """After this long the pending events of a deletion are given up; zero: never."""
    event_retention: timedelta
    """How long finished events stay."""

    @property
    def detectors_every(self) -> timedelta:
        """How often the two detectors look: every two minutes, more often when a threshold is shorter."""
        limits = [limit / 2 for limit in (self.undelivered, self.stale_delete) if limit]
        return min([_DETECTORS_EVERY, *limits])


class Sweep:
    """Goes round and round."""

    def __init__(
        self,
        world: World,
        *,
        thresholds: Thresholds,
        look_again: Callable[[], None],
        in_reach: Callable[[], Collection[str] | None],
    ) -> None:
        self._world = world
        self._journal = world.journal.bind({Key.LOGGER: Logger.CONTROLLERS})
        self._thresholds = thresholds
        self._look_again = look_again
        self._in_reach = in_reach

    @property
    def detectors_every(self) -> timedelta:
        """How often `detect` should run."""
        return self._thresholds.detectors_every

    async def look_again(self) -> None:
        """Make deliver and fanout look for what they were not told of."""
        self._look_again()

    async def purge(self) -> None:
        """Remove events that are done, a bounded number at a time."""
        now = self._world.now()
        async with self._world.database.transaction(durable=False) as connection:
            await events.retire_orphans(connection, now=now, limit=_PURGE_LIMIT)
            done_before = now - self._thresholds.event_retention
            await events.purge_events(connection, done_before=done_before, limit=_PURGE_LIMIT)
            await events.purge_status_events(
                connection,
                told_before=done_before,
                ended_before=now - _LAST_WORDS_KEPT,
                created_before=now - _STATUS_EVENT_LIFETIME,
                limit=_PURGE_LIMIT,
            )

    async def detect(self) -> None:
        """Send again what nobody answered, and give up deletions nobody takes; one instance at a time."""
        if self._thresholds.undelivered:
            await self._republish()
        if self._thresholds.stale_delete:
            await self._retire()

    async def remind(self) -> None:
        """Tell the agents within our reach again of deletions whose end they have not reported."""
        consumers = self._in_reach()
        if consumers is not None and not consumers:
            return
        now = self._world.now()
        async with self._world.database.transaction() as connection:
            if not await instances.try_lock(connection, locks.REMINDERS):
                return
            found = await reminders.unconfirmed_deletions(
                connection, consumers, marked_before=now - patience.FIRST_WAIT, now=now, limit=patience.AT_ONCE
            )
            if found:
                event_ids = [patience.event_id(self._world.new_id()) for _ in found]
                next_at = {each.id: now + patience.next_wait(now - each.deleted_at) for each in found}
                await reminders.remind(connection, next_at, event_ids=event_ids, now=now)
        for each in found:
            self._journal.info(
                Phrase.REMINDED,
                {
                    Key.RESOURCE_ID: each.id,
                    Key.CONSUMER_NAME: each.consumer,
                    Key.SOURCE: each.source,
                    Key.AGE: f"{(now - each.deleted_at).total_seconds():.1f}s",
                },
            )

    async def measure(self) -> None:
        """Read the gauges."""
        async with self._world.database.connection() as connection:
            age = await events.oldest_pending_age(connection, now=self._world.now())
            usage = await events.notification_queue_usage(connection)
        self._world.metrics.oldest_event(age)
        self._world.metrics.notification_queue(usage)

    async def _republish(self) -> None:
        now = self._world.now()
        async with self._world.database.transaction() as connection:
            if not await instances.try_lock(connection, locks.UNDELIVERED_CHECK):
                self._journal.info(Phrase.UNDELIVERED_ELSEWHERE, v=4)
                return
            found = await events.republish_undelivered(
                connection, silent_since=now - self._thresholds.undelivered, now=now
            )
        for each in found:
            self._journal.info(
                Phrase.REPUBLISHED,
                {
                    Key.RESOURCE_ID: each.id,
                    Key.CONSUMER_NAME: each.consumer,
                    Key.SOURCE: each.source,
                    Key.AGE: f"{(now - each.created_at).total_seconds():.1f}s",
                },
            )
        self._world.metrics.undelivered_republished(len(found))

    async def _retire(self) -> None:
        now = self._world.now()
        async with self._world.database.transaction() as connection:
            if not await instances.try_lock(connection, locks.STALE_DELETE_CHECK):
                self._journal.info(Phrase.STALE_DELETES_ELSEWHERE, v=4)
                return
            retired = await events.retire_stale_deletes(
                connection, marked_before=now - self._thresholds.stale_delete, now=now
            )
        if retired:
            self._journal.info(Phrase.STALE_DELETES_RETIRED, {Key.COUNT: retired})
        self._world.metrics.stale_deletes_retired(retired)
