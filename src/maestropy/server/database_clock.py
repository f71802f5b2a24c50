"""Correct the clock of this host by the clock of the database.

Heartbeats and retention compare times that different instances wrote: with a wrong clock an instance would mark others
as not ready, and purge rows that they still need. A difference of up to a second is harmless and ignored. The log keeps
the time of the host.
"""

from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import LifecyclePhrase
from maestropy.server.telemetry.metrics import Metrics
from maestropy.store import instances
from maestropy.store.postgres import pool

COMPARE_EVERY_SECONDS = 10.0
"""How often the clocks are compared: a clock may be set while the server runs."""
_TOLERANCE_SECONDS = 1.0


class DatabaseClock:
    """The clock of this host, corrected by the database clock."""

    def __init__(self, host: clocks.Clock, *, journal: Journal, metrics: Metrics) -> None:
        self._host = host
        self._metrics = metrics
        self._journal = journal
        self._offset = 0.0

    def epoch(self) -> float:
        """Return the time of the database in seconds since 1970."""
        return self._host.epoch() + self._offset

    async def compare(self, database: pool.Database) -> None:
        """Read the time of the database, and set the offset if the clocks differ."""
        async with database.connection() as connection:
            before = self._host.epoch()
            database_seconds = await instances.database_time(connection)
            host_seconds = (before + self._host.epoch()) / 2
        self._metrics.dependencies.clock_skew(host_seconds - database_seconds)
        offset = database_seconds - host_seconds if abs(database_seconds - host_seconds) > _TOLERANCE_SECONDS else 0.0
        if abs(offset - self._offset) > _TOLERANCE_SECONDS:
            self._journal.warning(
                LifecyclePhrase.CLOCKS_DIFFER,
                {LogKey.REASON: f"this host is {-offset:+.1f} s from it"},
            )
        self._offset = offset
