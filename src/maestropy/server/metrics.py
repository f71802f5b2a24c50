"""What the server counts and measures, under the names that existing dashboards and alerts ask for.

Stages call one method per fact; nothing here decides anything. Names, labels and buckets are those of the Go server,
with one difference: the label `id` is there but always empty. One series per resource would grow without end, and
queries that aggregate over `id` give the same answer. Sources and consumers name themselves, so each of these labels
takes a bounded number of values and then `other`.

Several worker processes share one port when PROMETHEUS_MULTIPROC_DIR is set before this module is imported.
"""

import collections
import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from prometheus_client import CollectorRegistry, multiprocess

from maestropy.server import families
from maestropy.transport import exposition
from maestropy.wire import event

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
    """What is counted about an event that passed the broker."""

    source: str
    consumer: str
    type: str
    subresource: str
    action: str

    @classmethod
    def of(cls, passed: event.Event) -> "EventLabels":
        """Return the labels of an event; raises `WireError` when its type is none."""
        kind = event.parse_type(passed.type)
        consumer = passed.optional_text(event.CLUSTER_NAME)
        return cls(passed.source, consumer, kind.data_type, str(kind.subresource), str(kind.action))


# Every series repeats its labels; names of sources and consumers end here anyway.
_LONGEST_LABEL = 253


class _Budget:
    """The values one label may take; what comes later is `other`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def spend(self, value: str) -> str:
        if value in self._known:
            return value
        if len(self._known) >= self._limit or len(value) > _LONGEST_LABEL:
            return "other"
        self._known.add(value)
        return value


class ControllerMetrics:
    """One of the two controllers."""

    def __init__(self, name: Literal["spec", "status"], registry: CollectorRegistry) -> None:
        self._families = families.Controller(name, registry)

    def reconciled(
        self, count: int = 1, *, event_type: str = "unknown", status: Outcome = "success", seconds: float | None = None
    ) -> None:
        """Count events that were worked on together; `seconds` is what they took."""
        self._families.total.labels(event_type, status).inc(count)
        if seconds is not None:
            self._families.seconds.labels(event_type).observe(seconds)

    def synced(self, status: Outcome = "success") -> None:
        """Count one periodic sync."""
        self._families.syncs.labels(status).inc()


class QueueMetrics:
    """One queue; a batch counts as the items in it."""

    def __init__(self, name: str, queues: families.Queue) -> None:
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

    def holds(self, depth: int) -> None:
        """Tell how many items wait now."""
        self._depth.set(depth)

    def finished(self, *, waited: float, worked: float) -> None:
        """Measure one item, or one batch, from its arrival to its end."""
        self._waited.observe(waited)
        self._worked.observe(worked)

    def busy(self, *, unfinished: float, longest: float) -> None:
        """Tell how long the items being worked on have taken so far."""
        self._unfinished.set(unfinished)
        self._longest.set(longest)


class Metrics:
    """Everything this process counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register all families with `registry`, once."""
        self._registry = _shared_registry() or registry
        self._rest = families.Rest(registry)
        self._rpc = families.Rpc(registry)
        self._resources = families.Resource(registry)
        self._locks = families.Lock(registry)
        self._broker = families.Broker(registry)
        self._sweep = families.Sweep(registry)
        queues = families.Queue(registry)
        self.spec = ControllerMetrics("spec", registry)
        self.status = ControllerMetrics("status", registry)
        self.event_queue = QueueMetrics(EVENT_QUEUE, queues)
        self.status_event_queue = QueueMetrics(STATUS_EVENT_QUEUE, queues)
        # The library looks its children up under a lock, after making texts of the labels.
        remember = lru_cache(maxsize=None)  # the budgets below bound what the labels can be
        self._called = remember(self._rpc.called.labels)
        self._received = remember(self._rpc.received.labels)
        self._sent = remember(self._rpc.sent.labels)
        self._processed = remember(self._rpc.processed.labels)
        self._seconds = remember(self._rpc.seconds.labels)
        self._status_told = remember(self._resources.status_told.labels)
        self._source = _Budget(_MAX_SOURCES).spend
        self._consumer = _Budget(_MAX_CONSUMERS).spend
        # Of its own: a fleet must not use up the names of the sources.
        self._agent = _Budget(_MAX_CONSUMERS).spend

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return the body and the content type of an answer to a scrape, given its `Accept` header.

        Never OpenMetrics: that format insists on `_total` after the name of every counter.
        """
        text = exposition.text(self._registry.collect(), bare_counters=families.BARE_COUNTERS)
        wants_version_1 = any(
            part.split(";")[0].strip() == "text/plain" and "version=1.0.0" in part for part in accept.split(",")
        )
        return text.encode(), _PLAIN_TEXT_1 if wants_version_1 else exposition.PLAIN_TEXT

    def request_finished(self, *, method: str, path: str, code: int, seconds: float) -> None:
        """Count a REST request; `path` is the route with `-` in place of its variables."""
        self._rest.count.labels(method, path, code).inc()
        self._rest.seconds.labels(method, path, code).observe(seconds)

    def rpc_called(self, rpc: Rpc, source: str) -> None:
        """Count a call that arrived."""
        self._called(rpc, self._source(source)).inc()

    def rpc_finished(self, rpc: Rpc, source: str, *, code: str, seconds: float | None = None) -> None:
        """Count a call that ended with a gRPC code such as `OK`; streams have no duration."""
        known = self._source(source)
        self._processed(rpc, known, code).inc()
        if seconds is not None:
            self._seconds(rpc, known).observe(seconds)

    def messages_received(self, rpc: Rpc, source: str, *, count: int = 1) -> None:
        """Count messages from a client."""
        self._received(rpc, self._source(source)).inc(count)

    def messages_sent(self, rpc: Rpc, source: str, *, count: int = 1) -> None:
        """Count messages to a client."""
        self._sent(rpc, self._source(source)).inc(count)

    def client_registered(self, source: str) -> None:
        """Count a client that subscribed."""
        self._rpc.clients.labels(self._source(source)).inc()

    def client_unregistered(self, source: str) -> None:
        """Forget a client that was registered."""
        self._rpc.clients.labels(self._source(source)).dec()

    def resources_processed(self, count: int = 1, *, action: str = "update") -> None:
        """Count resources that changed."""
        self._resources.processed.labels(_NO_ID, action).inc(count)

    def specs_delivered(self, event_types: Iterable[str], *, seconds: float) -> None:
        """Count specs handed to the transport together, by the types of their events; `seconds` is what they took."""
        for event_type, count in collections.Counter(event_types).items():
            self.spec.reconciled(count, event_type=event_type, seconds=seconds)

    def statuses_told(self, event_types: Iterable[str], *, seconds: float) -> None:
        """Count statuses handed to subscribers together, in the same way."""
        for event_type, count in collections.Counter(event_types).items():
            self.status.reconciled(count, event_type=event_type, seconds=seconds)

    def first_status(self, consumer: str, source: str, age: timedelta) -> None:
        """Measure how old a resource was when its agent first answered."""
        labels = (_NO_ID, self._consumer(consumer), self._source(source))
        self._resources.first_status.labels(*labels).observe(age.total_seconds())

    def status_event_told(self, consumer: str, source: str, *, instance_id: str, age: timedelta) -> None:
        """Measure how old a status event was when this instance had told its subscribers."""
        told = self._status_told(_NO_ID, self._consumer(consumer), self._source(source), instance_id)
        told.observe(age.total_seconds())

    def spec_resynced(self, agent: str, consumer: str, *, data_type: str, seconds: float) -> None:
        """Measure the answer to one spec resync; the label `source` names the agent that asked."""
        self._resources.resynced.labels(self._agent(agent), self._consumer(consumer), data_type).observe(seconds)

    def lock_taken(self, kind: str, *, ok: bool) -> None:
        """Count an advisory lock that was asked for."""
        self._locks.locked.labels(kind, _status(ok=ok)).inc()

    def lock_released(self, kind: str, *, ok: bool, seconds: float) -> None:
        """Count an advisory lock that was given back after `seconds`."""
        self._locks.unlocked.labels(kind, _status(ok=ok)).inc()
        self._locks.seconds.labels(kind, _status(ok=ok)).observe(seconds)

    @contextlib.contextmanager
    def holding_locks(self, kind: str, *, monotonic: Callable[[], float]) -> Iterator[None]:
        """Count and measure the advisory locks of one transaction, the time until they were there included."""
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
        """Count a connection to the message broker that this server made anew."""
        self._broker.reconnected.labels(client_id).inc()

    def oldest_event(self, age: float) -> None:
        """Tell the age in seconds of the oldest event that waits; NaN when the database did not say."""
        self._sweep.oldest_event.set(age)

    def notification_queue(self, usage: float) -> None:
        """Tell how full the notification queue of the database is, from 0 to 1."""
        self._sweep.notification_queue.set(usage)

    def undelivered_republished(self, count: int) -> None:
        """Count resources sent again because no status came back."""
        self._sweep.republished.inc(count)

    def stale_deletes_retired(self, count: int) -> None:
        """Count delete events given up."""
        self._sweep.retired.inc(count)

    def _bounded(self, labels: EventLabels) -> EventLabels:
        return labels._replace(source=self._source(labels.source), consumer=self._consumer(labels.consumer))


def forget_process(pid: int) -> None:
    """Drop the gauges of a worker that ended; its counters stay, because they still happened."""
    multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]  # the library leaves this module untyped


def _shared_registry() -> CollectorRegistry | None:
    """Return the registry over all workers' files, when workers share one port."""
    if not os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        return None
    shared = CollectorRegistry()
    multiprocess.MultiProcessCollector(shared)  # type: ignore[no-untyped-call]  # the library leaves it untyped
    return shared


def _status(*, ok: bool) -> str:
    return "OK" if ok else "ERROR"
