"""Export spans with the OpenTelemetry SDK; the only module of servers and agents that imports it.

Whether a request is traced is the sampler's decision on its trace ID, so every process with the same sampler decides
alike. Spans wait in a bounded queue and are sent by a thread of the SDK. A full queue or an absent collector costs
spans, which are counted, and never time or a request.
"""

import contextlib
import functools
import logging
import os
import random
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace import export as sdk_export
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision, Sampler, TraceIdRatioBased
from opentelemetry.trace.status import Status, StatusCode

from maestropy._version import __version__
from maestropy.telemetry import trace_context, tracing
from maestropy.telemetry.trace_context import SpanContext

_SCOPE: Final = "maestropy"
_QUEUE_VARIABLE: Final = "OTEL_BSP_MAX_QUEUE_SIZE"
_QUEUE_DEFAULT: Final = 2048
_CLOSE_SECONDS: Final = 5.0
_PROBLEM_SECONDS: Final = 60.0
_DECISIONS_REMEMBERED: Final = 8192
_KINDS: Final = {
    tracing.SpanKind.INTERNAL: trace.SpanKind.INTERNAL,
    tracing.SpanKind.SERVER: trace.SpanKind.SERVER,
    tracing.SpanKind.PRODUCER: trace.SpanKind.PRODUCER,
    tracing.SpanKind.CONSUMER: trace.SpanKind.CONSUMER,
}
_LOW_BITS: Final = 2**64 - 1
_ROOT_SAMPLER: Final = re.compile(
    r"(?:ParentBased\{root:)?(AlwaysOnSampler|AlwaysOffSampler|TraceIdRatioBased\{([0-9.e-]+)\})(?:,|$)"
)
_FLAGS: Final = trace.TraceFlags(trace.TraceFlags.SAMPLED)


class _GivenIds(IdGenerator):
    """Gives the next span the IDs that were decided before."""

    def __init__(self) -> None:
        self.next = SpanContext(0, 0)

    def generate_trace_id(self) -> int:
        return self.next.trace_id

    def generate_span_id(self) -> int:
        return self.next.span_id


class CountingExporter(sdk_export.SpanExporter):
    """Counts what the collector takes, and bounds what waits for it."""

    def __init__(self, inner: sdk_export.SpanExporter, *, queue_size: int) -> None:
        self._inner = inner
        self._queue_size = queue_size
        self._lock = threading.Lock()
        self._waiting = 0
        self._counts = tracing.SpanCounts()

    def has_room(self) -> bool:
        """Reserve room for one span; False counts it as dropped."""
        with self._lock:
            if self._waiting >= self._queue_size:
                self._counts = self._counts._replace(dropped=self._counts.dropped + 1)
                return False
            self._waiting += 1
            return True

    def give_up(self) -> None:
        """Count a span as dropped for which room was reserved."""
        with self._lock:
            self._waiting -= 1
            self._counts = self._counts._replace(dropped=self._counts.dropped + 1)

    def counts(self) -> tracing.SpanCounts:
        """Return what became of the spans so far."""
        return self._counts

    def export(self, spans: Sequence[ReadableSpan]) -> sdk_export.SpanExportResult:
        """Send a batch; called by the thread of the SDK."""
        result = sdk_export.SpanExportResult.FAILURE
        try:
            result = self._inner.export(spans)
        finally:
            is_sent = result is sdk_export.SpanExportResult.SUCCESS
            with self._lock:
                self._waiting -= len(spans)
                counts = self._counts
                self._counts = counts._replace(
                    exported=counts.exported + len(spans) * is_sent, failed=counts.failed + len(spans) * (not is_sent)
                )
        return result

    def shutdown(self) -> None:
        """Close the connection."""
        self._inner.shutdown()


class OtelTracer:
    """Records spans in the background."""

    is_on: Final = True

    def __init__(
        self, exporter: sdk_export.SpanExporter, *, resource: Resource, sampler: Sampler, queue_size: int
    ) -> None:
        self._exporter = CountingExporter(exporter, queue_size=queue_size)
        self._processor = sdk_export.BatchSpanProcessor(self._exporter, max_queue_size=queue_size)
        self._ids = _GivenIds()
        # The sampler has decided when a span is recorded.
        self._provider = TracerProvider(
            sampler=ALWAYS_ON, resource=resource, id_generator=self._ids, shutdown_on_exit=False
        )
        self._provider.add_span_processor(self._processor)
        self._tracer = self._provider.get_tracer(_SCOPE, __version__)
        self._sampler = sampler
        self._limit = _limit_of(sampler)
        self._random = random.Random()  # noqa: S311 - IDs, not secrets
        # A request asks several times in each process. Without an operation ID, each version is a request of its own.
        self._decide_operation = functools.lru_cache(maxsize=_DECISIONS_REMEMBERED)(self._decide)

    def sampled(self, operation_id: str, resource_id: str = "", version: int = 0) -> SpanContext | None:
        """Return the trace of a request and the span that published it; None if the request is not traced."""
        if operation_id:
            return self._decide_operation(operation_id)
        return self._decide("", resource_id, version)

    def _decide(self, operation_id: str, resource_id: str = "", version: int = 0) -> SpanContext | None:
        if operation_id and self._limit is not None and trace_context.is_above(operation_id, self._limit):
            return None
        context = trace_context.of_request(operation_id, resource_id, version)
        return context._replace(is_sampled=True) if self._is_sampled(context) else None

    def continued(self, parent: SpanContext) -> bool:
        """Return whether a span below `parent`, of another process, is recorded."""
        return self._is_sampled(parent)

    def _is_sampled(self, context: SpanContext) -> bool:
        if self._limit is not None and not context.span_id:
            return context.trace_id & _LOW_BITS < self._limit
        parent = _remote(context) if context.span_id else Context()
        result = self._sampler.should_sample(parent, context.trace_id, _SCOPE)
        return result.decision is Decision.RECORD_AND_SAMPLE

    def new_trace(self) -> SpanContext:
        """Return a new trace, with the ID of its first span; the caller has decided that it is sampled."""
        return SpanContext(self._random.getrandbits(128) or 1, self.new_span_id())

    def new_span_id(self) -> int:
        """Return the ID of a span that nobody names beforehand."""
        return self._random.getrandbits(64) or 1

    def record(self, span: tracing.Span) -> None:
        """Queue a span for export; called by one thread."""
        if not self._exporter.has_room():
            return
        try:
            # A clock that was set back must not make a span end before it began.
            self._start(span).end(_nanoseconds(max(span.start, span.end)))
        except Exception:  # noqa: BLE001 - whatever is wrong with a span, its request goes on
            self._exporter.give_up()

    def _start(self, span: tracing.Span) -> trace.Span:
        self._ids.next = span.context
        parent = _remote(span.context._replace(span_id=span.parent)) if span.parent else Context()
        recorded = self._tracer.start_span(
            span.name,
            context=parent,
            kind=_KINDS[span.kind],
            attributes=span.attributes,
            links=[trace.Link(_sdk_context(link)) for link in span.links],
            start_time=_nanoseconds(span.start),
        )
        if span.error:
            recorded.set_status(Status(StatusCode.ERROR, span.error))
        return recorded

    def counts(self) -> tracing.SpanCounts:
        """Return what became of the recorded spans."""
        return self._exporter.counts()

    def close(self) -> None:
        """Export what is queued, for a few seconds at most; blocks."""
        _close(self._processor)


def _limit_of(sampler: Sampler) -> int | None:
    """Return below which number the low bits of a trace ID are sampled; None if only the sampler knows.

    What the SDK does for one decision takes longer than all that an untraced request costs otherwise.
    """
    root = _ROOT_SAMPLER.match(sampler.get_description())
    if root is None:
        return None
    return TraceIdRatioBased(
        {"AlwaysOnSampler": 1.0, "AlwaysOffSampler": 0.0}.get(root[1]) or float(root[2] or 0)
    ).bound


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


def _remote(context: SpanContext) -> Context:
    return trace.set_span_in_context(trace.NonRecordingSpan(_sdk_context(context)), Context())


def _sdk_context(context: SpanContext) -> trace.SpanContext:
    flags = _FLAGS if context.is_sampled else trace.TraceFlags(trace.TraceFlags.DEFAULT)
    return trace.SpanContext(context.trace_id, context.span_id, is_remote=True, trace_flags=flags)


class _ProblemHandler(logging.Handler):
    """Passes the problems of the SDK on, each once a minute, in place of its own lines on standard error."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._report = report
        self._reported: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Report one problem."""
        if record.created < self._reported.get(str(record.msg), 0.0) + _PROBLEM_SECONDS:
            return
        self._reported[str(record.msg)] = record.created
        # While the process ends, its log may be closed already.
        with contextlib.suppress(Exception):
            self._report(record.getMessage())


def report_problems(report: Callable[[str], None]) -> None:
    """Pass what the SDK logs to `report`, which may be called by its threads."""
    logger = logging.getLogger("opentelemetry")
    logger.handlers = [_ProblemHandler(report)]
    logger.propagate = False


def open_tracer(exporter: str, *, service: str, environ: Mapping[str, str]) -> OtelTracer:
    """Build the tracer; sampler, endpoint, queue and resource come from the standard variables of the SDK."""
    return OtelTracer(
        span_exporter(exporter),
        resource=resource(service, environ),
        # The provider reads OTEL_TRACES_SAMPLER; nothing public reads it alone.
        sampler=TracerProvider(shutdown_on_exit=False).sampler,
        queue_size=_queue_size(environ),
    )


@contextlib.contextmanager
def application(exporter: str, *, service: str, environ: Mapping[str, str]) -> Iterator[None]:
    """Be an application that uses OpenTelemetry, whose traces the SDK of Maestro continues."""
    provider = TracerProvider(resource=resource(service, environ), shutdown_on_exit=False)
    processor = sdk_export.BatchSpanProcessor(span_exporter(exporter))
    provider.add_span_processor(processor)
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        _close(processor)


def _close(processor: sdk_export.BatchSpanProcessor) -> None:
    """Export what is queued; a collector that does not answer must not keep the process."""
    closing = threading.Thread(target=processor.shutdown, daemon=True, name="export the last spans")
    closing.start()
    closing.join(_CLOSE_SECONDS)


def span_exporter(exporter: str) -> sdk_export.SpanExporter:
    """Return the exporter that OTEL_TRACES_EXPORTER names: `otlp` or `console`."""
    return sdk_export.ConsoleSpanExporter() if exporter == "console" else OTLPSpanExporter()


def resource(service: str, environ: Mapping[str, str]) -> Resource:
    """Return what is said about this process; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come first."""
    is_named = environ.get("OTEL_SERVICE_NAME") or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    instance = {"service.version": __version__, "service.instance.id": f"{socket.gethostname()}-{os.getpid()}"}
    return Resource.create(instance if is_named else {**instance, "service.name": service})


def _queue_size(environ: Mapping[str, str]) -> int:
    text = environ.get(_QUEUE_VARIABLE, "")
    return int(text) if text.isdecimal() and int(text) else _QUEUE_DEFAULT
