"""The alerts of ARO HCP load unmodified and fire on series with our names and labels: `promtool test rules`.

The series are those that our metrics write, with the labels that a scrape adds. `test_alerts_fire.py` lets the same
alerts fire on real processes.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from maestropy.server.telemetry.metrics import Metrics
from tests.peers.monitoring import aro_hcp_rules
from tests.peers.prometheus import promtool

pytestmark = pytest.mark.peers

SCRAPED = 'instance="a",namespace="maestro"'


def series(act: Callable[[Metrics], object], name: str) -> list[str]:
    """Return the series of a family after `act`, as Prometheus stores them."""
    metrics = Metrics(CollectorRegistry())
    act(metrics)
    found = re.findall(rf"^({name})(?:{{(.*)}})? \S+$", metrics.render()[0].decode(), flags=re.MULTILINE)
    assert found, f"{name} is not among our metrics"
    return [f"{family}{{{','.join(filter(None, (labels, SCRAPED)))}}}" for family, labels in found]


def of_calls(metrics: Metrics) -> None:
    metrics.source_calls.finished("Publish", "s", code="Unavailable", seconds=0.1)


def of_requests(metrics: Metrics) -> None:
    metrics.request_finished(method="GET", path="/v1/consumers", code=503, seconds=0.1)


OF_DEPLOYMENT = 'deployment="maestro",namespace="maestro"'
FIRING: dict[str, dict[str, str]] = {
    "MaestroGRPCSourceClientExcessConnections": dict.fromkeys(
        series(lambda m: m.client_registered("s"), "grpc_server_registered_source_clients"), "101+0x60"
    ),
    "MaestroRESTAPIErrorRate": dict.fromkeys(series(of_requests, "rest_api_inbound_request_count"), "0+2x60"),
    "MaestroGRPCServerErrorRate": dict.fromkeys(series(of_calls, "grpc_server_processed_total"), "0+2x60"),
    "MaestroSpecControllerReconcileErrors": dict.fromkeys(
        series(lambda m: m.spec.reconciled(status="error"), "spec_controller_event_reconcile_total"), "0+2x60"
    ),
    "MaestroServerNoReadyReplicas": {
        f"kube_deployment_status_replicas_available{{{OF_DEPLOYMENT}}}": "0+0x60",
        f"kube_deployment_spec_replicas{{{OF_DEPLOYMENT}}}": "2+0x60",
    },
    "MaestroServerReplicaNotReady": {
        f"kube_deployment_status_replicas_available{{{OF_DEPLOYMENT}}}": "1+0x60",
        f"kube_deployment_spec_replicas{{{OF_DEPLOYMENT}}}": "2+0x60",
    },
    "MaestroPostgresNotificationQueueUsageHigh": dict.fromkeys(
        series(lambda m: m.notification_queue(0.6), "postgres_notification_queue_usage"), "0.6+0x60"
    ),
    "MaestroWorkqueueDepthHigh": dict.fromkeys(
        series(lambda m: m.status_event_queue.set_depth(101), "workqueue_depth")[:1], "101+0x60"
    ),
    "MaestroEventStuckUnreconciled": dict.fromkeys(
        series(lambda m: m.oldest_event(301), "spec_controller_event_oldest_unreconciled_age_seconds"), "301+0x60"
    ),
}


@pytest.mark.parametrize("rule", aro_hcp_rules.RULES, ids=lambda rule: rule.alert)
def test_alert_of_aro_hcp_fires(rule: aro_hcp_rules.AroRule, tmp_path: Path) -> None:
    rules = tmp_path / "aro-hcp.yaml"
    rules.write_text(aro_hcp_rules.document())
    promtool("check", "rules", rules)
    minutes = int(rule.duration.removesuffix("m"))
    firing = f'count(ALERTS{{alertname="{rule.alert}",alertstate="firing",severity="{rule.severity}"}})'
    document = {
        "rule_files": [str(rules)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in FIRING[rule.alert].items()],
                "promql_expr_test": [
                    {"expr": firing, "eval_time": "59m", "exp_samples": [{"labels": "{}", "value": 1}]},
                    {"expr": firing, "eval_time": f"{minutes - 1}m", "exp_samples": []},
                ],
            }
        ],
    }
    path = tmp_path / "test.yaml"
    path.write_text(json.dumps(document))
    promtool("test", "rules", path)
