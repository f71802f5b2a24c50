"""Create the partitions of the history ahead of time, and drop those that are too old or too many.

Every instance does this, one at a time. A partition whose lock is not free within a fifth of a second is left for the
next round, so that writers never wait longer. `decide.history.retention` decides.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import MaintenancePhrase
from maestropy.server.context import Context
from maestropy.server.decide.history import kinds, retention
from maestropy.store import errors as store_errors
from maestropy.store import rows
from maestropy.store.history import history_partitions

EVERY: Final = timedelta(minutes=2)
_PURGE_LIMIT: Final = 5000


class HistoryRetention:
    """Keeps the history bounded."""

    def __init__(
        self, context: Context, limits: retention.Limits, *, record: Callable[[rows.HistoryEntry], None]
    ) -> None:
        self._context = context
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.CONTROLLERS})
        self._limits = limits
        self._record = record
        self._is_told = False

    async def run_round(self) -> None:
        """Create, drop and purge what is due."""
        now = self._context.now()
        database = self._context.database
        async with database.connection() as connection:
            partitions = {each.name: each for each in await history_partitions.read(connection)}
        stored = [retention.Stored(*partition) for partition in partitions.values()]
        plan = retention.plan(stored, now=now, limits=self._limits)
        if history_partitions.DEFAULT not in partitions:
            await self._attempt(history_partitions.DEFAULT, history_partitions.ensure_default(database))
        for period in plan.create:
            await self._attempt(f"of {period.start.isoformat()}", history_partitions.create(database, period))
        for name, reason in plan.drop:
            if await self._attempt(name, history_partitions.drop(database, partitions[name])):
                self._note(partitions[name], reason=reason)
        if plan.empty and await self._attempt(plan.empty, history_partitions.empty(database, partitions[plan.empty])):
            self._note(partitions[plan.empty], reason="twice the size limit")
        await history_partitions.purge_default(database, before=now - self._limits.age, limit=_PURGE_LIMIT)

    async def _attempt(self, name: str, change: Awaitable[bool | None]) -> bool:
        """Make one change; one that fails is tried again in the next round."""
        try:
            return bool(await change)
        except store_errors.StoreError as error:
            fields = {LogKey.PARTITION: name}
            # A role that may not create tables stays so: the default partition takes all rows, which is said once.
            if not (self._is_told and isinstance(error, store_errors.PermissionMissing)):
                self._journal.warning(MaintenancePhrase.HISTORY_PARTITION_KEPT, fields, err=error)
            self._is_told |= isinstance(error, store_errors.PermissionMissing)
            return False

    def _note(self, partition: history_partitions.Partition, *, reason: str) -> None:
        members = {"partition": partition.name, "bytes": partition.bytes, "reason": reason}
        self._journal.info(MaintenancePhrase.HISTORY_DROPPED, {LogKey.PARTITION: partition.name, LogKey.REASON: reason})
        self._record(
            rows.HistoryEntry(kind=kinds.HISTORY_DROPPED, at=self._context.now(), detail=kinds.detail(members))
        )
