"""Write history entries that belong to no transaction: refused requests, connects and disconnects of agents.

Entries wait in a bounded queue and are written in batches, so that a request never waits for its entry. What a kill
or a long outage of the database loses is only this kind of entry. Entries of changes are written with the change.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import MaintenancePhrase
from maestropy.server.context import Context
from maestropy.server.decide.history import kinds, rate
from maestropy.store import errors as store_errors
from maestropy.store import rows
from maestropy.store.history import history_entries

_MAX_WAITING: Final = 2000
_BATCH: Final = 500
_RETRY_SECONDS: Final = 2.0
_CONNECTIONS: Final = frozenset((kinds.AGENT_CONNECTED, kinds.AGENT_DISCONNECTED))


class HistoryWriter:
    """Writes what happens outside of transactions."""

    def __init__(self, context: Context, *, is_enabled: bool = True) -> None:
        self._context = context
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.CONTROLLERS})
        self.is_enabled = is_enabled
        self._waiting: deque[rows.HistoryEntry] = deque()
        self._has_entries = asyncio.Event()
        self._refusals = rate.for_refusals()
        self._connections = rate.for_connections()
        self._lost = 0

    def add(self, entry: rows.HistoryEntry) -> None:
        """Queue an entry, unless its client has caused too many."""
        if not self.is_enabled:
            return
        now = self._context.clock.monotonic()
        is_connection = entry.kind in _CONNECTIONS
        budget = self._connections if is_connection else self._refusals
        client = entry.consumer if is_connection else f"{entry.requester.user}@{entry.requester.address}"
        if budget.allows(client[: kinds.TEXT_CHARACTERS], now):
            self._put(_storable(entry))

    def add_own(self, entry: rows.HistoryEntry) -> None:
        """Queue an entry about the history itself."""
        if self.is_enabled:
            self._put(entry)

    def note_left_out(self) -> None:
        """Queue an entry that says how many were left out since the last one."""
        refused, connections = self._refusals.take_left_out(), self._connections.take_left_out()
        lost, self._lost = self._lost, 0
        counts = {"refused_requests": refused, "connections": connections, "lost": lost}
        if any(counts.values()):
            instance = {"instance": self._context.instance_id}
            detail = kinds.detail({**counts, **instance})
            self.add_own(rows.HistoryEntry(kind=kinds.HISTORY_LEFT_OUT, at=self._context.now(), detail=detail))

    async def run(self) -> None:
        """Write entries for ever."""
        while True:
            await self._has_entries.wait()
            if not await self._write_batch():
                await asyncio.sleep(_RETRY_SECONDS)

    async def finish(self) -> None:
        """Write what still waits, if the database takes it."""
        while self._waiting and await self._write_batch():
            pass

    def _put(self, entry: rows.HistoryEntry) -> None:
        if len(self._waiting) >= _MAX_WAITING:
            self._waiting.popleft()
            self._lost += 1
        self._waiting.append(entry)
        self._has_entries.set()

    async def _write_batch(self) -> bool:
        """Write the oldest entries; return False if they have to wait."""
        batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
        if not self._waiting:
            self._has_entries.clear()
        try:
            await self._write(batch)
        except store_errors.InvalidValue as error:
            self._lost += len(batch)
            self._journal.error(MaintenancePhrase.HISTORY_NOT_WRITTEN, {LogKey.COUNT: len(batch)}, err=error)
        except store_errors.StoreError as error:
            self._journal.warning(MaintenancePhrase.HISTORY_NOT_WRITTEN, {LogKey.COUNT: len(batch)}, err=error)
            self._waiting.extendleft(reversed(batch))
            self._has_entries.set()
            return False
        return True

    async def _write(self, entries: Sequence[rows.HistoryEntry]) -> None:
        async with self._context.database.connection() as connection:
            refused = [entry for entry in entries if entry.kind == kinds.REQUEST_REFUSED]
            others = [entry for entry in entries if entry.kind != kinds.REQUEST_REFUSED]
            await history_entries.record(connection, [*others, *await history_entries.attributed(connection, refused)])


def _storable(entry: rows.HistoryEntry) -> rows.HistoryEntry:
    """Bound and clean every text: refused requests carry what nobody has checked."""
    requester = rows.Requester(user=kinds.short(entry.requester.user), address=kinds.short(entry.requester.address))
    return replace(
        entry,
        subject_id=kinds.short(entry.subject_id),
        consumer=kinds.short(entry.consumer),
        source=kinds.short(entry.source),
        operation_id=kinds.short(entry.operation_id, limit=128),
        requester=requester,
    )
