"""A tracer that keeps spans, for tests: every request is traced, and span IDs count up."""

import itertools

from maestropy.telemetry import trace_context, tracing
from maestropy.telemetry.trace_context import SpanContext


class RecordingTracer:
    is_on = True

    def __init__(self) -> None:
        self.spans: list[tracing.Span] = []
        self._numbers = itertools.count(1)

    def sampled(self, operation_id: str, resource_id: str = "", version: int = 0) -> SpanContext | None:
        return trace_context.of_request(operation_id, resource_id, version)

    def continued(self, parent: SpanContext) -> bool:
        return parent.is_sampled

    def new_trace(self) -> SpanContext:
        return SpanContext(10_000 + next(self._numbers), self.new_span_id())

    def new_span_id(self) -> int:
        return next(self._numbers)

    def record(self, span: tracing.Span) -> None:
        self.spans.append(span)

    def counts(self) -> tracing.SpanCounts:
        return tracing.SpanCounts()

    def close(self) -> None:
        pass

    def named(self, name: str) -> tracing.Span:
        """Return the only span of this name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found
