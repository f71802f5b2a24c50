"""Count in Prometheus what became of spans; registered only while spans are exported."""

from prometheus_client import CollectorRegistry, Counter

from maestropy.telemetry.tracing import SpanCounts, Tracer

MEASURE_EVERY_SECONDS = 1.0


class SpanMetrics:
    """The counter of spans, of which the tracer knows the totals."""

    def __init__(self, tracer: Tracer, registry: CollectorRegistry) -> None:
        self._tracer = tracer
        self._counted = SpanCounts()
        self._spans = Counter(
            "maestropy_spans_total",
            "Spans for the OpenTelemetry collector: exported, failed (it did not take them) or dropped (queue full).",
            ["result"],
            registry=registry,
        )
        for result in SpanCounts._fields:
            self._spans.labels(result)

    async def measure(self) -> None:
        """Count what was exported, failed or dropped since the last call."""
        counts = self._tracer.counts()
        for result, total, counted in zip(SpanCounts._fields, counts, self._counted, strict=True):
            self._spans.labels(result).inc(total - counted)
        self._counted = counts
