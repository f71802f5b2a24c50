"""Series by name: dashboards and alerts depend on the text."""

import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from maestropy.server.telemetry.metrics import EventLabels, Metrics

EVENT = EventLabels("s", "c1", "t", "spec", "create")
OF_THE_PROCESS = {
    *("process_cpu_seconds", "process_resident_memory_bytes", "process_virtual_memory_bytes"),
    *("process_start_time_seconds", "process_open_fds", "process_max_fds"),
}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


def text(metrics: Metrics) -> str:
    return metrics.render()[0].decode()


@pytest.mark.parametrize(
    ("act", "kind", "series"),
    [
        pytest.param(
            lambda m: m.request_finished(method="GET", path="/v1/consumers/-", code=200, seconds=2),
            "rest_api_inbound_request_count counter",
            [
                'rest_api_inbound_request_count{code="200",method="GET",path="/v1/consumers/-"} 1',
                'rest_api_inbound_request_duration_bucket{code="200",method="GET",path="/v1/consumers/-",le="1"} 0',
                'rest_api_inbound_request_duration_bucket{code="200",method="GET",path="/v1/consumers/-",le="10"} 1',
                'rest_api_inbound_request_duration_sum{code="200",method="GET",path="/v1/consumers/-"} 2',
            ],
            id="rest",
        ),
        pytest.param(
            lambda m: m.source_calls.called("Publish", "s"),
            "grpc_server_called_total counter",
            ['grpc_server_called_total{source="s",type="Publish"} 1'],
            id="rpc-called",
        ),
        pytest.param(
            lambda m: m.source_calls.finished("Publish", "s", code="OK", seconds=0.02),
            "grpc_server_processed_total counter",
            [
                'grpc_server_processed_total{code="OK",source="s",type="Publish"} 1',
                'grpc_server_processed_duration_seconds_bucket{source="s",type="Publish",le="0.025"} 1',
                'grpc_server_processed_duration_seconds_bucket{source="s",type="Publish",le="2.5"} 1',
            ],
            id="rpc-finished",
        ),
        pytest.param(
            lambda m: m.source_calls.received("Publish", "s", count=3),
            "grpc_server_message_received_total counter",
            ['grpc_server_message_received_total{source="s",type="Publish"} 3'],
            id="messages-received",
        ),
        pytest.param(
            lambda m: m.source_calls.sent("Subscribe", "s"),
            "grpc_server_message_sent_total counter",
            ['grpc_server_message_sent_total{source="s",type="Subscribe"} 1'],
            id="messages-sent",
        ),
        pytest.param(
            lambda m: m.agent_calls.finished("Publish", "cluster1-agent", code="OK", seconds=0.02),
            "maestropy_grpc_broker_processed_total counter",
            [
                'maestropy_grpc_broker_processed_total{code="OK",type="Publish"} 1',
                'maestropy_grpc_broker_processed_duration_seconds_bucket{type="Publish",le="0.025"} 1',
            ],
            id="calls-of-agents",
        ),
        pytest.param(
            lambda m: (m.client_registered("s"), m.client_registered("s"), m.client_unregistered("s")),
            "grpc_server_registered_source_clients gauge",
            ['grpc_server_registered_source_clients{source="s"} 1'],
            id="clients",
        ),
        pytest.param(
            lambda m: m.resources_processed(7),
            "resource_processed_total counter",
            ['resource_processed_total{action="update",id=""} 7'],
            id="resources",
        ),
        pytest.param(
            lambda m: m.first_status("c1", "s", timedelta(seconds=20)),
            "resource_first_status_latency_seconds histogram",
            [
                'resource_first_status_latency_seconds_bucket{consumer="c1",id="",source="s",le="5"} 0',
                'resource_first_status_latency_seconds_bucket{consumer="c1",id="",source="s",le="30"} 1',
                'resource_first_status_latency_seconds_bucket{consumer="c1",id="",source="s",le="600"} 1',
                'resource_first_status_latency_seconds_bucket{consumer="c1",id="",source="s",le="+Inf"} 1',
            ],
            id="first-status",
        ),
        pytest.param(
            lambda m: m.status_event_broadcast("c1", "s", instance_id="i", age=timedelta(milliseconds=60)),
            "resource_status_event_processing_latency_seconds histogram",
            [
                (
                    "resource_status_event_processing_latency_seconds_bucket"
                    '{consumer="c1",id="",server_instance_id="i",source="s",le="0.1"} 1'
                ),
            ],
            id="status-broadcast",
        ),
        pytest.param(
            lambda m: m.spec_resynced("s", "c1", data_type="t", seconds=0.3),
            "resources_spec_resync_duration_seconds histogram",
            ['resources_spec_resync_duration_seconds_bucket{consumer="c1",source="s",type="t",le="0.5"} 1'],
            id="resync",
        ),
        pytest.param(
            lambda m: m.lock_taken("events", ok=True),
            "advisory_lock_count counter",
            ['advisory_lock_count{status="OK",type="events"} 1'],
            id="lock",
        ),
        pytest.param(
            lambda m: m.lock_released("events", ok=False, seconds=0.15),
            "advisory_unlock_count counter",
            [
                'advisory_unlock_count{status="ERROR",type="events"} 1',
                'advisory_lock_duration_bucket{status="ERROR",type="events",le="0.2"} 1',
            ],
            id="unlock",
        ),
        pytest.param(
            lambda m: m.specs_dispatched(["Create", "Create", "Delete", "Create"], seconds=0.003),
            "spec_controller_event_reconcile_total counter",
            [
                'spec_controller_event_reconcile_total{event_type="Create",status="success"} 3',
                'spec_controller_event_reconcile_total{event_type="Delete",status="success"} 1',
                'spec_controller_event_reconcile_duration_seconds_bucket{event_type="Create",le="0.005"} 1',
            ],
            id="specs",
        ),
        pytest.param(
            lambda m: m.statuses_dispatched(["StatusUpdate", "StatusUpdate"], seconds=0.1),
            "status_controller_event_reconcile_total counter",
            ['status_controller_event_reconcile_total{event_type="StatusUpdate",status="success"} 2'],
            id="statuses",
        ),
        pytest.param(
            lambda m: (m.spec.synced(), m.status.synced("error")),
            "spec_controller_event_sync_operation_total counter",
            [
                'spec_controller_event_sync_operation_total{status="success"} 1',
                'status_controller_event_sync_operation_total{status="error"} 1',
            ],
            id="syncs",
        ),
        pytest.param(
            lambda m: m.oldest_event(float("nan")),
            "spec_controller_event_oldest_unreconciled_age_seconds gauge",
            ["spec_controller_event_oldest_unreconciled_age_seconds NaN"],
            id="oldest-event-unknown",
        ),
        pytest.param(
            lambda m: (m.undelivered_republished(2), m.stale_deletes_retired(3)),
            "spec_controller_undelivered_resources_republished_total counter",
            [
                "spec_controller_undelivered_resources_republished_total 2",
                "spec_controller_stale_delete_events_reconciled_total 3",
            ],
            id="maintenance",
        ),
        pytest.param(
            lambda m: m.notification_queue(0.125),
            "postgres_notification_queue_usage gauge",
            ["postgres_notification_queue_usage 0.125"],
            id="notification-queue",
        ),
        pytest.param(
            lambda m: (
                m.event_queue.added(5),
                m.event_queue.retried(),
                m.event_queue.set_depth(4),
                m.event_queue.finished(waited=0.002, worked=5e-06),
                m.event_queue.busy(unfinished=1.5, longest=1),
            ),
            "workqueue_depth gauge",
            [
                'workqueue_depth{queue_name="event-controller"} 4',
                'workqueue_depth{queue_name="status-event-controller"} 0',
                'workqueue_adds_total{queue_name="event-controller"} 5',
                'workqueue_retries_total{queue_name="event-controller"} 1',
                'workqueue_queue_duration_seconds_bucket{queue_name="event-controller",le="0.001"} 0',
                'workqueue_queue_duration_seconds_bucket{queue_name="event-controller",le="0.01"} 1',
                'workqueue_work_duration_seconds_bucket{queue_name="event-controller",le="9.999999999999999e-06"} 1',
                'workqueue_unfinished_work_seconds{queue_name="event-controller"} 1.5',
                'workqueue_longest_running_processor_seconds{queue_name="event-controller"} 1',
            ],
            id="queues",
        ),
        pytest.param(
            lambda m: (m.event_received(EVENT), m.event_sent(EVENT), m.broker_reconnected("me")),
            "cloudevents_received_total counter",
            [
                'cloudevents_received_total{action="create",consumer="c1",source="s",subresource="spec",type="t"} 1',
                'cloudevents_sent_total{action="create",consumer="c1",source="s",subresource="spec",type="t"} 1',
                'cloudevents_client_reconnected_total{client_id="me"} 1',
            ],
            id="broker",
        ),
    ],
)
def test_series(metrics: Metrics, act: Callable[[Metrics], object], kind: str, series: list[str]) -> None:
    act(metrics)
    lines = text(metrics).splitlines()
    assert f"# TYPE {kind}" in lines
    assert [line for line in series if line not in lines] == []


def test_only_metric_names_of_the_go_server(metrics: Metrics) -> None:
    metrics.request_finished(method="GET", path="/", code=200, seconds=0)
    metrics.lock_released("events", ok=True, seconds=0)
    assert "_created" not in text(metrics)
    assert "_count_total" not in text(metrics)


def test_unused_family_is_not_rendered(metrics: Metrics) -> None:
    assert "advisory_lock" not in text(metrics)


def test_values_of_labels_are_escaped(metrics: Metrics) -> None:
    metrics.client_registered('a"b\\c\nd')
    [family] = [f for f in text_string_to_metric_families(text(metrics)) if f.name.endswith("source_clients")]
    assert family.samples[0].labels == {"source": 'a"b\\c\nd'}


def test_output_is_parsed_by_the_client_library(metrics: Metrics) -> None:
    metrics.specs_dispatched(["Create"], seconds=0.1)
    names = {family.name for family in text_string_to_metric_families(text(metrics))}
    assert {"spec_controller_event_reconcile", "workqueue_depth"} <= names


def test_process_metrics_are_those_of_this_process(metrics: Metrics) -> None:
    found = {family.name: family.samples for family in text_string_to_metric_families(text(metrics))}
    assert OF_THE_PROCESS <= found.keys()
    (descriptors,) = found["process_max_fds"]
    assert descriptors.value == resource.getrlimit(resource.RLIMIT_NOFILE)[0]


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        pytest.param("", "text/plain; version=0.0.4; charset=utf-8", id="anything"),
        pytest.param(
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.3",
            "text/plain; version=0.0.4; charset=utf-8",
            id="prometheus-2",
        ),
        pytest.param(
            "application/openmetrics-text;version=1.0.0,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4",
            "text/plain; version=1.0.0; charset=utf-8; escaping=underscores",
            id="prometheus-3",
        ),
    ],
)
def test_content_type(metrics: Metrics, accept: str, content_type: str) -> None:
    assert metrics.render(accept)[1] == content_type


def test_label_values_are_bounded(metrics: Metrics) -> None:
    for number in range(1200):
        metrics.source_calls.called("Publish", f"source-{number}")
    lines = text(metrics).splitlines()
    assert 'grpc_server_called_total{source="other",type="Publish"} 200' in lines
    assert len([line for line in lines if line.startswith("grpc_server_called_total{")]) == 1001


def test_agents_do_not_use_up_the_labels_of_sources(metrics: Metrics) -> None:
    for number in range(1200):
        metrics.spec_resynced(f"agent-{number}", f"c{number}", data_type="t", seconds=0.1)
    metrics.source_calls.called("Publish", "s")
    assert 'grpc_server_called_total{source="s",type="Publish"} 1' in text(metrics).splitlines()


WORKER = """
from prometheus_client import CollectorRegistry
from maestropy.server.telemetry.metrics import Metrics
metrics = Metrics(CollectorRegistry())
metrics.request_finished(method="GET", path="/", code=200, seconds=0.5)
metrics.client_registered("s")
metrics.oldest_event(30)
"""
READER = """
import os, sys
from prometheus_client import CollectorRegistry
from maestropy.server.telemetry.metrics import Metrics, remove_process
for pid in sys.argv[1:]:
    remove_process(int(pid))
sys.stdout.buffer.write(Metrics(CollectorRegistry()).render()[0])
"""


def test_workers_share_one_port(tmp_path: Path) -> None:
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}

    def run(program: str, *args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, *args]
        return subprocess.run(command, env=environment, capture_output=True, check=True, text=True)

    run(WORKER)
    run(WORKER)
    lines = run(READER).stdout.splitlines()
    assert "# TYPE rest_api_inbound_request_count counter" in lines
    assert 'rest_api_inbound_request_count{code="200",method="GET",path="/"} 2' in lines
    assert 'rest_api_inbound_request_duration_bucket{code="200",method="GET",path="/",le="1"} 2' in lines
    assert 'grpc_server_registered_source_clients{source="s"} 2' in lines
    assert "spec_controller_event_oldest_unreconciled_age_seconds 30" in lines
    found = {family.name: family.samples for family in text_string_to_metric_families("\n".join(lines) + "\n")}
    assert OF_THE_PROCESS <= found.keys()
    assert all(len(found[name]) == 1 for name in OF_THE_PROCESS)

    pids = {match[1] for path in tmp_path.iterdir() if (match := re.search(r"_(\d+)\.db$", path.name))}
    lines = run(READER, *pids).stdout.splitlines()
    assert 'rest_api_inbound_request_count{code="200",method="GET",path="/"} 2' in lines
    assert 'grpc_server_registered_source_clients{source="s"} 2' not in lines
