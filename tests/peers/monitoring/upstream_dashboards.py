"""The queries of the dashboards that Maestro publishes (docs/metrics/dashboards) and that ARO HCP deploys."""

KUBE = "kube_deployment_"
"""Series of kube-state-metrics: nothing of Maestro."""


def _share(metric: str, pattern: str, *, by: str = "") -> str:
    group = f" by({by}) " if by else ""
    part = f'sum{group}(rate({metric}_bucket{{le=~"{pattern}"}}[5m]))'
    return f'{part} / sum{group}(rate({metric}_bucket{{le="+Inf"}}[5m]))'


_HALF, _ONE, _TEN = r"^0(\\.5)?$", r"^1(\\.0)?$", r"^10(\\.0)?$"

SERVER = (
    "sum by(instance) (rate(advisory_lock_count[5m]))",
    "histogram_quantile(0.99, sum(rate(advisory_lock_duration_bucket[5m])) by (le))",
    "sum by(instance) (rate(advisory_unlock_count[5m]))",
    'sum by(instance) (rate(cloudevents_sent_total{app="maestro"}[5m]))',
    'sum by(instance) (rate(cloudevents_received_total{app="maestro"}[5m]))',
    "sum by (action) (rate(resource_processed_total[5m]))",
    "sum by (type) (rate(grpc_server_processed_total[5m]))",
    "sum by (code,method,path) (rate(rest_api_inbound_request_count[5m]))",
    "histogram_quantile(0.95, sum(rate(rest_api_inbound_request_duration_bucket[5m])) by(le))",
)
SERVER_SLO = (
    'sum((rate(rest_api_inbound_request_count{code!~"5.."}[5m]))) / sum((rate(rest_api_inbound_request_count{}[5m])))',
    _share("rest_api_inbound_request_duration", _ONE, by="path,method,code"),
    _share("advisory_lock_duration", _HALF),
    'sum(rate(advisory_unlock_count{status="OK"}[5m])) / sum(rate(advisory_lock_count{status="OK"}[5m]))',
    _share("grpc_server_processed_duration_seconds", _HALF),
    _share("resources_spec_resync_duration_seconds", _TEN),
)
AGENT = (
    'sum by(instance) (rate(cloudevents_sent_total{app="maestro-agent"}[5m]))',
    'sum by(instance) (rate(cloudevents_received_total{app="maestro-agent"}[5m]))',
    'sum by(method) (rate(rest_client_requests_total{app="maestro-agent"}[5m]))',
    'histogram_quantile(0.75, max by(verb, le) (rest_client_request_duration_seconds_bucket{app="maestro-agent"}))',
)
AGENT_SLO = (
    'sum((rate(rest_client_requests_total{code!~"5.."}[5m]))) / sum((rate(rest_client_requests_total{}[5m])))',
    _share("rest_client_request_duration_seconds", _HALF, by="host,verb"),
    _share("workqueue_queue_duration_seconds", _ONE),
    _share("workqueue_work_duration_seconds", _ONE),
    "sum(rate(workqueue_retries_total{}[5m])) / sum(rate(workqueue_adds_total{}[5m]))",
)
QUERIES = (*SERVER, *SERVER_SLO, *AGENT, *AGENT_SLO)

OF_AN_OLDER_AGENT = (
    'sum by(name) (rate(workqueue_adds_total{name="ManifestWorkAgent"}[5m]))',
    'max by(name) (workqueue_depth{name="ManifestWorkAgent"})',
)
"""The queue had this name until 2025. Today's Go agents call it ManifestWorkController, and so do ours: the panels are
empty for both."""
