"""Send deletions again that no agent has confirmed, in rounds that all servers on a database share.

A round is one transaction: it locks the schedule, puts new deletions into it, and queues delete events for the
consumers whose turn it is. Then the schedule owes a pause, which begins when the round has been committed. A Go server
that finds the pause owed starts it at its next look; here the server that did the work starts it at once.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import MaintenancePhrase
from maestropy.server.context import Context
from maestropy.server.decide import delete_recovery as rules
from maestropy.server.telemetry.delete_recovery import Outcome
from maestropy.store import delete_recovery, errors, instances, rows
from maestropy.store.postgres import pool

REPORT_EVERY = timedelta(seconds=60)
_ROUND_SECONDS = 30.0
_REPORT_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """What one transaction did."""

    outcome: Outcome
    initialized: int = 0
    consumers: int = 0
    queued: Sequence[rows.UnconfirmedDeletion] = ()


class DeleteRecovery:
    """Sends unconfirmed deletions again, together with the other servers on the database."""

    def __init__(self, context: Context, policy: rules.RecoveryPolicy) -> None:
        self._context = context
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.CONTROLLERS})
        self._metrics = context.metrics.delete_recovery
        self._policy = policy

    async def run_round(self) -> None:
        """Do a round if one is due, and start the pause after it."""
        if await self._attempt() in ("committed", "empty"):
            await self._attempt()

    async def report(self) -> None:
        """Read the gauges; they keep their values when the database does not answer in time."""
        try:
            async with asyncio.timeout(_REPORT_SECONDS), self._context.database.connection() as connection:
                self._metrics.backlog(await delete_recovery.backlog(connection))
        except (errors.StoreError, TimeoutError) as error:
            self._metrics.backlog_failed()
            self._journal.error(MaintenancePhrase.BACKLOG_FAILED, {LogKey.REASON: type(error).__name__})

    async def _attempt(self) -> Outcome:
        """Run one transaction, with a limit; count and log what it did."""
        started = self._context.clock.monotonic()
        try:
            async with asyncio.timeout(_ROUND_SECONDS):
                done = await self._run()
        except (errors.StoreError, TimeoutError) as error:
            done = _Round(outcome="error")
            # Like a Go server without the text of the error, which can have identifiers of customers.
            self._journal.error(MaintenancePhrase.RECOVERY_FAILED, {LogKey.REASON: type(error).__name__})
        self._metrics.round_ended(done.outcome, seconds=self._context.clock.monotonic() - started)
        if done.outcome == "committed":
            self._report(done)
        return done.outcome

    def _report(self, done: _Round) -> None:
        queued, now = len(done.queued), self._context.now()
        self._metrics.worked(initialized=done.initialized, consumers=done.consumers, published=queued)
        for deletion in done.queued:
            self._journal.info(
                MaintenancePhrase.DELETION_REPEATED,
                {
                    LogKey.RESOURCE_ID: deletion.id,
                    LogKey.CONSUMER_NAME: deletion.consumer,
                    LogKey.SOURCE: deletion.source,
                    LogKey.AGE: f"{(now - deletion.deleted_at).total_seconds():.1f}s",
                },
            )
        counts = {LogKey.INITIALIZED: done.initialized, LogKey.CONSUMERS: done.consumers, LogKey.PUBLISHED: queued}
        self._journal.info(MaintenancePhrase.RECOVERY_ROUND, counts, v=2)

    async def _run(self) -> _Round:
        async with self._context.database.transaction() as connection:
            owes_pause = await delete_recovery.claim_round(connection, now=await _now(connection))
            if owes_pause is None:
                return _Round(outcome="noop")
            now = await _now(connection)
            if owes_pause:
                await delete_recovery.start_pause(connection, until=now + rules.PAUSE)
                return _Round(outcome="cooldown")
            initialized = await self._initialize(connection, now)
            consumers = await delete_recovery.due_consumers(connection, now=now, limit=self._policy.batch)
            queued = await self._queue(connection, consumers, now) if consumers else []
            await delete_recovery.owe_pause(connection)
        outcome: Outcome = "committed" if initialized or consumers else "empty"
        return _Round(outcome=outcome, initialized=initialized, consumers=len(consumers), queued=queued)

    async def _initialize(self, connection: pool.Connection, now: datetime) -> int:
        """Put deletions into the schedule that have none."""
        deletions = await delete_recovery.lock_unscheduled(connection, limit=self._policy.batch)
        if deletions:
            retries = {deletion.id: rules.first_retry(deletion, self._policy) for deletion in deletions}
            await delete_recovery.set_retries(connection, retries)
            await delete_recovery.queue_consumers(connection, rules.first_turns(deletions, self._policy, now))
        return len(deletions)

    async def _queue(
        self, connection: pool.Connection, consumers: Sequence[str], now: datetime
    ) -> list[rows.UnconfirmedDeletion]:
        """Queue the deletions of consumers again, and give both their next turn; return what was queued."""
        per_consumer = rules.turns_per_consumer(self._policy, consumers=len(consumers))
        due = await delete_recovery.lock_due(connection, consumers, now=now, per_consumer=per_consumer)
        events = {deletion.id: self._context.new_id() for deletion in due}
        queued = await delete_recovery.announce_again(connection, events, now=now)
        retries = {
            deletion.id: rules.next_retry(
                deletion, self._policy, event_id=events[deletion.id] if deletion.id in queued else None, now=now
            )
            for deletion in due
        }
        await delete_recovery.set_retries(connection, retries)
        await delete_recovery.advance_consumers(connection, consumers, now=now)
        return [deletion for deletion in due if deletion.id in queued]


async def _now(connection: pool.Connection) -> datetime:
    """Return the time of the database, by which all servers measure the pause."""
    return datetime.fromtimestamp(await instances.database_time(connection), tz=UTC)
