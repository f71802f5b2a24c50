"""The alerts of ARO HCP for Maestro, of September 2026: names, expressions, durations and severities."""

from typing import NamedTuple

import yaml


class AroRule(NamedTuple):
    """One alert as ARO HCP deploys it."""

    alert: str
    expr: str
    duration: str
    severity: str = "warning"


_NS = 'namespace="maestro"'
_DEPLOYMENT = f'{{{_NS}, deployment="maestro"}}'
_AVAILABLE = f"kube_deployment_status_replicas_available{_DEPLOYMENT}"
_SPEC = f"kube_deployment_spec_replicas{_DEPLOYMENT}"


def _share(metric: str, condition: str, *, above: float) -> str:
    part = f"sum(rate({metric}{{{_NS}, {condition}}}[5m]))"
    return f"{part} / sum(rate({metric}{{{_NS}}}[5m])) > {above}"


RULES = (
    AroRule(
        "MaestroGRPCSourceClientExcessConnections",
        f"sum(grpc_server_registered_source_clients{{{_NS}}}) > 100",
        "10m",
    ),
    AroRule("MaestroRESTAPIErrorRate", _share("rest_api_inbound_request_count", 'code=~"5.."', above=0.05), "5m"),
    AroRule("MaestroGRPCServerErrorRate", _share("grpc_server_processed_total", 'code!="OK"', above=0.05), "5m"),
    AroRule(
        "MaestroSpecControllerReconcileErrors",
        _share("spec_controller_event_reconcile_total", 'status="error"', above=0.1),
        "10m",
    ),
    AroRule("MaestroServerNoReadyReplicas", f"{_AVAILABLE} == 0 and {_SPEC} > 0", "10m", severity="critical"),
    AroRule("MaestroServerReplicaNotReady", f"{_AVAILABLE} > 0 and {_AVAILABLE} < {_SPEC}", "15m"),
    AroRule(
        "MaestroPostgresNotificationQueueUsageHigh", f"max(postgres_notification_queue_usage{{{_NS}}}) > 0.5", "5m"
    ),
    AroRule("MaestroWorkqueueDepthHigh", f'max by(queue_name) (workqueue_depth{{{_NS}, queue_name!=""}}) > 100', "10m"),
    AroRule(
        "MaestroEventStuckUnreconciled",
        f"max(spec_controller_event_oldest_unreconciled_age_seconds{{{_NS}}}) > 300",
        "1m",
    ),
)

OF_KUBE_STATE_METRICS = frozenset({"MaestroServerNoReadyReplicas", "MaestroServerReplicaNotReady"})
"""These read what kube-state-metrics says about the Deployment, nothing of the server."""


def document(rules: tuple[AroRule, ...] = RULES) -> str:
    """Return the rules as a file for Prometheus."""
    listed = [
        {"alert": rule.alert, "expr": rule.expr, "for": rule.duration, "labels": {"severity": rule.severity}}
        for rule in rules
    ]
    return yaml.safe_dump({"groups": [{"name": "maestro", "rules": listed}]})
