"""The SDK continues the traces of an application, and does nothing for one without OpenTelemetry."""

import sys
import types
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from maestropy.sdk._connection import client_spans
from maestropy.telemetry import trace_context
from maestropy.wire.events import event


class Application:
    """An application with a tracer provider of its own, in place of the one that a process has once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, provider: TracerProvider) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = provider
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        api = types.SimpleNamespace(**vars(trace))
        api.get_tracer = provider.get_tracer
        monkeypatch.setitem(sys.modules, "opentelemetry.trace", api)


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch) -> Iterator[Application]:
    running = Application(monkeypatch, TracerProvider(shutdown_on_exit=False))
    yield running
    running.provider.shutdown()


def spec_event() -> event.CloudEvent:
    return event.CloudEvent(id="e1", source="cs", type=event.SPEC_CREATE, extensions={event.RESOURCE_ID: "r1"})


def test_without_opentelemetry_a_request_has_a_random_operation_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    first, second = client_spans.begin("create work", ""), client_spans.begin("create work", "")
    assert len(first.operation_id) == 36
    assert first.operation_id != second.operation_id
    assert first.span is None
    sent = spec_event()
    assert client_spans.with_parent(sent, client_spans.trace_parent(first)) is sent
    client_spans.end(first)
    client_spans.status_received(sent)


def test_the_operation_id_of_a_traced_request_is_its_trace_parent(application: Application) -> None:
    with application.provider.get_tracer("app").start_as_current_span("reconcile cluster"):
        request = client_spans.begin("create work", "")
        parent = client_spans.trace_parent(request)
        sent = client_spans.with_parent(spec_event(), parent)
        client_spans.end(request)
    published, reconcile = application.exporter.get_finished_spans()
    assert reconcile.context is not None
    assert published.context is not None
    assert published.parent is not None
    assert request.operation_id == parent == sent.extensions[event.TRACE_PARENT]
    named = trace_context.parse(request.operation_id)
    assert named == (reconcile.context.trace_id, published.context.span_id, True)
    assert published.parent.span_id == reconcile.context.span_id


def test_an_operation_id_of_the_caller_stays(application: Application) -> None:
    request = client_spans.begin("create work", "my-operation")
    client_spans.end(request, problem="the consumer does not exist")
    (published,) = application.exporter.get_finished_spans()
    assert request.operation_id == "my-operation"
    assert (published.attributes or {})["op-id"] == "my-operation"
    assert published.status.description == "the consumer does not exist"


def test_a_client_that_does_not_sample_says_so_to_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    Application(monkeypatch, TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False))
    named = trace_context.parse(client_spans.begin("create work", "").operation_id)
    assert named is not None
    assert not named.is_sampled


def test_an_application_without_provider_gets_a_random_operation_id(monkeypatch: pytest.MonkeyPatch) -> None:
    api = types.SimpleNamespace(**vars(trace))
    api.get_tracer = trace.NoOpTracerProvider().get_tracer
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", api)
    request = client_spans.begin("create work", "")
    assert trace_context.parse(request.operation_id) is None
    assert client_spans.trace_parent(request) == ""


@pytest.mark.parametrize("way", ["traceparent", "operation-id-behind-a-go-server"])
def test_a_status_that_is_received_ends_the_trace(application: Application, way: str) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    tracing = f'{{"{event.OPERATION_ID_KEY}":"{parent}"}}'
    extensions = {event.TRACE_PARENT: parent} if way == "traceparent" else {event.LOG_TRACING: tracing}
    client_spans.status_received(
        event.CloudEvent(id="e1", source="agent", type=event.STATUS_UPDATE, extensions=extensions)
    )
    (received,) = application.exporter.get_finished_spans()
    assert received.parent is not None
    assert (received.parent.trace_id, received.parent.span_id) == (
        0x0AF7651916CD43DD8448EB211C80319C,
        0xB7AD6B7169203331,
    )
