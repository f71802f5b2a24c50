"""The tracer of the OpenTelemetry SDK: same decision everywhere, exact IDs, and a queue that never blocks."""

import threading
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)

from maestropy.telemetry import configuration, otel, trace_context, tracing
from maestropy.telemetry.trace_context import SpanContext
from tests import waiting


class Exporter(SpanExporter):
    """Keeps spans, once it is allowed to go on."""

    def __init__(self, result: SpanExportResult = SpanExportResult.SUCCESS) -> None:
        self.spans: list[ReadableSpan] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self._result = result

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.may_go_on.wait(60)
        self.spans += spans
        return self._result


def tracer_with(exporter: Exporter, *, sampler: Sampler = ALWAYS_ON, queue_size: int = 512) -> otel.OtelTracer:
    resource = Resource({"service.name": "test"})
    return otel.OtelTracer(exporter, resource=resource, sampler=sampler, queue_size=queue_size)


def span(context: SpanContext, *, parent: int = 0, links: Sequence[SpanContext] = (), error: str = "") -> tracing.Span:
    return tracing.Span(
        name="commit spec",
        context=context,
        parent=parent,
        start=1000.0,
        end=1000.5,
        links=links,
        attributes={"op-id": "o1", "maestro.resource_version": 3},
        error=error,
    )


def test_a_span_is_exported_as_it_was_recorded() -> None:
    exporter = Exporter()
    tracer = tracer_with(exporter)
    tracer.record(span(SpanContext(5, 6), parent=7, links=[SpanContext(8, 9)], error="it failed"))
    tracer.record(span(SpanContext(10, 11)))
    tracer.close()
    child, root = exporter.spans
    assert child.context is not None
    assert child.parent is not None
    assert (child.context.trace_id, child.context.span_id, child.parent.span_id) == (5, 6, 7)
    assert [(link.context.trace_id, link.context.span_id) for link in child.links] == [(8, 9)]
    assert (child.start_time, child.end_time) == (1_000_000_000_000, 1_000_500_000_000)
    assert dict(child.attributes or {}) == {"op-id": "o1", "maestro.resource_version": 3}
    assert child.status.description == "it failed"
    assert root.context is not None
    assert (root.context.trace_id, root.context.span_id, root.parent) == (10, 11, None)
    assert root.status.is_ok
    assert tracer.counts() == tracing.SpanCounts(exported=2)


def test_a_clock_that_is_set_back_makes_no_negative_duration() -> None:
    exporter = Exporter()
    tracer = tracer_with(exporter)
    tracer.record(tracing.Span(name="x", context=SpanContext(1, 2), start=10.0, end=9.0))
    tracer.close()
    assert exporter.spans[0].start_time == exporter.spans[0].end_time


def test_every_process_with_the_same_ratio_traces_the_same_requests() -> None:
    first, second = (tracer_with(Exporter(), sampler=ParentBased(TraceIdRatioBased(0.1))) for _ in range(2))
    operations = [f"operation-{number}" for number in range(2000)]
    sampled = [operation for operation in operations if first.sampled(operation)]
    assert sampled == [operation for operation in operations if second.sampled(operation)]
    assert 100 < len(sampled) < 300
    unnamed = [number for number in range(2000) if first.sampled("", f"resource-{number}", 1)]
    assert 100 < len(unnamed) < 300
    for tracer in (first, second):
        tracer.close()


@pytest.mark.parametrize(("flag", "expected"), [("01", True), ("00", False)])
def test_the_client_that_began_the_trace_has_decided(flag: str, expected: bool) -> None:
    tracer = tracer_with(Exporter(), sampler=ParentBased(TraceIdRatioBased(0.0 if expected else 1.0)))
    operation = f"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flag}"
    assert (tracer.sampled(operation) is not None) == expected
    tracer.close()


def test_the_log_names_only_traces_that_exist() -> None:
    tracer = tracer_with(Exporter(), sampler=ParentBased(TraceIdRatioBased(0.0)))
    trace_id_of = configuration.trace_ids(tracer)
    assert trace_id_of is not None
    assert trace_id_of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01") == "0af7651916cd43dd8448eb211c80319c"
    assert trace_id_of("any") == ""
    assert trace_id_of("") == ""
    tracer.close()


def test_a_full_queue_drops_spans_and_counts_them() -> None:
    exporter = Exporter()
    exporter.may_go_on.clear()
    tracer = tracer_with(exporter, queue_size=512)
    for number in range(1, 601):
        tracer.record(span(SpanContext(1, number)))
    assert tracer.counts() == tracing.SpanCounts(dropped=88)
    exporter.may_go_on.set()
    waiting.wait_for(lambda: tracer.counts().exported == 512, what="the export")
    tracer.record(span(SpanContext(1, 601)))
    tracer.close()
    assert tracer.counts() == tracing.SpanCounts(exported=513, dropped=88)


def test_a_span_that_the_sdk_does_not_take_is_dropped_and_stops_nothing() -> None:
    exporter = Exporter()
    tracer = tracer_with(exporter)
    tracer.record(tracing.Span(name="x", context=SpanContext(1, 2), start=float("nan"), end=1.0))
    tracer.record(span(SpanContext(1, 3)))
    tracer.close()
    assert tracer.counts() == tracing.SpanCounts(exported=1, dropped=1)


def test_spans_that_the_collector_does_not_take_are_counted() -> None:
    tracer = tracer_with(Exporter(SpanExportResult.FAILURE))
    tracer.record(span(SpanContext(1, 2)))
    tracer.close()
    assert tracer.counts() == tracing.SpanCounts(failed=1)


@pytest.mark.parametrize(
    "sampler",
    [
        ALWAYS_ON,
        ALWAYS_OFF,
        TraceIdRatioBased(0.01),
        TraceIdRatioBased(1e-05),
        ParentBased(TraceIdRatioBased(0.3)),
        ParentBased(ALWAYS_ON),
        ParentBased(ALWAYS_OFF),
    ],
    ids=lambda sampler: sampler.get_description().partition(",")[0],
)
def test_the_short_way_decides_as_the_sampler_does(sampler: Sampler) -> None:
    tracer = tracer_with(Exporter(), sampler=sampler)
    assert tracer._limit is not None
    for number in range(2000):
        trace_id = trace_context.of_request(f"operation-{number}", "", 0).trace_id
        decision = sampler.should_sample(None, trace_id, "span").decision
        assert (tracer.sampled(f"operation-{number}") is not None) == (decision is Decision.RECORD_AND_SAMPLE)
    tracer.close()


def test_a_sampler_of_others_decides_by_itself() -> None:
    class Own(Sampler):
        def should_sample(self, *_args: object, **_named: object) -> SamplingResult:
            return SamplingResult(Decision.RECORD_AND_SAMPLE)

        def get_description(self) -> str:
            return "Own"

    tracer = tracer_with(Exporter(), sampler=Own())
    assert tracer._limit is None
    assert tracer.sampled("any") is not None
    tracer.close()
