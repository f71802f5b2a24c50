"""Count and measure what the agent does, under the metric names of the Go agent.

Controllers call one method per fact; nothing here decides anything. Names, labels and buckets are those of existing
dashboards and alerts. The six controllers of the Go agent share one queue here, so the label `name` of the queue
metrics has one value, that of the controller which applies.
"""

import math
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from maestropy.agent.decide.data_safety import HoldReason
from maestropy.transport.http import metrics_text
from maestropy.wire.events import event

QUEUE: Final = "ManifestWorkController"

_REQUEST_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)


class AgentState(NamedTuple):
    """What the gauges of the agent show."""

    is_connected: bool
    is_leading: bool
    works: int
    statuses_waiting: int
    oldest_waiting_seconds: float
    api_server_skew_seconds: float | None
    """How far the clock of this host is ahead of that of the API server; None if unknown."""


class EventTypeLabels(NamedTuple):
    """The labels of an event type: `io.….manifestbundles`, `status`, `resync_request`."""

    type: str
    subresource: str
    action: str


class WorkQueueMetrics:
    """Metrics of the work queue."""

    def __init__(self, registry: CollectorRegistry) -> None:
        by = ["name"]
        self._depth = Gauge("workqueue_depth", "Items waiting in the queue.", by, registry=registry).labels(QUEUE)
        self._adds = Counter("workqueue_adds_total", "Items put into the queue.", by, registry=registry).labels(QUEUE)
        self._retries = Counter(
            "workqueue_retries_total", "Items put back after a failure.", by, registry=registry
        ).labels(QUEUE)
        self._waited = Histogram(
            "workqueue_queue_duration_seconds",
            "How long an item waited.",
            by,
            buckets=metrics_text.TENFOLD,
            registry=registry,
        ).labels(QUEUE)
        self._worked = Histogram(
            "workqueue_work_duration_seconds",
            "How long an item was worked on.",
            by,
            buckets=metrics_text.TENFOLD,
            registry=registry,
        ).labels(QUEUE)

    def added(self) -> None:
        """Count a work that was queued."""
        self._adds.inc()

    def retried(self) -> None:
        """Count a work that was queued again after a failure."""
        self._retries.inc()

    def set_depth(self, depth: int) -> None:
        """Set the number of queued works."""
        self._depth.set(depth)

    def finished(self, *, waited: float, worked: float) -> None:
        """Measure one reconcile, in seconds."""
        self._waited.observe(waited)
        self._worked.observe(worked)


class AgentMetrics:
    """All metrics of this agent."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register all metrics with `registry`, once."""
        self._registry = registry
        ProcessCollector(registry=registry)
        parts = ["type", "subresource", "action"]
        self._received = Counter(
            "cloudevents_received_total", "Events from the server.", ["source", *parts], registry=registry
        )
        self._sent = Counter(
            "cloudevents_sent_total", "Events to the server.", ["source", "original_source", *parts], registry=registry
        )
        self._resynced = Histogram(
            "resources_status_resync_duration_seconds",
            "How long the answer to a status resync took.",
            ["source", "consumer", "type"],
            buckets=(0.1, 0.2, 0.5, 1, 2, 10, 30),
            registry=registry,
        )
        self._processed = Counter(
            "manifestworks_processed_total", "What was done with works.", ["action", "code"], registry=registry
        )
        self._requests = Counter(
            "rest_client_requests_total",
            "Requests to the API server of the cluster.",
            ["code", "host", "method"],
            registry=registry,
        )
        self._request_seconds = Histogram(
            "rest_client_request_duration_seconds",
            "How long a request to the API server of the cluster took.",
            ["host", "verb"],
            buckets=_REQUEST_SECONDS,
            registry=registry,
        )
        self._held = Gauge(
            "maestropy_agent_held_works",
            "Works that a data-safety hold keeps as they are.",
            ["reason"],
            registry=registry,
        )
        for reason in HoldReason:
            self._held.labels(reason)
        self._budgets = Counter(
            "maestro_agent_expression_budget_exceeded_total",
            "Reconciles in which the expressions of a work exceeded a limit. The Go agent has no such metric.",
            ["limit"],
            registry=registry,
        )
        self._expiry = Gauge(
            "maestropy_certificate_expiry_timestamp_seconds",
            "When a configured certificate expires, in seconds since 1970; 0 if its file cannot be read.",
            ["certificate"],
            registry=registry,
        )
        self._skew = Gauge(
            "maestropy_clock_skew_seconds",
            "How far the clock of this host is ahead of the reference; negative if it is behind.",
            ["reference"],
            registry=registry,
        )
        self._is_connected = Gauge(
            "maestropy_agent_connected",
            "1 while the agent is connected to the server or the broker.",
            registry=registry,
        )
        self._is_leading = Gauge(
            "maestropy_agent_leading",
            "1 while this agent is the one that acts: it leads, or there is no leader election.",
            registry=registry,
        )
        self._works = Gauge("maestropy_agent_works", "Works of the consumer.", registry=registry)
        self._waiting = Gauge(
            "maestropy_agent_statuses_waiting", "Status updates that the server has not accepted.", registry=registry
        )
        self._oldest_waiting = Gauge(
            "maestropy_agent_oldest_status_waiting_seconds",
            "For how long the oldest of these status updates waits.",
            registry=registry,
        )
        self.queue = WorkQueueMetrics(registry)

    def render(self) -> tuple[bytes, str]:
        """Return body and content type of the response to a scrape."""
        return metrics_text.text(self._registry.collect(), bare_counters=()).encode(), metrics_text.PLAIN_TEXT

    def observe(self, read: Callable[[], AgentState]) -> None:
        """Read the state of the agent at every scrape."""
        self._is_connected.set_function(lambda: read().is_connected)
        self._is_leading.set_function(lambda: read().is_leading)
        self._works.set_function(lambda: read().works)
        self._waiting.set_function(lambda: read().statuses_waiting)
        self._oldest_waiting.set_function(lambda: read().oldest_waiting_seconds)
        self._skew.labels("api-server").set_function(lambda: _number(read().api_server_skew_seconds))

    def certificate_expires(self, certificate: str, seconds: float) -> None:
        """Set when a certificate expires, in seconds since 1970; 0 if it cannot be read."""
        self._expiry.labels(certificate).set(seconds)

    def database_clock_skew(self, seconds: float) -> None:
        """Set how far the clock of this host is ahead of that of the server's database."""
        self._skew.labels("database").set(seconds)

    def event_received(self, source: str, kind: EventTypeLabels) -> None:
        """Count an event from the server."""
        self._received.labels(source, *kind).inc()

    def event_sent(self, source: str, original_source: str, *, kind: EventTypeLabels) -> None:
        """Count an event to the server; `original_source` is the source of the work."""
        self._sent.labels(source, original_source or "none", *kind).inc()

    def status_resynced(self, consumer: str, source: str, seconds: float) -> None:
        """Measure the response to one status resync."""
        self._resynced.labels(source, consumer, event.MANIFEST_BUNDLES).observe(seconds)

    def works_held(self, counts: Mapping[HoldReason, int]) -> None:
        """Set how many works a data-safety hold keeps, by reason."""
        for reason in HoldReason:
            self._held.labels(reason).set(counts.get(reason, 0))

    def work_processed(self, action: str, *, code: str = "Success") -> None:
        """Count an operation on a work; `code` is the Kubernetes reason of a failure."""
        self._processed.labels(action, code).inc()

    def budget_exceeded(self, limit: str) -> None:
        """Count a reconcile in which the expressions of a work exceeded a limit."""
        self._budgets.labels(limit).inc()

    def request_answered(self, method: str, *, host: str, code: str, seconds: float) -> None:
        """Count a request to the API server; `code` is its status, or `<error>` without a response."""
        self._requests.labels(code, host, method).inc()
        self._request_seconds.labels(host, method).observe(seconds)


def _number(value: float | None) -> float:
    return math.nan if value is None else value
