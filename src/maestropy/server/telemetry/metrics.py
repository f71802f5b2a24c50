"""Metrics of the server, compatible with the dashboards and alerts of the Go server.

Controllers call one method per fact. Names, labels and buckets are those of the Go server, with one difference: the
label `id` is always empty. One series per resource would grow without limit, and queries that aggregate over `id` give
the same result. Clients choose the names of sources and consumers, so each of these labels has a bounded number of
values and then `other`.

Several worker processes share one port when PROMETHEUS_MULTIPROC_DIR is set before this module is imported.
"""

import collections
import contextlib
import functools
import math
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector, multiprocess

from maestropy.server.telemetry import delete_recovery, dependencies, metric_families
from maestropy.telemetry import process_metrics
from maestropy.transport.http import metrics_text
from maestropy.wire.events import event

Outcome = Literal["success", "error", "skipped"]
Rpc = Literal["Publish", "Subscribe"]

EVENT_QUEUE: Final = "event-controller"
STATUS_EVENT_QUEUE: Final = "status-event-controller"

_NO_ID: Final = ""
_MAX_SOURCES: Final = 1000
_MAX_CONSUMERS: Final = 2000
"""Ten times the clusters of a large region."""

_PLAIN_TEXT_1: Final = "text/plain; version=1.0.0; charset=utf-8; escaping=underscores"


class EventLabels(NamedTuple):
    """The labels of an event to or from a message broker."""

    source: str
    consumer: str
    type: str
    subresource: str
    action: str

    @classmethod
    def of(cls, cloud_event: event.CloudEvent) -> "EventLabels":
        """Return the labels of an event; raises `WireError` for an invalid type."""
        kind = event.parse_type(cloud_event.type)
        consumer = cloud_event.optional_text(event.CLUSTER_NAME)
        return cls(cloud_event.source, consumer, kind.data_type, str(kind.subresource), str(kind.action))


# Every series repeats its labels; names of sources and consumers are not longer.
_LONGEST_LABEL = 253


class _LabelBudget:
    """Bounds the values of one label; further values become `other`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def bounded(self, value: str) -> str:
        if value in self._known:
            return value
        if len(self._known) >= self._limit or len(value) > _LONGEST_LABEL:
            return "other"
        self._known.add(value)
        return value


class ControllerMetrics:
    """Metrics of the spec or the status controller."""

    def __init__(self, name: Literal["spec", "status"], registry: CollectorRegistry) -> None:
        self._families = metric_families.ControllerFamilies(name, registry)

    def reconciled(
        self, count: int = 1, *, event_type: str = "unknown", status: Outcome = "success", seconds: float | None = None
    ) -> None:
        """Count a batch of reconciled events; `seconds` is its duration."""
        self._families.total.labels(event_type, status).inc(count)
        if seconds is not None:
            self._families.seconds.labels(event_type).observe(seconds)

    def synced(self, status: Outcome = "success") -> None:
        """Count one periodic sync."""
        self._families.syncs.labels(status).inc()


class CallMetrics:
    """Metrics of the calls of one gRPC service."""

    def __init__(self, families: metric_families.CallFamilies, labels_of: Callable[[str], tuple[str, ...]]) -> None:
        """`labels_of` returns the labels of a source besides the method; their values must be bounded."""
        self._labels_of = labels_of
        # The library looks up label values under a lock and converts them to text each time.
        cached = lru_cache(maxsize=None)
        self._called = cached(families.called.labels)
        self._received = cached(families.received.labels)
        self._sent = cached(families.sent.labels)
        self._processed = cached(families.processed.labels)
        self._seconds = cached(families.seconds.labels)

    def called(self, rpc: Rpc, source: str) -> None:
        """Count a call that arrived."""
        self._called(rpc, *self._labels_of(source)).inc()

    def finished(self, rpc: Rpc, source: str, *, code: str, seconds: float | None = None) -> None:
        """Count a call that ended with a gRPC code such as `OK`; streams have no duration."""
        labels = self._labels_of(source)
        self._processed(rpc, *labels, code).inc()
        if seconds is not None:
            self._seconds(rpc, *labels).observe(seconds)

    def received(self, rpc: Rpc, source: str, *, count: int = 1) -> None:
        """Count messages from a client."""
        self._received(rpc, *self._labels_of(source)).inc(count)

    def sent(self, rpc: Rpc, source: str, *, count: int = 1) -> None:
        """Count messages to a client."""
        self._sent(rpc, *self._labels_of(source)).inc(count)


class QueueMetrics:
    """Metrics of one queue; a batch counts as its items."""

    def __init__(self, name: str, queues: metric_families.QueueFamilies) -> None:
        self._depth = queues.depth.labels(name)
        self._adds = queues.adds.labels(name)
        self._retries = queues.retries.labels(name)
        self._waited = queues.waited.labels(name)
        self._worked = queues.worked.labels(name)
        self._unfinished = queues.unfinished.labels(name)
        self._longest = queues.longest.labels(name)

    def added(self, count: int = 1) -> None:
        """Count items put into the queue."""
        self._adds.inc(count)

    def retried(self, count: int = 1) -> None:
        """Count items put back after a failure."""
        self._retries.inc(count)

    def set_depth(self, depth: int) -> None:
        """Set the number of waiting items."""
        self._depth.set(depth)

    def finished(self, *, waited: float, worked: float) -> None:
        """Observe the waiting and working time of an item or a batch."""
        self._waited.observe(waited)
        self._worked.observe(worked)

    def busy(self, *, unfinished: float, longest: float) -> None:
        """Set the time spent so far on unfinished items."""
        self._unfinished.set(unfinished)
        self._longest.set(longest)


class Metrics:
    """All metrics of this process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register all families with `registry`, once."""
        shared = _shared_registry()
        if shared is None:
            ProcessCollector(registry=registry)
        self._registry = shared or registry
        self._rest = metric_families.RestFamilies(registry)
        self._rpc = metric_families.RpcFamilies(registry)
        self._resources = metric_families.ResourceFamilies(registry)
        self._locks = metric_families.LockFamilies(registry)
        self._broker = metric_families.BrokerFamilies(registry)
        self._maintenance = metric_families.MaintenanceFamilies(registry)
        queues = metric_families.QueueFamilies(registry)
        self.spec = ControllerMetrics("spec", registry)
        self.status = ControllerMetrics("status", registry)
        self.delete_recovery = delete_recovery.DeleteRecoveryMetrics(registry)
        self.dependencies = dependencies.DependencyMetrics(registry)
        self.event_queue = QueueMetrics(EVENT_QUEUE, queues)
        self.status_event_queue = QueueMetrics(STATUS_EVENT_QUEUE, queues)
        self._status_broadcast = lru_cache(maxsize=None)(self._resources.status_broadcast.labels)
        self._source = _LabelBudget(_MAX_SOURCES).bounded
        self.source_calls = CallMetrics(self._rpc.sources, lambda source: (self._source(source),))
        self.agent_calls = CallMetrics(self._rpc.agents, lambda _: ())
        self._consumer = _LabelBudget(_MAX_CONSUMERS).bounded
        # A separate budget: agents must not use up that of the sources.
        self._agent = _LabelBudget(_MAX_CONSUMERS).bounded

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return body and content type for a scrape with this `Accept` header.

        Never OpenMetrics: that format requires `_total` in the name of every counter.
        """
        text = metrics_text.text(self._registry.collect(), bare_counters=metric_families.BARE_COUNTERS)
        wants_version_1 = any(
            part.split(";")[0].strip() == "text/plain" and "version=1.0.0" in part for part in accept.split(",")
        )
        return text.encode(), _PLAIN_TEXT_1 if wants_version_1 else metrics_text.PLAIN_TEXT

    def request_finished(self, *, method: str, path: str, code: int, seconds: float) -> None:
        """Count a REST request; `path` is the route with `-` in place of its variables."""
        self._rest.count.labels(method, path, code).inc()
        self._rest.seconds.labels(method, path, code).observe(seconds)

    def client_registered(self, source: str) -> None:
        """Count a client that subscribed."""
        self._rpc.clients.labels(self._source(source)).inc()

    def client_unregistered(self, source: str) -> None:
        """Count a client that unsubscribed."""
        self._rpc.clients.labels(self._source(source)).dec()

    def token_review_limited(self) -> None:
        """Count a token that was rejected without a review."""
        self._rpc.limited_reviews.inc()

    def connections_closed(self, count: int) -> None:
        """Count connections that were closed because they had no authenticated call and exceeded a limit."""
        self._rpc.closed_connections.inc(count)

    def resources_processed(self, count: int = 1, *, action: str = "update") -> None:
        """Count resources that changed."""
        self._resources.processed.labels(_NO_ID, action).inc(count)

    def status_unordered(self, cause: str) -> None:
        """Count a status update whose order is not known."""
        self._resources.unordered.labels(cause).inc()

    def specs_dispatched(self, event_types: Iterable[str], *, seconds: float) -> None:
        """Count a batch of dispatched specs by event type; `seconds` is its duration."""
        for event_type, count in collections.Counter(event_types).items():
            self.spec.reconciled(count, event_type=event_type, seconds=seconds)

    def statuses_dispatched(self, event_types: Iterable[str], *, seconds: float) -> None:
        """Count a batch of dispatched statuses by event type; `seconds` is its duration."""
        for event_type, count in collections.Counter(event_types).items():
            self.status.reconciled(count, event_type=event_type, seconds=seconds)

    def first_status(self, consumer: str, source: str, age: timedelta) -> None:
        """Observe the age of a resource at the first status of its agent."""
        labels = (_NO_ID, self._consumer(consumer), self._source(source))
        self._resources.first_status.labels(*labels).observe(age.total_seconds())

    def status_event_broadcast(self, consumer: str, source: str, *, instance_id: str, age: timedelta) -> None:
        """Observe the age of a status event at its broadcast by this instance."""
        histogram = self._status_broadcast(_NO_ID, self._consumer(consumer), self._source(source), instance_id)
        histogram.observe(age.total_seconds())

    def spec_resynced(self, agent: str, consumer: str, *, data_type: str, seconds: float) -> None:
        """Observe the duration of a spec resync; the label `source` is the agent."""
        self._resources.resynced.labels(self._agent(agent), self._consumer(consumer), data_type).observe(seconds)

    def lock_taken(self, kind: str, *, ok: bool) -> None:
        """Count a request for an advisory lock."""
        self._locks.locked.labels(kind, _status(ok=ok)).inc()

    def lock_released(self, kind: str, *, ok: bool, seconds: float) -> None:
        """Count an advisory lock that was released after `seconds`."""
        self._locks.unlocked.labels(kind, _status(ok=ok)).inc()
        self._locks.seconds.labels(kind, _status(ok=ok)).observe(seconds)

    @contextlib.contextmanager
    def holding_locks(self, kind: str, *, monotonic: Callable[[], float]) -> Iterator[None]:
        """Count and measure the advisory locks of one transaction, including the wait for them."""
        started, ok = monotonic(), False
        try:
            yield
            ok = True
        finally:
            self.lock_taken(kind, ok=ok)
            self.lock_released(kind, ok=ok, seconds=monotonic() - started)

    def event_received(self, labels: EventLabels) -> None:
        """Count an event from a message broker."""
        self._broker.received.labels(*self._bounded(labels)).inc()

    def event_sent(self, labels: EventLabels) -> None:
        """Count an event to a message broker."""
        self._broker.sent.labels(*self._bounded(labels)).inc()

    def broker_reconnected(self, client_id: str) -> None:
        """Count a reconnect to the message broker."""
        self._broker.reconnected.labels(client_id).inc()

    def oldest_event(self, age: float) -> None:
        """Set the age in seconds of the oldest pending event; NaN if it is unknown."""
        self._maintenance.oldest_event.set(age)

    def notification_queue(self, usage: float) -> None:
        """Set the usage of the notification queue of PostgreSQL, from 0 to 1."""
        self._maintenance.notification_queue.set(usage)

    def database_read_only(self, *, is_read_only: bool) -> None:
        """Set whether the database takes no writes."""
        self._maintenance.read_only.set(int(is_read_only))

    def list_read(self, *, database: Literal["replica", "primary"], reason: str = "") -> None:
        """Count a list of the REST API, and why it was not read from the replica."""
        self._maintenance.lists.labels(database, reason).inc()

    def replica_checked(self, *, is_in_use: bool, lag: float | None) -> None:
        """Set whether lists are read from the replica, and how old its data are at most, in seconds."""
        self._maintenance.replica_in_use.set(int(is_in_use))
        self._maintenance.replica_lag.set(math.nan if lag is None else lag)

    def undelivered_republished(self, count: int) -> None:
        """Count resources that were sent again because they have no status."""
        self._maintenance.republished.inc(count)

    def stale_deletes_retired(self, count: int) -> None:
        """Count stale delete events that were retired."""
        self._maintenance.retired.inc(count)

    def _bounded(self, labels: EventLabels) -> EventLabels:
        return labels._replace(source=self._source(labels.source), consumer=self._consumer(labels.consumer))


def remove_process(pid: int) -> None:
    """Remove the gauges of a worker that exited; its counters stay."""
    multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]  # the library leaves this module untyped


def _shared_registry() -> CollectorRegistry | None:
    """Return the registry of all workers if they share one port."""
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if not folder:
        return None
    shared = CollectorRegistry()
    multiprocess.MultiProcessCollector(shared)  # type: ignore[no-untyped-call]  # the library leaves it untyped
    live_workers = functools.partial(process_metrics.live_workers, Path(folder))
    shared.register(process_metrics.WorkersCollector(os.getppid(), workers=live_workers))
    return shared


def _status(*, ok: bool) -> str:
    return "OK" if ok else "ERROR"
