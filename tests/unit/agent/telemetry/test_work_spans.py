"""The spans of an agent: below the dispatch of the server, and of a resync below that."""

import itertools

from maestropy.agent.telemetry.work_spans import WorkSpans
from maestropy.telemetry import trace_context
from maestropy.wire.events import event
from tests.recording_tracer import RecordingTracer

TRACE = 0x0AF7651916CD43DD8448EB211C80319C
OPERATION = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
DISPATCH = "00-0af7651916cd43dd8448eb211c80319c-00000000000000d1-01"
OTHER = "00-11111111111111111111111111111111-2222222222222222-01"


def spans_of_agent() -> tuple[WorkSpans, RecordingTracer]:
    tracer = RecordingTracer()
    return WorkSpans(tracer), tracer


def passing(parent: str, *, kind: str = event.SPEC_CREATE, version: int = 1) -> event.CloudEvent:
    extensions: dict[str, event.Attribute] = {
        event.RESOURCE_ID: "r1",
        event.RESOURCE_VERSION: version,
        event.CLUSTER_NAME: "c1",
        event.LOG_TRACING: f'{{"{event.OPERATION_ID_KEY}":"{OPERATION}"}}',
    }
    if parent:
        extensions[event.TRACE_PARENT] = parent
    return event.CloudEvent(id="e1", source="maestro", type=kind, extensions=extensions)


def test_receive_apply_and_status_are_a_chain_below_the_dispatch() -> None:
    spans, tracer = spans_of_agent()
    spans.received(passing(DISPATCH), start=1.0, now=1.1)
    assert spans.is_new("r1")
    status, span = spans.send(passing("", kind=event.STATUS_UPDATE), now=1.2)
    spans.reconciled("r1", is_deleting=False, start=1.1, now=1.3, error="")
    assert span is not None
    spans.sent(span, now=1.4)
    receive, apply, send = (tracer.named(name) for name in ("receive spec", "apply work", "send status"))
    assert [each.parent for each in (receive, apply, send)] == [0xD1, receive.context.span_id, apply.context.span_id]
    assert {each.context.trace_id for each in tracer.spans} == {TRACE}
    assert status.extensions[event.TRACE_PARENT] == str(send.context)
    assert not spans.is_new("r1")


def test_a_failing_work_is_recorded_a_few_times_only() -> None:
    spans, tracer = spans_of_agent()
    spans.received(passing(DISPATCH), start=1.0, now=1.1)
    for number in itertools.count(1):
        if not spans.is_new("r1"):
            break
        spans.reconciled("r1", is_deleting=False, start=number, now=number, error="no such kind")
    attempts = [span for span in tracer.spans if span.name == "apply work"]
    assert [span.attributes["maestro.attempt"] for span in attempts] == [1, 2, 3]
    assert len({span.context.span_id for span in attempts}) == 3


def test_a_spec_from_a_go_server_follows_the_commit_that_a_server_of_ours_would_record() -> None:
    spans, tracer = spans_of_agent()
    spans.received(passing(""), start=1.0, now=1.1)
    assert tracer.named("receive spec").parent == trace_context.spec_commit_id(TRACE, "r1", 1)


def test_a_sender_in_another_trace_is_linked() -> None:
    spans, tracer = spans_of_agent()
    spans.received(passing(OTHER), start=1.0, now=1.1)
    received = tracer.named("receive spec")
    assert received.context.trace_id == TRACE
    assert [str(link) for link in received.links] == [OTHER]


def test_what_a_resync_brings_belongs_to_the_trace_of_the_resync() -> None:
    spans, tracer = spans_of_agent()
    spans.received(passing(OTHER, kind=event.SPEC_RESYNC_RESPONSE), start=1.0, now=1.1)
    assert str(tracer.named("receive spec").context).startswith("00-11111111111111111111111111111111-")
    status, _ = spans.send(passing("", kind=event.STATUS_UPDATE), now=1.2)
    assert str(status.extensions[event.TRACE_PARENT]).startswith("00-11111111111111111111111111111111-")


def test_a_resync_of_a_go_server_has_a_trace_of_its_own_with_a_link() -> None:
    spans, tracer = spans_of_agent()
    spans.received(passing("", kind=event.SPEC_RESYNC_RESPONSE), start=1.0, now=1.1)
    received = tracer.named("receive spec")
    assert received.context.trace_id != TRACE
    assert received.parent == 0
    assert [link.trace_id for link in received.links] == [TRACE]


def test_a_later_status_of_another_version_does_not_follow_the_last_spec() -> None:
    spans, _ = spans_of_agent()
    spans.received(passing(DISPATCH, version=1), start=1.0, now=1.1)
    _, span = spans.send(passing("", kind=event.STATUS_UPDATE, version=2), now=1.2)
    assert span is not None
    assert span.parent == trace_context.spec_commit_id(TRACE, "r1", 2)
