from prometheus_client import CollectorRegistry

from maestropy.agent.telemetry.metrics import AgentMetrics, AgentState, EventTypeLabels

BUNDLES = "io.open-cluster-management.works.v1alpha1.manifestbundles"


def lines(metrics: AgentMetrics) -> list[str]:
    body, content_type = metrics.render()
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    return body.decode().splitlines()


def test_metric_names_and_labels_match_go_agent() -> None:
    metrics = AgentMetrics(CollectorRegistry())
    metrics.event_received("maestro", EventTypeLabels(BUNDLES, "spec", "create_request"))
    metrics.event_sent("c1-work-agent", "", kind=EventTypeLabels(BUNDLES, "spec", "resync_request"))
    metrics.event_sent("c1-work-agent", "policy", kind=EventTypeLabels(BUNDLES, "status", "update_request"))
    metrics.status_resynced("c1", "maestro", 0.15)
    metrics.work_processed("patch")
    metrics.work_processed("get", code="NotFound")
    metrics.request_answered("GET", host="10.0.0.1:443", code="200", seconds=0.01)
    metrics.queue.added()
    metrics.queue.retried()
    metrics.queue.set_depth(3)
    metrics.queue.finished(waited=0.002, worked=0.02)
    metrics.budget_exceeded("expression")
    shown = lines(metrics)
    resync = 'action="resync_request",original_source="none",source="c1-work-agent",subresource="spec"'
    labels = f'consumer="c1",source="maestro",type="{BUNDLES}"'
    expected = [
        'maestro_agent_expression_budget_exceeded_total{limit="expression"} 1',
        f'cloudevents_received_total{{action="create_request",source="maestro",subresource="spec",type="{BUNDLES}"}} 1',
        f'cloudevents_sent_total{{{resync},type="{BUNDLES}"}} 1',
        'manifestworks_processed_total{action="patch",code="Success"} 1',
        'manifestworks_processed_total{action="get",code="NotFound"} 1',
        f'resources_status_resync_duration_seconds_bucket{{{labels},le="0.1"}} 0',
        f'resources_status_resync_duration_seconds_bucket{{{labels},le="0.2"}} 1',
        'rest_client_requests_total{code="200",host="10.0.0.1:443",method="GET"} 1',
        'rest_client_request_duration_seconds_count{host="10.0.0.1:443",verb="GET"} 1',
        'workqueue_adds_total{name="ManifestWorkController"} 1',
        'workqueue_retries_total{name="ManifestWorkController"} 1',
        'workqueue_depth{name="ManifestWorkController"} 3',
        'workqueue_queue_duration_seconds_bucket{name="ManifestWorkController",le="0.01"} 1',
        'workqueue_work_duration_seconds_bucket{name="ManifestWorkController",le="0.01"} 0',
    ]
    assert [line for line in expected if line not in shown] == []
    assert [line for line in shown if "_created" in line] == []
    assert any(line.startswith("process_resident_memory_bytes ") for line in shown)


def test_state_of_the_agent_is_read_at_every_scrape() -> None:
    metrics = AgentMetrics(CollectorRegistry())
    state = AgentState(
        is_connected=False,
        is_leading=True,
        works=3,
        statuses_waiting=2,
        oldest_waiting_seconds=12.5,
        api_server_skew_seconds=None,
    )
    metrics.observe(lambda: state)
    metrics.certificate_expires("workload-source-client", 1_900_000_000)
    metrics.database_clock_skew(-61.5)
    expected = {
        "maestropy_agent_connected 0",
        "maestropy_agent_leading 1",
        "maestropy_agent_works 3",
        "maestropy_agent_statuses_waiting 2",
        "maestropy_agent_oldest_status_waiting_seconds 12.5",
        'maestropy_certificate_expiry_timestamp_seconds{certificate="workload-source-client"} 1900000000',
        'maestropy_clock_skew_seconds{reference="database"} -61.5',
        'maestropy_clock_skew_seconds{reference="api-server"} NaN',
    }
    assert expected - set(lines(metrics)) == set()
    state = state._replace(is_connected=True, api_server_skew_seconds=0.25)
    assert {
        "maestropy_agent_connected 1",
        'maestropy_clock_skew_seconds{reference="api-server"} 0.25',
    } - set(lines(metrics)) == set()
