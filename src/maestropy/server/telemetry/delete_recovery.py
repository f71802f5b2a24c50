"""Metrics of delete recovery, with the names, labels and buckets of the Go server.

Every series exists from the start, so that a rate of zero is not a gap.
"""

from typing import Final, Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from maestropy.store import rows

Outcome = Literal["committed", "empty", "cooldown", "noop", "error"]
"""A round that found something to do or nothing, the start of its pause, no round, or a failed transaction."""

_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60)
_PREFIX: Final = "delete_recovery"
# Read from the database, so every process has the same value; the newest one counts.
_FROM_DATABASE: Final = "livemostrecent"


class DeleteRecoveryMetrics:
    """Counts the rounds and shows what waits."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            f"{_PREFIX}_round_duration_seconds",
            "How long a transaction of delete recovery took, with its locks and its commit.",
            ["outcome"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._work = Counter(
            f"{_PREFIX}_work_total",
            "Committed work: deletions put into the schedule, consumers that had a turn, events queued.",
            ["kind"],
            registry=registry,
        )
        self._deletions = _gauge(registry, "tombstone_backlog", "Deletions that no agent has confirmed.", ["state"])
        self._ages = _gauge(
            registry, "tombstone_oldest_age_seconds", "Age of the oldest unconfirmed deletion.", ["state"]
        )
        self._consumers = _gauge(registry, "consumer_queue", "Consumers with unconfirmed deletions.", ["state"])
        self._events = _gauge(registry, "pending_delete_events", "Delete events that wait for their delivery.")
        self._event_age = _gauge(
            registry, "pending_delete_event_oldest_age_seconds", "Age of the oldest delete event that waits."
        )
        self._failures = Counter(
            f"{_PREFIX}_snapshot_errors_total", "Failed readings of the gauges of delete recovery.", registry=registry
        )
        for outcome in get_args(Outcome):
            self._seconds.labels(outcome)
        for kind in ("initialized", "consumers", "published"):
            self._work.labels(kind)
        for state in ("unscheduled", "due", "delayed"):
            self._deletions.labels(state)
            self._ages.labels(state)
        for state in ("due", "scheduled"):
            self._consumers.labels(state)

    def round_ended(self, outcome: Outcome, *, seconds: float) -> None:
        """Observe one transaction."""
        self._seconds.labels(outcome).observe(seconds)

    def worked(self, *, initialized: int, consumers: int, published: int) -> None:
        """Count what a committed round did."""
        self._work.labels("initialized").inc(initialized)
        self._work.labels("consumers").inc(consumers)
        self._work.labels("published").inc(published)

    def backlog(self, backlog: rows.DeletionBacklog) -> None:
        """Set what waits in the database."""
        self._deletions.labels("unscheduled").set(backlog.unscheduled)
        self._deletions.labels("due").set(backlog.due)
        self._deletions.labels("delayed").set(backlog.delayed)
        self._ages.labels("unscheduled").set(max(0.0, backlog.oldest_unscheduled))
        self._ages.labels("due").set(max(0.0, backlog.oldest_due))
        self._ages.labels("delayed").set(max(0.0, backlog.oldest_delayed))
        self._consumers.labels("due").set(backlog.due_consumers)
        self._consumers.labels("scheduled").set(backlog.scheduled_consumers)
        self._events.set(backlog.pending_events)
        self._event_age.set(max(0.0, backlog.oldest_pending_event))

    def backlog_failed(self) -> None:
        """Count a failed reading of the gauges, which keep their values."""
        self._failures.inc()


def _gauge(registry: CollectorRegistry, name: str, text: str, labels: list[str] | None = None) -> Gauge:
    return Gauge(f"{_PREFIX}_{name}", text, labels or [], registry=registry, multiprocess_mode=_FROM_DATABASE)
