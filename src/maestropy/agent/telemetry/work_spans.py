"""Record the spans of works on their way through the agent: receive, apply, send the status.

A spec that a resync brings is not the step that its request waited for, so its spans continue the trace of the resync.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import NamedTuple

from maestropy.telemetry import trace_context, tracing
from maestropy.telemetry.trace_context import SpanContext
from maestropy.wire import errors
from maestropy.wire.events import event, log_tracing

_WORKS_REMEMBERED = 4096
_ATTEMPTS_RECORDED = 3
"""How often a spec that cannot be applied is recorded; a work may fail for months."""


class Identity(NamedTuple):
    """What tells one request from another."""

    operation_id: str
    resource_id: str
    version: int

    def attributes(self) -> dict[str, str | int | bool]:
        """Return the attributes that every span of the request has."""
        own: dict[str, str | int | bool] = {
            "maestro.resource_id": self.resource_id,
            "maestro.resource_version": self.version,
        }
        return {"op-id": self.operation_id, **own} if self.operation_id else own


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReceivedSpec:
    identity: Identity
    receive: SpanContext
    apply_id: int
    """The span that applies it, which the status names before it has ended."""
    attempts: int = 0


class WorkSpans:
    """The spans of one agent; with tracing off every caller skips them by `is_on`."""

    def __init__(self, tracer: tracing.Tracer = tracing.OFF) -> None:
        self._tracer = tracer
        self.is_on = tracer.is_on
        self._received: OrderedDict[str, _ReceivedSpec] = OrderedDict()

    def received(self, passing: event.CloudEvent, *, start: float, now: float) -> None:
        """Record that a spec, or a deletion, was received that changes a work."""
        identity = _identity(passing)
        self._received.pop(identity.resource_id, None)
        trace = self._tracer.sampled(*identity)
        if trace is None:
            return
        commit_id = trace_context.spec_commit_id(trace.trace_id, identity.resource_id, identity.version)
        commit = trace._replace(span_id=commit_id)
        sender = trace_context.parse(passing.optional_text(event.TRACE_PARENT))
        is_of_request = sender is None or sender.trace_id == trace.trace_id
        links: tuple[SpanContext, ...] = ()
        if passing.type != event.SPEC_RESYNC_RESPONSE:
            parent = sender if sender is not None and is_of_request else commit
            links = () if is_of_request or sender is None else (sender,)
        elif sender is not None and not is_of_request:
            parent = sender
        else:
            parent, links = self._tracer.new_trace()._replace(span_id=0), (commit,)
        context = SpanContext(parent.trace_id, self._tracer.new_span_id())
        self._tracer.record(
            tracing.Span(
                name="receive spec",
                context=context,
                parent=parent.span_id,
                kind=tracing.SpanKind.CONSUMER,
                start=start,
                end=now,
                links=links,
                attributes=identity.attributes()
                | {
                    "maestro.consumer": passing.optional_text(event.CLUSTER_NAME),
                    "maestro.action": passing.type.rpartition(".")[2],
                },
            )
        )
        self._received[identity.resource_id] = _ReceivedSpec(
            identity=identity, receive=context, apply_id=self._tracer.new_span_id()
        )
        while len(self._received) > _WORKS_REMEMBERED:
            self._received.popitem(last=False)

    def is_new(self, work_id: str) -> bool:
        """Return whether a reconcile of a work is the first for a traced spec, or an early retry."""
        received = self._received.get(work_id)
        return received is not None and received.attempts < _ATTEMPTS_RECORDED

    def reconciled(self, work_id: str, *, is_deleting: bool, start: float, now: float, error: str) -> None:
        """Record a reconcile; after the first that succeeds, later ones are of no request."""
        received = self._received.get(work_id)
        if received is None:
            return
        attempts = received.attempts + 1
        self._tracer.record(
            tracing.Span(
                name="finalize work" if is_deleting else "apply work",
                context=received.receive._replace(
                    span_id=received.apply_id if attempts == 1 else self._tracer.new_span_id()
                ),
                parent=received.receive.span_id,
                start=start,
                end=now,
                attributes=received.identity.attributes() | {"maestro.attempt": attempts},
                error=error,
            )
        )
        self._received[work_id] = replace(received, attempts=attempts if error else _ATTEMPTS_RECORDED)

    def send(self, status: event.CloudEvent, *, now: float) -> tuple[event.CloudEvent, tracing.Span | None]:
        """Begin to send a status update: return it with the span that sends it."""
        identity = _identity(status)
        received = self._received.get(identity.resource_id)
        if received is not None and received.identity.version == identity.version:
            context, parent = received.receive, received.apply_id
        else:
            trace = self._tracer.sampled(*identity)
            if trace is None:
                return status, None
            context = trace
            parent = trace_context.spec_commit_id(trace.trace_id, identity.resource_id, identity.version)
        span = tracing.Span(
            name="send status",
            context=context._replace(span_id=self._tracer.new_span_id()),
            parent=parent,
            kind=tracing.SpanKind.PRODUCER,
            start=now,
            end=now,
            attributes=identity.attributes()
            | {
                "maestro.consumer": status.optional_text(event.CLUSTER_NAME),
                "maestro.sequence_id": status.optional_text(event.SEQUENCE_ID),
            },
        )
        extensions = {**status.extensions, event.TRACE_PARENT: str(span.context)}
        return replace(status, extensions=extensions), span

    def sent(self, span: tracing.Span, *, now: float) -> None:
        """Record that the server or the broker has accepted a status update."""
        self._tracer.record(replace(span, end=now))


def _identity(passing: event.CloudEvent) -> Identity:
    try:
        version = passing.integer(event.RESOURCE_VERSION)
    except errors.WireError:
        version = 0
    return Identity(log_tracing.operation_id(passing), passing.optional_text(event.RESOURCE_ID), version)
