"""Continue the traces of an application that uses OpenTelemetry.

Nothing is configured here: the application does that, and without it every function returns at once. The operation ID
of a traced request is the `traceparent` of the span that publishes it, because every server and agent, also of Go, and
the database pass the operation ID on. A request that has an operation ID already keeps it; the server then links its
trace to the application's.
"""

import sys
from dataclasses import replace
from typing import Any, Final

from maestropy.aio import clock
from maestropy.sdk._connection.error_mapping import Operation
from maestropy.telemetry import trace_context
from maestropy.wire.events import event, log_tracing

_SCOPE: Final = "maestropy"


def begin(doing: str, operation_id: str) -> Operation:
    """Return an operation, with its span if the application traces; `operation_id` may be empty."""
    api = _api()
    if api is None:
        return Operation(doing=doing, operation_id=operation_id or clock.new_id())
    span = api.get_tracer(_SCOPE).start_span("publish spec request", kind=api.SpanKind.PRODUCER)
    chosen = operation_id or _formatted(span) or clock.new_id()
    span.set_attributes({"op-id": chosen, "maestro.operation": doing})
    return Operation(doing=doing, operation_id=chosen, span=span)


def trace_parent(request: Operation) -> str:
    """Return the `traceparent` of an operation; empty without a span."""
    return "" if request.span is None else _formatted(request.span)


def with_parent(sent: event.CloudEvent, parent: str) -> event.CloudEvent:
    """Return an event that names the span that sends it; unchanged without one."""
    return replace(sent, extensions={**sent.extensions, event.TRACE_PARENT: parent}) if parent else sent


def end(request: Operation, *, problem: str = "") -> None:
    """End the span of an operation."""
    api = _api()
    if api is None or request.span is None:
        return
    if problem:
        request.span.set_status(api.StatusCode.ERROR, problem)
    request.span.end()


def status_received(received: event.CloudEvent) -> None:
    """Record that a status event was received, as the last span of its trace."""
    api = _api()
    if api is None:
        return
    # A Go server sends no `traceparent`, but the operation ID.
    operation_id = log_tracing.operation_id(received)
    sender = trace_context.parse(received.optional_text(event.TRACE_PARENT)) or trace_context.parse(operation_id)
    if sender is None:
        return
    remote = api.SpanContext(
        sender.trace_id, sender.span_id, is_remote=True, trace_flags=api.TraceFlags(int(sender.is_sampled))
    )
    span = api.get_tracer(_SCOPE).start_span(
        "receive status",
        context=api.set_span_in_context(api.NonRecordingSpan(remote)),
        kind=api.SpanKind.CONSUMER,
        attributes={"op-id": operation_id, "maestro.resource_id": received.optional_text(event.RESOURCE_ID)},
    )
    span.end()


def _api() -> Any:
    """Return the API of OpenTelemetry if the application has imported it: whoever traces has."""
    return sys.modules.get("opentelemetry.trace")


def _formatted(span: Any) -> str:
    context = span.get_span_context()
    if not context.is_valid:
        return ""  # the application has no tracer provider
    return str(trace_context.SpanContext(context.trace_id, context.span_id, bool(context.trace_flags.sampled)))
