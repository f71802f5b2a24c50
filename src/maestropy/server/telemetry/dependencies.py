"""Metrics of what the server depends on: database, message broker, agents, certificates and clocks.

The Go server has none of them. Series of a dependency that is not configured do not exist.
"""

from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram

from maestropy.store import rows

_CHECK_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
# Read from the database, so every process has the same value; the newest one counts.
_FROM_DATABASE: Final = "livemostrecent"


class DependencyMetrics:
    """One method for each fact about a dependency."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._database_up = Gauge(
            "maestropy_database_up",
            "1 while the database answers, 0 while it does not.",
            registry=registry,
            multiprocess_mode="livemin",
        )
        # A server starts only with a database.
        self._database_up.set(1)
        self._database_seconds = Histogram(
            "maestropy_database_check_duration_seconds",
            "How long the database took to answer the check that runs every three seconds.",
            buckets=_CHECK_SECONDS,
            registry=registry,
        )
        self._broker = Gauge(
            "maestropy_broker_connected",
            "1 while this instance is connected to the message broker.",
            ["broker"],
            registry=registry,
            multiprocess_mode="livemin",
        )
        self._consumers = Gauge(
            "maestropy_consumers_with_works",
            "Consumers that have at least one resource.",
            registry=registry,
            multiprocess_mode=_FROM_DATABASE,
        )
        self._connected = Gauge(
            "maestropy_consumers_with_works_connected",
            "Consumers with resources whose agents are connected to this instance.",
            ["broker"],
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._oldest_status_event = Gauge(
            "maestropy_status_event_oldest_age_seconds",
            "Age of the oldest status event that this instance has not sent to subscribers.",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self._oldest_deliverable_event = Gauge(
            "maestropy_deliverable_event_oldest_age_seconds",
            "Age of the oldest pending spec event whose agent is connected to this instance.",
            ["broker"],
            registry=registry,
            multiprocess_mode="livemax",
        )
        self._held_works = Gauge(
            "maestropy_held_works",
            "Works that data-safety holds of agents keep as they are.",
            registry=registry,
            multiprocess_mode=_FROM_DATABASE,
        )
        self._held_consumers = Gauge(
            "maestropy_held_consumers",
            "Consumers whose agents have a data-safety hold.",
            registry=registry,
            multiprocess_mode=_FROM_DATABASE,
        )
        self._pending_evictions = Gauge(
            "maestropy_pending_evictions",
            "Works that agents delete after the eviction grace period, because the database does not have them.",
            registry=registry,
            multiprocess_mode=_FROM_DATABASE,
        )
        self._next_eviction = Gauge(
            "maestropy_next_eviction_timestamp_seconds",
            "When an agent deletes the first of these works, in seconds since 1970; 0 if there is none.",
            registry=registry,
            multiprocess_mode=_FROM_DATABASE,
        )
        self._paused_consumers = Gauge(
            "maestropy_paused_consumers",
            "Consumers to which an operator has paused the delivery of specs.",
            registry=registry,
            multiprocess_mode=_FROM_DATABASE,
        )
        self._oldest_pause = Gauge(
            "maestropy_oldest_pause_seconds",
            "For how long the delivery to a consumer has been paused, at most; 0 if none is paused.",
            registry=registry,
            multiprocess_mode=_FROM_DATABASE,
        )
        self._expiry = Gauge(
            "maestropy_certificate_expiry_timestamp_seconds",
            "When a configured certificate expires, in seconds since 1970; 0 if its file cannot be read.",
            ["certificate"],
            registry=registry,
            multiprocess_mode="livemin",
        )
        self._skew = Gauge(
            "maestropy_clock_skew_seconds",
            "How far the clock of this host is ahead of the reference; negative if it is behind.",
            ["reference"],
            registry=registry,
            multiprocess_mode=_FROM_DATABASE,
        )

    def database_answered(self, seconds: float) -> None:
        """Observe one check that the database answered."""
        self._database_up.set(1)
        self._database_seconds.observe(seconds)

    def database_failed(self) -> None:
        """Note that the database did not answer a check."""
        self._database_up.set(0)

    def broker_connected(self, broker: str, *, is_connected: bool) -> None:
        """Set whether this instance is connected to the message broker of this type."""
        self._broker.labels(broker).set(int(is_connected))

    def consumers(self, consumers: rows.ConsumerCounts, *, knows_agents: bool) -> None:
        """Set how many consumers have resources, and of how many the agents are connected here, where that is known."""
        self._consumers.set(consumers.with_works)
        if knows_agents:
            self._connected.labels("grpc").set(consumers.connected)

    def oldest_status_event(self, age: float) -> None:
        """Set the age in seconds of the oldest status event that this instance has not sent to subscribers."""
        self._oldest_status_event.set(age)

    def oldest_deliverable_event(self, age: float) -> None:
        """Set the age in seconds of the oldest pending spec event whose agent is connected to this instance."""
        self._oldest_deliverable_event.labels("grpc").set(age)

    def held(self, counts: rows.HeldCounts) -> None:
        """Set what data-safety holds keep, and what agents are about to evict."""
        self._held_works.set(counts.works)
        self._held_consumers.set(counts.consumers)
        self._pending_evictions.set(counts.pending_evictions)
        self._next_eviction.set(counts.next_eviction)

    def paused(self, *, consumers: int, oldest_seconds: float) -> None:
        """Set how many consumers are paused, and for how long the first of them."""
        self._paused_consumers.set(consumers)
        self._oldest_pause.set(oldest_seconds)

    def certificate_expires(self, certificate: str, seconds: float) -> None:
        """Set when a certificate expires, in seconds since 1970; 0 if it cannot be read."""
        self._expiry.labels(certificate).set(seconds)

    def clock_skew(self, seconds: float) -> None:
        """Set how far the clock of this host is ahead of that of the database."""
        self._skew.labels("database").set(seconds)
