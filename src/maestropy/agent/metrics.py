"""What the agent counts and measures, under the names that existing dashboards and alerts ask for.

Stages call one method per fact; nothing here decides anything. Names, labels and buckets are those of the Go agent.
Its six controllers are one queue here, so the label `name` of the queue families has one value, that of the controller
which applies.
"""

from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from maestropy.transport import exposition
from maestropy.wire import event

QUEUE: Final = "ManifestWorkController"

_REQUEST_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)


class EventKind(NamedTuple):
    """The parts of an event's type: `io.….manifestbundles`, `status`, `resync_request`."""

    type: str
    subresource: str
    action: str


class QueueMetrics:
    """The queue of works."""

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
            buckets=exposition.TENFOLD,
            registry=registry,
        ).labels(QUEUE)
        self._worked = Histogram(
            "workqueue_work_duration_seconds",
            "How long an item was worked on.",
            by,
            buckets=exposition.TENFOLD,
            registry=registry,
        ).labels(QUEUE)

    def added(self) -> None:
        """Count a work that has to be looked at."""
        self._adds.inc()

    def retried(self) -> None:
        """Count a work put back after a failure."""
        self._retries.inc()

    def holds(self, depth: int) -> None:
        """Tell how many works wait now."""
        self._depth.set(depth)

    def finished(self, *, waited: float, worked: float) -> None:
        """Measure one look at a work, in seconds."""
        self._waited.observe(waited)
        self._worked.observe(worked)


class Metrics:
    """Everything this agent counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register all families with `registry`, once."""
        self._registry = registry
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
        self.queue = QueueMetrics(registry)

    def render(self) -> tuple[bytes, str]:
        """Return the body and the content type of an answer to a scrape."""
        return exposition.text(self._registry.collect(), bare_counters=()).encode(), exposition.PLAIN_TEXT

    def event_received(self, source: str, kind: EventKind) -> None:
        """Count an event from the server."""
        self._received.labels(source, *kind).inc()

    def event_sent(self, source: str, original_source: str, *, kind: EventKind) -> None:
        """Count an event to the server; `original_source` is whose work it is about."""
        self._sent.labels(source, original_source or "none", *kind).inc()

    def status_resynced(self, consumer: str, source: str, seconds: float) -> None:
        """Measure the answer to one status resync."""
        self._resynced.labels(source, consumer, event.MANIFEST_BUNDLES).observe(seconds)

    def work_processed(self, action: str, *, code: str = "Success") -> None:
        """Count what was done with a work; `code` is Kubernetes' word for a failure."""
        self._processed.labels(action, code).inc()

    def request_answered(self, method: str, *, host: str, code: str, seconds: float) -> None:
        """Count a request to the API server; `code` is its status, or `<error>` when none came."""
        self._requests.labels(code, host, method).inc()
        self._request_seconds.labels(host, method).observe(seconds)
