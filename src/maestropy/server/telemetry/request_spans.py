"""Record the spans of requests and status updates on their way through one server instance.

Commits happen once for each version and each status, so their span IDs follow from the trace: every later step names
them as parents, in another instance, after a restart and behind a Go agent. What happens again is no part of the trace
of the request: the answer to a resync gets a trace of its own with a link.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from maestropy.server.decide import admission, status_intake
from maestropy.store import errors as store_errors
from maestropy.telemetry import trace_context, tracing
from maestropy.telemetry.trace_context import SpanContext
from maestropy.wire import errors as wire_errors
from maestropy.wire.events import event, stored_event

_AGENTS_REMEMBERED = 4096

SpecOutcome = admission.Verdict | store_errors.StoreError
_STORED = (admission.Create, admission.Update, admission.MarkDeleting)


class Arrival(NamedTuple):
    """A request or a status update that is being handled."""

    span_id: int
    started: float
    sender: SpanContext | None
    """The span that sent it, as its `traceparent` says."""


class RestCall(NamedTuple):
    """A request of the REST API."""

    method: str
    path: str
    operation_id: str
    trace_parent: str
    """The `traceparent` header; empty if there is none."""


class Sending(NamedTuple):
    """An event that is on its way out."""

    span: tracing.Span
    resource_id: str
    version: int


@dataclass(frozen=True, slots=True)
class _AtAgent:
    """A spec that an agent has, of which no span has been seen yet."""

    dispatch: SpanContext
    sent: float
    span_id: int = 0
    """The span that stands for the agent; 0: it is not recorded yet."""


class RequestSpans:
    """The spans of one server instance; with tracing off every caller skips them by `is_on`."""

    def __init__(self, tracer: tracing.Tracer = tracing.OFF) -> None:
        self._tracer = tracer
        self.is_on = tracer.is_on
        self._at_agents: OrderedDict[tuple[str, int], _AtAgent] = OrderedDict()

    def may_trace(self, operation_id: str) -> bool:
        """Return whether a request may be traced: without an operation ID only its version decides."""
        return self.is_on and (not operation_id or self._tracer.sampled(operation_id) is not None)

    def arrive(self, trace_parent: str, *, now: float) -> Arrival:
        """Begin to handle an event that the span `trace_parent` sent."""
        return Arrival(self._tracer.new_span_id(), now, trace_context.parse(trace_parent))

    def accepted(
        self, arrival: Arrival, request: admission.SpecRequest, verdict: SpecOutcome | None, *, now: float, problem: str
    ) -> None:
        """Record that a spec request was answered, with `problem` if it was rejected."""
        trace = self._tracer.sampled(request.operation_id, request.id, _version(request, verdict))
        if trace is None:
            return
        parent, links = _placed(trace, arrival.sender)
        self._tracer.record(
            tracing.Span(
                name="accept spec request",
                context=trace._replace(span_id=arrival.span_id),
                parent=parent or trace.span_id,
                kind=tracing.SpanKind.SERVER,
                start=arrival.started,
                end=now,
                links=links,
                attributes=_attributes(request.operation_id, request.id, _version(request, verdict))
                | {
                    "maestro.action": str(request.action),
                    "maestro.source": request.source,
                    "maestro.consumer": request.consumer,
                    "maestro.event_id": request.event_id,
                    "maestro.requested_version": request.version,
                },
                error=problem,
            )
        )

    def specs_committed(
        self,
        requests: Sequence[admission.SpecRequest],
        outcomes: Mapping[str, SpecOutcome],
        *,
        start: float,
        now: float,
    ) -> None:
        """Record the requests that one commit has stored."""
        spans: list[tracing.Span] = []
        for request in requests:
            outcome = outcomes[request.id]
            if not isinstance(outcome, _STORED):
                continue
            version = _version(request, outcome)
            trace = self._tracer.sampled(request.operation_id, request.id, version)
            if trace is not None:
                spans.append(
                    tracing.Span(
                        name="commit spec",
                        context=trace._replace(span_id=_commit_id(trace, request, version)),
                        parent=request.arrival_span or trace.span_id,
                        start=start,
                        end=now,
                        links=self._links_of_deletion(outcome),
                        attributes=_attributes(request.operation_id, request.id, version),
                    )
                )
        self._record_batch(spans, name="commit specs", size=len(requests))

    def _links_of_deletion(self, outcome: SpecOutcome) -> Sequence[SpanContext]:
        """Return the commit of the deleted spec: agents report a deletion under the operation ID of the spec."""
        if not isinstance(outcome, admission.MarkDeleting) or outcome.stored is None:
            return ()
        stored = outcome.stored
        try:
            operation_id = admission.operation_id(stored_event.from_envelope(stored.parts.envelope))
        except wire_errors.WireError:
            return ()  # the stored spec is damaged
        trace = self._tracer.sampled(operation_id, stored.id, stored.version)
        return (
            ()
            if trace is None
            else (trace._replace(span_id=trace_context.spec_commit_id(trace.trace_id, stored.id, stored.version)),)
        )

    def _dispatch(
        self, name: str, commit: SpanContext, attributes: tracing.Attributes, *, is_resync: bool, now: float
    ) -> tracing.Span:
        """Begin a span below the commit that is sent; of a resync, in a trace of its own with a link to it."""
        return tracing.Span(
            name=name,
            context=self._tracer.new_trace() if is_resync else commit._replace(span_id=self._tracer.new_span_id()),
            parent=0 if is_resync else commit.span_id,
            kind=tracing.SpanKind.PRODUCER,
            start=now,
            end=now,
            links=(commit,) if is_resync else (),
            attributes=attributes,
        )

    def _record_batch(self, spans: Sequence[tracing.Span], *, name: str, size: int) -> None:
        """Record the spans of one commit; if it joins several traces, one more span that links to all of them."""
        joint: tuple[SpanContext, ...] = ()
        if len(spans) > 1:
            joint = (self._tracer.new_trace(),)
            self._tracer.record(
                tracing.Span(
                    name=name,
                    context=joint[0],
                    start=spans[0].start,
                    end=spans[0].end,
                    links=[span.context for span in spans],
                    attributes={"maestro.batch_size": size},
                )
            )
        for span in spans:
            attributes = {**span.attributes, "maestro.batch_size": size}
            self._tracer.record(replace(span, links=(*span.links, *joint), attributes=attributes))

    def dispatch(self, outgoing: event.CloudEvent, *, is_resync: bool, now: float) -> Sending | None:
        """Begin to send a spec to its agent; None if it is not traced."""
        operation_id = admission.operation_id(outgoing)
        if not self.may_trace(operation_id):
            return None
        resource_id, version = outgoing.optional_text(event.RESOURCE_ID), outgoing.integer(event.RESOURCE_VERSION)
        trace = self._tracer.sampled(operation_id, resource_id, version)
        if trace is None:
            return None
        commit = trace._replace(span_id=trace_context.spec_commit_id(trace.trace_id, resource_id, version))
        attributes = _attributes(operation_id, resource_id, version) | {
            "maestro.consumer": outgoing.optional_text(event.CLUSTER_NAME),
            "maestro.action": outgoing.type.rpartition(".")[2],
        }
        span = self._dispatch("dispatch spec", commit, attributes, is_resync=is_resync, now=now)
        return Sending(span, resource_id, version)

    def dispatched(self, sending: Sending, *, problem: str, now: float) -> None:
        """Record that a spec was sent, or why it was not."""
        self._tracer.record(replace(sending.span, end=now, error=problem))
        if not problem:
            self._at_agents[sending.resource_id, sending.version] = _AtAgent(sending.span.context, now)
            while len(self._at_agents) > _AGENTS_REMEMBERED:
                self._at_agents.popitem(last=False)

    def status_received(
        self, arrival: Arrival, update: status_intake.StatusUpdate, verdict: status_intake.Verdict, *, now: float
    ) -> None:
        """Record that a status update was handled."""
        trace = self._tracer.sampled(update.operation_id, update.id, update.version)
        if trace is None:
            return
        parent, links = _placed(trace, arrival.sender)
        if arrival.sender is None:
            parent = self._bridge(trace, update, now=arrival.started)
        match verdict:
            case status_intake.Reject(reason):
                error = reason
            case status_intake.Unordered(problem):
                error = problem.text
            case _:
                error = ""
        self._tracer.record(
            tracing.Span(
                name="receive status",
                context=trace._replace(span_id=arrival.span_id),
                parent=parent or trace_context.spec_commit_id(trace.trace_id, update.id, update.version),
                kind=tracing.SpanKind.CONSUMER,
                start=arrival.started,
                end=now,
                links=links,
                attributes=_attributes(update.operation_id, update.id, update.version)
                | {
                    "maestro.consumer": update.consumer,
                    "maestro.sequence_id": update.sequence_id,
                    "maestro.outcome": type(verdict).__name__,
                },
                error=error,
            )
        )

    def _bridge(self, trace: SpanContext, update: status_intake.StatusUpdate, *, now: float) -> int:
        """Return the span that stands for an agent without traces: from the dispatch to its first status update."""
        key = (update.id, update.version)
        at_agent = self._at_agents.get(key)
        if at_agent is None or at_agent.dispatch.trace_id != trace.trace_id:
            return 0
        if not at_agent.span_id:
            at_agent = self._at_agents[key] = replace(at_agent, span_id=self._tracer.new_span_id())
            self._tracer.record(
                tracing.Span(
                    name="agent without traces",
                    context=trace._replace(span_id=at_agent.span_id),
                    parent=at_agent.dispatch.span_id,
                    start=at_agent.sent,
                    end=now,
                    attributes=_attributes(update.operation_id, update.id, update.version)
                    | {"maestro.consumer": update.consumer},
                )
            )
        return at_agent.span_id

    def statuses_committed(
        self, decided: Iterable[tuple[status_intake.StatusUpdate, status_intake.Verdict]], *, start: float, now: float
    ) -> None:
        """Record the status updates that one commit has stored."""
        spans: list[tracing.Span] = []
        size = 0
        for update, verdict in decided:
            size += 1
            if not isinstance(verdict, status_intake.Store | status_intake.Remove):
                continue
            trace = self._tracer.sampled(update.operation_id, update.id, update.version)
            if trace is not None:
                sequence_id = verdict.sequence_id or update.sequence_id
                spans.append(
                    tracing.Span(
                        name="commit status",
                        context=trace._replace(span_id=_status_commit_id(trace, update.id, sequence_id)),
                        parent=update.arrival_span
                        or trace_context.spec_commit_id(trace.trace_id, update.id, update.version),
                        start=start,
                        end=now,
                        attributes=_attributes(update.operation_id, update.id, update.version)
                        | {"maestro.sequence_id": sequence_id, "maestro.outcome": type(verdict).__name__},
                    )
                )
        self._record_batch(spans, name="commit statuses", size=size)

    def dispatch_status(self, outgoing: event.CloudEvent, *, is_resync: bool, now: float) -> Sending | None:
        """Begin to send a status to its source; None if it is not traced."""
        operation_id = admission.operation_id(outgoing)
        if not self.may_trace(operation_id):
            return None
        try:
            resource_id, version = outgoing.text(event.RESOURCE_ID), outgoing.integer(event.RESOURCE_VERSION)
        except wire_errors.WireError:
            return None  # a status without them is sent all the same
        trace = self._tracer.sampled(operation_id, resource_id, version)
        if trace is None:
            return None
        commit_id = _status_commit_id(trace, resource_id, outgoing.optional_text(event.SEQUENCE_ID))
        commit = trace._replace(span_id=commit_id)
        attributes = _attributes(operation_id, resource_id, version) | {
            "maestro.consumer": outgoing.optional_text(event.CLUSTER_NAME),
            "maestro.sequence_id": outgoing.optional_text(event.SEQUENCE_ID),
        }
        span = self._dispatch("dispatch status", commit, attributes, is_resync=is_resync, now=now)
        return Sending(span, resource_id, version)

    def status_dispatched(self, sending: Sending, *, subscribers: int, is_final: bool, now: float) -> None:
        """Record that a status was queued for the subscribers of its source; `is_final`: the last of a deletion."""
        attributes = {**sending.span.attributes, "maestro.subscribers": subscribers, "maestro.is_final": is_final}
        self._tracer.record(replace(sending.span, end=now, attributes=attributes))

    def rest_answered(self, call: RestCall, *, status: int, start: float, now: float) -> None:
        """Record a REST request, as a Go server does; without a `traceparent` it belongs to its operation ID."""
        caller = trace_context.parse(call.trace_parent)
        if caller is not None:
            trace = caller if self._tracer.continued(caller) else None
        else:
            trace = self._tracer.sampled(call.operation_id)
        if trace is None:
            return
        self._tracer.record(
            tracing.Span(
                name=f"maestro-api HTTP {call.method}",
                context=SpanContext(trace.trace_id, self._tracer.new_span_id()),
                parent=trace.span_id,
                kind=tracing.SpanKind.SERVER,
                start=start,
                end=now,
                attributes={
                    "op-id": call.operation_id,
                    "http.request.method": call.method,
                    "http.route": call.path,
                    "http.response.status_code": status,
                },
                error=f"HTTP {status}" if status >= 500 else "",
            )
        )


def with_parent(outgoing: event.CloudEvent, sending: Sending) -> event.CloudEvent:
    """Return an event that names the span that sends it."""
    extensions = {**outgoing.extensions, event.TRACE_PARENT: str(sending.span.context)}
    return replace(outgoing, extensions=extensions)


def _placed(trace: SpanContext, sender: SpanContext | None) -> tuple[int, Sequence[SpanContext]]:
    """Return the parent and the links of what `sender` sent: a span of another trace can only be linked."""
    if sender is None:
        return 0, ()
    return (sender.span_id, ()) if sender.trace_id == trace.trace_id else (0, (sender,))


def _version(request: admission.SpecRequest, outcome: SpecOutcome | None) -> int:
    match outcome:
        case admission.Create(version) | admission.Update(version):
            return version
        case admission.MarkDeleting(stored) if stored is not None:
            return stored.version
        case _:
            return request.version


def _commit_id(trace: SpanContext, request: admission.SpecRequest, version: int) -> int:
    if request.action == event.EventAction.DELETE_REQUEST:
        # A deletion keeps the version, and without an operation ID also the trace, of the spec.
        return trace_context.span_id(trace.trace_id, "commit deletion", request.id, version)
    return trace_context.spec_commit_id(trace.trace_id, request.id, version)


def _status_commit_id(trace: SpanContext, resource_id: str, sequence_id: str) -> int:
    return trace_context.span_id(trace.trace_id, "commit status", resource_id, sequence_id)


def _attributes(operation_id: str, resource_id: str, version: int) -> dict[str, str | int | bool]:
    identity: dict[str, str | int | bool] = {"maestro.resource_id": resource_id, "maestro.resource_version": version}
    return {"op-id": operation_id, **identity} if operation_id else identity
