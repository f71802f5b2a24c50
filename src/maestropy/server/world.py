"""What every stage is given: the store, the time, names, the journal and the meters."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.server.metrics import Metrics
from maestropy.store import pool
from maestropy.wire import instant


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The surroundings of a stage; built once in `main`, replaced piece by piece in tests."""

    database: pool.Database
    journal: Journal
    metrics: Metrics
    instance_id: str
    source_id: str = "maestro"
    """Under which name this server speaks to agents."""
    clock: clocks.Clock = field(default_factory=clocks.Clock)
    new_id: Callable[[], str] = clocks.new_id

    def now(self) -> datetime:
        """Return the wall-clock time."""
        return self.clock.now()

    def timestamp(self) -> instant.Timestamp:
        """Return the wall-clock time as events carry it."""
        return instant.from_datetime(self.clock.now())
