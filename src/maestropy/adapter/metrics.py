"""Count and measure what an adapter does, under the metric names of the HyperFleet adapter framework.

Names, labels and buckets are those of its dashboard and alerts. `adapter_name` is derived from the adapter's name by
the framework's rule: `hyperfleet-adapter-gcp`, `adapter-gcp` and `gcp-adapter` are all `gcp`.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from maestropy.adapter.decide.effects import Delete, Effect, EffectResult
from maestropy.adapter.decide.failure import Failure
from maestropy.adapter.decide.pipeline import EventOutcome
from maestropy.adapter.transports.performer import Performer
from maestropy.sdk import errors
from maestropy.transport.http import metrics_text

WORK: Final = "ManifestWork"
"""The kind that an adapter deletes, for the label `resource_type`."""

_SECONDS: Final = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120)
_AUTH_FAILURES: Final = {errors.Unauthorized.__name__: "401", errors.Forbidden.__name__: "403"}


class AdapterMetrics:
    """All metrics of one adapter service."""

    def __init__(self, name: str, *, version: str) -> None:
        self._registry = CollectorRegistry()
        self._values = {"component": name, "version": version, "adapter_name": short_name(name)}
        baseline = ["component", "version"]
        labels = [*baseline, "adapter_name"]
        build = self._gauge("build_info", "Build information for the adapter", [*baseline, "commit"])
        build.labels(component=name, version=version, commit="unknown").set(1)
        up = self._gauge("up", "Whether the adapter is up and running", baseline)
        self._up = up.labels(component=name, version=version)
        self._up.set(1)
        self._events = self._counter(
            "events_processed", "Total number of CloudEvents processed by the adapter", [*labels, "status"]
        )
        self._errors = self._counter(
            "errors", "Total number of errors encountered by the adapter", [*labels, "error_type"]
        )
        self._auth_failures = self._counter(
            "api_auth_failures", "Requests that the HyperFleet API did not authorize", [*labels, "status_code"]
        )
        self._seconds = self._histogram("event_processing", "Duration of event processing in seconds", labels)
        self._deletions = self._counter(
            "resources_deleted",
            "Total number of adapter resource deletion operations",
            [*labels, "resource_type", "status"],
        )
        self._deletion_seconds = self._histogram(
            "resource_deletion", "Duration of resource deletion operations in seconds", [*labels, "resource_type"]
        )
        self._deleting = self._gauge(
            "resource_deletions_in_progress",
            "Number of resource deletions currently in progress",
            [*labels, "resource_type"],
        )

    def handled(self, outcome: EventOutcome, *, seconds: float) -> None:
        """Count one event and its failure."""
        status = "failed" if outcome.failure else "skipped" if outcome.is_skipped else "success"
        self._events.labels(**self._values, status=status).inc()
        self._seconds.labels(**self._values).observe(seconds)
        if outcome.failure is not None:
            self._failed(outcome.failure)

    def rejected(self) -> None:
        """Count an event that is malformed."""
        self._events.labels(**self._values, status="failed").inc()
        self._errors.labels(**self._values, error_type="param_extraction").inc()

    def stopping(self) -> None:
        """Say that the adapter is shutting down."""
        self._up.set(0)

    @contextmanager
    def deletion(self) -> Iterator[None]:
        """Measure the deletion of one work."""
        kind = {**self._values, "resource_type": WORK}
        started = time.monotonic()
        status = "error"
        self._deleting.labels(**kind).inc()
        try:
            yield
            status = "success"
        finally:
            self._deleting.labels(**kind).dec()
            self._deletions.labels(**kind, status=status).inc()
            self._deletion_seconds.labels(**kind).observe(time.monotonic() - started)

    def text(self) -> str:
        """Return all metrics in the Prometheus text format."""
        return metrics_text.text(self._registry.collect(), bare_counters=())

    def _failed(self, failure: Failure) -> None:
        self._errors.labels(**self._values, error_type=failure.phase).inc()
        status_code = _AUTH_FAILURES.get(failure.reason)
        if status_code and failure.phase != "resources":
            self._auth_failures.labels(**self._values, status_code=status_code).inc()

    def _counter(self, name: str, help_text: str, labels: list[str]) -> Counter:
        return Counter(f"hyperfleet_adapter_{name}_total", help_text, labels, registry=self._registry)

    def _gauge(self, name: str, help_text: str, labels: list[str]) -> Gauge:
        return Gauge(f"hyperfleet_adapter_{name}", help_text, labels, registry=self._registry)

    def _histogram(self, name: str, help_text: str, labels: list[str]) -> Histogram:
        return Histogram(
            f"hyperfleet_adapter_{name}_duration_seconds", help_text, labels, buckets=_SECONDS, registry=self._registry
        )


class MeteredPerformer:
    """Passes effects on and measures deletions."""

    def __init__(self, inner: Performer, metrics: AdapterMetrics) -> None:
        self._inner = inner
        self._metrics = metrics

    async def perform(self, effect: Effect) -> EffectResult:
        """Carry one effect out."""
        if not isinstance(effect, Delete):
            return await self._inner.perform(effect)
        with self._metrics.deletion():
            return await self._inner.perform(effect)


def short_name(name: str) -> str:
    """Return the value of the label `adapter_name`.

    >>> short_name("hyperfleet-adapter-gcp"), short_name("test-adapter"), short_name("controlplane")
    ('gcp', 'test', 'controlplane')
    """
    for prefix in ("hyperfleet-adapter-", "adapter-"):
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name.removesuffix("-adapter")
