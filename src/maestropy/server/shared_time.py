"""What time is it for all instances? The database's.

Instances whose clocks differ would take each other for dead, and remove what others still need: both are decided by
comparing times that different hosts wrote. So an instance whose clock is off counts in the database's time. A second
more or less does no harm and is left as it is. The journal keeps the time of its host.
"""

from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.journal.fields import Key
from maestropy.store import instances, pool

EVERY_SECONDS = 10.0
"""How often the two are compared: clocks are set while a server runs."""
_TOLERANCE_SECONDS = 1.0


class SharedTime:
    """The time of this host, put right."""

    def __init__(self, host: clocks.Clock, *, journal: Journal) -> None:
        self._host = host
        self._journal = journal
        self._behind = 0.0

    def epoch(self) -> float:
        """Return seconds since 1970 as the database counts them."""
        return self._host.epoch() + self._behind

    async def compare(self, database: pool.Database) -> None:
        """Ask the database for its time, and go by it if ours is wrong."""
        async with database.connection() as connection:
            before = self._host.epoch()
            theirs = await instances.database_time(connection)
            ours = (before + self._host.epoch()) / 2
        behind = theirs - ours if abs(theirs - ours) > _TOLERANCE_SECONDS else 0.0
        if abs(behind - self._behind) > _TOLERANCE_SECONDS:
            self._journal.warning(
                "the clock of this host and that of the database differ; the database's counts",
                {Key.REASON: f"this host is {-behind:+.1f} s from it"},
            )
        self._behind = behind
