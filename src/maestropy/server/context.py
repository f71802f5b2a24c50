"""The dependencies that every server component shares: database, log, metrics, clock and IDs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.server.telemetry.metrics import Metrics
from maestropy.server.telemetry.request_spans import RequestSpans
from maestropy.store.postgres import pool
from maestropy.wire import timestamps


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Shared dependencies of one server instance; `main` builds it, tests replace single fields."""

    database: pool.Database
    journal: Journal
    metrics: Metrics
    instance_id: str
    source_id: str = "maestro"
    """The CloudEvents source under which this server sends to agents."""
    clock: clocks.Clock = field(default_factory=clocks.Clock)
    new_id: Callable[[], str] = clocks.new_id
    spans: RequestSpans = field(default_factory=RequestSpans)

    def now(self) -> datetime:
        """Return the wall-clock time."""
        return self.clock.now()

    def timestamp(self) -> timestamps.Timestamp:
        """Return the wall-clock time as events carry it."""
        return timestamps.from_datetime(self.clock.now())
