"""The spans of a server: parents across the database, links where requests are joined, a bridge over Go agents."""

from dataclasses import replace
from typing import Any

from maestropy.server.decide import admission, rejection, status_intake
from maestropy.server.telemetry.request_spans import RequestSpans, RestCall, with_parent
from maestropy.store import rows
from maestropy.telemetry import trace_context
from maestropy.telemetry.trace_context import SpanContext
from maestropy.telemetry.tracing import Span
from maestropy.wire.events import event, stored_event
from tests.recording_tracer import RecordingTracer

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE, PUBLISHER = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
OTHER = "00-11111111111111111111111111111111-2222222222222222-01"


def spans_of_server() -> tuple[RequestSpans, RecordingTracer]:
    tracer = RecordingTracer()
    return RequestSpans(tracer), tracer


def request(operation_id: str, **changes: Any) -> admission.SpecRequest:
    created = admission.SpecRequest(
        action=event.EventAction.CREATE_REQUEST,
        id="r1",
        source="cs",
        consumer="c1",
        version=0,
        event_id="e1",
        operation_id=operation_id,
        parts=stored_event.StoredParts(envelope=b"{}", metadata=b"", data=b""),
    )
    return replace(created, **changes)


def outgoing(operation_id: str, *, kind: str = event.SPEC_CREATE, **extensions: event.Attribute) -> event.CloudEvent:
    tracing = f'{{"{event.OPERATION_ID_KEY}":"{operation_id}"}}'
    own = {event.RESOURCE_ID: "r1", event.RESOURCE_VERSION: 1, event.LOG_TRACING: tracing, **extensions}
    return event.CloudEvent(id="e1", source="maestro", type=kind, extensions=own)


def update(operation_id: str, **changes: Any) -> status_intake.StatusUpdate:
    received = status_intake.StatusUpdate(
        id="r1",
        consumer="c1",
        version=1,
        sequence_id="77",
        status_hash="",
        is_deleted=False,
        created_seconds=None,
        operation_id=operation_id,
        received=outgoing(operation_id, kind=event.STATUS_UPDATE),
        envelope=b"{}",
    )
    return replace(received, **changes)


def test_the_way_of_a_request_through_a_server_is_one_trace() -> None:
    spans, tracer = spans_of_server()
    arrival = spans.arrive(PARENT, now=1.0)
    accepted = request(PARENT, arrival_span=arrival.span_id)
    spans.specs_committed([accepted], {"r1": admission.Create(1)}, start=1.1, now=1.2)
    spans.accepted(arrival, accepted, admission.Create(1), now=1.3, problem="")
    sending = spans.dispatch(outgoing(PARENT), is_resync=False, now=2.0)
    assert sending is not None
    spans.dispatched(sending, problem="", now=2.1)
    sent = with_parent(outgoing(PARENT), sending)
    # The agent's span names the dispatch as its parent; its own status update comes back below it.
    agent = SpanContext(TRACE, 999)
    status = update(PARENT, trace_parent=str(agent))
    intake = spans.arrive(status.trace_parent, now=3.0)
    stored = status_intake.Store()
    spans.statuses_committed([(replace(status, arrival_span=intake.span_id), stored)], start=3.1, now=3.2)
    spans.status_received(intake, status, stored, now=3.3)
    answer = spans.dispatch_status(
        outgoing(PARENT, kind=event.STATUS_UPDATE, **{event.SEQUENCE_ID: "77"}), is_resync=False, now=4.0
    )
    assert answer is not None
    spans.status_dispatched(answer, subscribers=1, is_final=False, now=4.1)

    assert {span.context.trace_id for span in tracer.spans} == {TRACE}
    assert len(tracer.spans) == 6
    chain = [
        tracer.named(name)
        for name in (
            "accept spec request",
            "commit spec",
            "dispatch spec",
        )
    ]
    assert [span.parent for span in chain] == [PUBLISHER, chain[0].context.span_id, chain[1].context.span_id]
    assert sent.extensions[event.TRACE_PARENT] == str(chain[2].context)
    back = [tracer.named(name) for name in ("receive status", "commit status", "dispatch status")]
    assert [span.parent for span in back] == [999, back[0].context.span_id, back[1].context.span_id]
    assert all(span.attributes["op-id"] == PARENT for span in tracer.spans)
    assert not any(span.links or span.error for span in tracer.spans)


def test_another_instance_finds_the_parents() -> None:
    """Commit and dispatch may happen in different processes, which share nothing but the row."""
    first, second = spans_of_server(), spans_of_server()
    first[0].specs_committed([request("op")], {"r1": admission.Create(1)}, start=1.0, now=1.1)
    assert second[0].dispatch(outgoing("op"), is_resync=False, now=2.0) is not None
    sending = second[0].dispatch(outgoing("op"), is_resync=False, now=2.0)
    assert sending is not None
    assert sending.span.parent == first[1].named("commit spec").context.span_id
    assert sending.span.context.trace_id == first[1].named("commit spec").context.trace_id


def test_a_commit_that_joins_requests_links_them() -> None:
    spans, tracer = spans_of_server()
    requests = [request(f"op-{number}", id=f"r{number}", arrival_span=number) for number in (1, 2)]
    outcomes = {each.id: admission.Create(1) for each in requests}
    spans.specs_committed(requests, outcomes, start=1.0, now=1.1)
    joint = tracer.named("commit specs")
    commits = [span for span in tracer.spans if span.name == "commit spec"]
    assert list(joint.links) == [span.context for span in commits]
    assert [list(span.links) for span in commits] == [[joint.context], [joint.context]]
    assert [span.parent for span in commits] == [1, 2]
    assert len({span.context.trace_id for span in tracer.spans}) == 3
    assert joint.attributes["maestro.batch_size"] == 2


def test_a_client_in_another_trace_is_linked() -> None:
    spans, tracer = spans_of_server()
    arrival = spans.arrive(OTHER, now=1.0)
    spans.accepted(arrival, request("op"), admission.Create(1), now=1.1, problem="")
    accepted = tracer.named("accept spec request")
    assert accepted.parent == 0
    assert [str(link) for link in accepted.links] == [OTHER]


def test_a_rejected_request_has_no_commit_and_says_why() -> None:
    spans, tracer = spans_of_server()
    arrival = spans.arrive("", now=1.0)
    outcome = rejection.not_found("r1")
    spans.specs_committed([request("op")], {"r1": outcome}, start=1.0, now=1.1)
    spans.accepted(arrival, request("op"), None, now=1.2, problem="not found")
    assert [(span.name, span.error) for span in tracer.spans] == [("accept spec request", "not found")]


def test_a_resync_answer_has_a_trace_of_its_own_with_a_link() -> None:
    spans, _ = spans_of_server()
    sending = spans.dispatch(outgoing(PARENT, kind=event.SPEC_RESYNC_RESPONSE), is_resync=True, now=1.0)
    assert sending is not None
    assert sending.span.context.trace_id != TRACE
    assert sending.span.parent == 0
    assert [link.span_id for link in sending.span.links] == [trace_context.spec_commit_id(TRACE, "r1", 1)]
    status = outgoing(PARENT, kind=event.STATUS_UPDATE, **{event.SEQUENCE_ID: "77"})
    answer = spans.dispatch_status(status, is_resync=True, now=1.0)
    assert answer is not None
    assert answer.span.context.trace_id != TRACE
    assert [link.trace_id for link in answer.span.links] == [TRACE]


def test_a_deletion_links_to_the_commit_of_the_spec_whose_operation_id_agents_report() -> None:
    spans, tracer = spans_of_server()
    envelope = stored_event.envelope_of(outgoing("create-op"))
    parts = stored_event.StoredParts(envelope=envelope, metadata=b"", data=b"")
    stored = rows.StoredSpec(id="r1", version=1, source="cs", consumer="c1", is_deleting=False, parts=parts)
    deletion = request("delete-op", action=event.EventAction.DELETE_REQUEST)
    spans.specs_committed([deletion], {"r1": admission.MarkDeleting(stored)}, start=1.0, now=1.1)
    created = trace_context.of_request("create-op", "r1", 1)
    commit = tracer.named("commit spec")
    assert commit.context.trace_id == trace_context.of_request("delete-op", "r1", 1).trace_id
    assert list(commit.links) == [
        created._replace(span_id=trace_context.spec_commit_id(created.trace_id, "r1", 1)),
    ]


def test_a_deletion_without_operation_id_is_another_span_than_the_spec_it_deletes() -> None:
    spans, tracer = spans_of_server()
    spans.specs_committed([request("")], {"r1": admission.Create(1)}, start=1.0, now=1.1)
    deletion = request("", action=event.EventAction.DELETE_REQUEST, version=1)
    spans.specs_committed([deletion], {"r1": admission.MarkDeleting()}, start=2.0, now=2.1)
    created, deleted = tracer.spans
    assert created.context.trace_id == deleted.context.trace_id
    assert created.context.span_id != deleted.context.span_id


def dispatched(spans: RequestSpans) -> Span:
    sending = spans.dispatch(outgoing(PARENT), is_resync=False, now=1.0)
    assert sending is not None
    spans.dispatched(sending, problem="", now=1.1)
    return sending.span


def test_a_go_agent_is_bridged_from_the_dispatch_to_its_first_status() -> None:
    spans, tracer = spans_of_server()
    dispatch = dispatched(spans)
    for now in (2.0, 3.0):
        arrival = spans.arrive("", now=now)
        spans.status_received(arrival, update(PARENT), status_intake.Store(), now=now + 0.1)
    bridge = tracer.named("agent without traces")
    assert bridge.parent == dispatch.context.span_id
    assert (bridge.start, bridge.end) == (1.1, 2.0)
    received = [span for span in tracer.spans if span.name == "receive status"]
    assert [span.parent for span in received] == [bridge.context.span_id, bridge.context.span_id]


def test_a_status_of_a_go_agent_that_another_instance_dispatched_to_follows_the_commit() -> None:
    spans, tracer = spans_of_server()
    spans.status_received(spans.arrive("", now=2.0), update(PARENT), status_intake.Store(), now=2.1)
    assert tracer.named("receive status").parent == trace_context.spec_commit_id(TRACE, "r1", 1)


def test_a_spec_that_was_not_sent_is_an_error_and_no_agent_has_it() -> None:
    spans, tracer = spans_of_server()
    sending = spans.dispatch(outgoing(PARENT), is_resync=False, now=1.0)
    assert sending is not None
    spans.dispatched(sending, problem="OFFLINE", now=1.1)
    assert tracer.named("dispatch spec").error == "OFFLINE"
    spans.status_received(spans.arrive("", now=2.0), update(PARENT), status_intake.Store(), now=2.1)
    assert not any(span.name == "agent without traces" for span in tracer.spans)


def test_a_rest_request_continues_the_trace_of_its_caller_or_has_that_of_its_operation_id() -> None:
    spans, tracer = spans_of_server()
    call = RestCall("DELETE", "/api/maestro/v1/resource-bundles/{id}", "op", "")
    spans.rest_answered(call._replace(trace_parent=PARENT), status=204, start=1.0, now=1.1)
    spans.rest_answered(call, status=503, start=1.0, now=1.1)
    called, alone = tracer.spans
    assert called.name == "maestro-api HTTP DELETE"
    assert (called.context.trace_id, called.parent) == (TRACE, PUBLISHER)
    assert (alone.context.trace_id, alone.parent) == (trace_context.of_request("op", "", 0).trace_id, 0)
    assert (called.error, alone.error) == ("", "HTTP 503")
