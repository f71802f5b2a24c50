"""Note when agents were connected or sent something, so that a consumer with a living agent is not retired.

An agent on a gRPC stream is there while its stream is open; behind a message broker it is there when it sends. The same
notes tell which connections ended without an entry in the history, because the server that had them was killed.
"""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Final

from maestropy.server.context import Context
from maestropy.server.decide.history import kinds
from maestropy.store import actions, errors, instances, rows
from maestropy.store.history import history_entries
from maestropy.store.postgres import locks, pool

EVERY = timedelta(seconds=60)
_LOST_AFTER: Final = 3 * EVERY
"""A connected agent is noted once in `EVERY`. Nobody has seen one for so long: it is not connected."""


class AgentPresence:
    """The consumers whose agents this instance has seen since the last time they were written."""

    def __init__(
        self,
        context: Context,
        *,
        connected: Callable[[], Collection[str] | None],
        record: Callable[[rows.HistoryEntry], None] | None,
    ) -> None:
        """Prepare; `connected` are the consumers whose agents are connected here, None if that cannot be known.

        `record` adds an entry to the history; None if none is kept.
        """
        self._context = context
        self._connected = connected
        self._record = record
        self._heard: set[str] = set()
        self._written: datetime | None = None
        """When this instance last wrote."""
        self._writing_since: datetime | None = None
        """Since when every write succeeded; None if the last one failed."""
        self._looked_until: datetime | None = None
        """Agents that were last seen before this were looked at."""

    def note(self, consumer: str) -> None:
        """Note a message of an agent, or the end of its stream."""
        self._heard.add(consumer)

    async def write(self) -> None:
        """Write who was seen, and record the ends of connections that no server has any more."""
        now, connected = self._context.now(), self._connected()
        heard, self._heard = self._heard, set()
        try:
            async with self._context.database.transaction(durable=False) as connection:
                if seen := heard.union(connected or ()):
                    await actions.note_seen(connection, seen, now=now)
                if connected is not None and self._record is not None:
                    await self._end_lost(connection, now=now)
        except errors.StoreError:
            self._heard |= heard
            self._writing_since = None
            raise
        if self._written is not None and now - self._written > _LOST_AFTER:
            self._connect_again(connected or (), now=now)
        self._written, self._writing_since = now, self._writing_since or now

    async def _end_lost(self, connection: pool.Connection, *, now: datetime) -> None:
        """Record the ends once this instance has written for long enough.

        After a start, and after an outage of the database, other instances need time to note their agents, and agents
        to connect again.
        """
        lost_before = now - _LOST_AFTER
        if self._writing_since is None or self._writing_since > lost_before:
            return
        if await instances.try_lock(connection, locks.LOST_AGENTS_CHECK):
            await history_entries.end_lost_connections(
                connection, after=self._looked_until, seen_before=lost_before, now=now
            )
            self._looked_until = lost_before

    def _connect_again(self, consumers: Collection[str], *, now: datetime) -> None:
        """Record connections again that others may have recorded as ended while this instance could not write."""
        if self._record is None:
            return
        detail = kinds.detail({"instance": self._context.instance_id})
        for consumer in consumers:
            self._record(rows.HistoryEntry(kind=kinds.AGENT_CONNECTED, at=now, consumer=consumer, detail=detail))
