"""Describe the Grafana dashboards of maestropy: server, agent, and the path of one request.

`scripts/generate_monitoring.py` writes them to monitoring/dashboards. A test runs every query on a Prometheus that
scrapes real processes, so that no panel stays empty.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

_NS: Final = 'namespace=~"$namespace"'
_WIDTH: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query of a panel; `$namespace` and `$__rate_interval` are filled in by Grafana."""

    expr: str
    legend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel."""

    title: str
    queries: tuple[Query, ...]
    text: str = ""
    """What a reader should know about it."""
    unit: str = "short"
    kind: Literal["timeseries", "stat"] = "timeseries"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Panels under one heading, side by side."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """A dashboard; `uid` is also the name of its file."""

    uid: str
    title: str
    text: str
    rows: tuple[Row, ...] = field(default=())


def panel(title: str, *queries: str | tuple[str, str], unit: str = "short", text: str = "") -> Panel:
    """Return a panel over time; a query may come with its legend."""
    return Panel(title=title, queries=tuple(map(_query, queries)), unit=unit, text=text)


def stat(title: str, query: str, *, unit: str = "short", text: str = "") -> Panel:
    """Return a panel with one number."""
    return Panel(title=title, queries=(Query(expr=query, legend=""),), unit=unit, text=text, kind="stat")


def _query(query: str | tuple[str, str]) -> Query:
    expr, legend = (query, "{{instance}}") if isinstance(query, str) else query
    return Query(expr=expr, legend=legend)


def rate(metric: str, *labels: str, by: str = "") -> str:
    """Return the sum of the rates of a counter."""
    matchers = ",".join((*labels, _NS))
    group = f" by ({by})" if by else ""
    return f"sum{group} (rate({metric}{{{matchers}}}[$__rate_interval]))"


def quantile(share: float, metric: str, *labels: str, by: str = "") -> str:
    """Return a quantile of a histogram."""
    matchers = ",".join((*labels, _NS))
    group = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({group}) (rate({metric}_bucket{{{matchers}}}[$__rate_interval])))"


def highest(metric: str, *labels: str, by: str = "") -> str:
    """Return the highest value of a gauge."""
    group = f" by ({by})" if by else ""
    return f"max{group} ({metric}{{{','.join((*labels, _NS))}}})"


def lowest(metric: str, *labels: str, by: str = "") -> str:
    """Return the lowest value of a gauge."""
    group = f" by ({by})" if by else ""
    return f"min{group} ({metric}{{{','.join((*labels, _NS))}}})"


def total(metric: str, *labels: str, by: str = "") -> str:
    """Return the sum of a gauge."""
    group = f" by ({by})" if by else ""
    return f"sum{group} ({metric}{{{','.join((*labels, _NS))}}})"


_EXPIRY: Final = "maestropy_certificate_expiry_timestamp_seconds"
_CERTIFICATES: Final = panel(
    "Certificates: time left",
    (f"{lowest(_EXPIRY, by='certificate, instance')} - time()", "{{certificate}} {{instance}}"),
    unit="s",
    text="Below two weeks MaestroCertificateExpiresSoon fires. A certificate that cannot be read counts as expired.",
)
_CLOCKS: Final = panel(
    "Clock skew",
    (highest("maestropy_clock_skew_seconds", by="reference, instance"), "{{instance}} ahead of {{reference}}"),
    unit="s",
)

SERVER: Final = Dashboard(
    uid="maestropy-server",
    title="Maestro server (maestropy)",
    text="Whether specs reach agents and statuses come back, and which dependency is the reason if not.",
    rows=(
        Row(
            title="Is it working?",
            panels=(
                stat("Servers", "count(maestropy_database_up{" + _NS + "})", text="Servers that are scraped."),
                stat("Database", lowest("maestropy_database_up"), text="1: all servers reach it."),
                stat(
                    "Oldest spec event",
                    highest("spec_controller_event_oldest_unreconciled_age_seconds"),
                    unit="s",
                    text="How long the oldest spec waits for its delivery.",
                ),
                stat(
                    "Consumers without agent",
                    f"{highest('maestropy_consumers_with_works')} - "
                    f"{total('maestropy_consumers_with_works_connected')}",
                    text="Consumers with works whose agents are connected to no server; gRPC only.",
                ),
                stat("Works held", highest("maestropy_held_works"), text="Works that data-safety holds keep."),
                stat(
                    "Oldest deletion",
                    highest("delete_recovery_tombstone_oldest_age_seconds"),
                    unit="s",
                    text="How long the oldest deletion waits for the confirmation of its agent.",
                ),
            ),
        ),
        Row(
            title="Requests of sources",
            panels=(
                panel(
                    "gRPC calls by code",
                    (rate("grpc_server_processed_total", by="type, code"), "{{type}} {{code}}"),
                    unit="reqps",
                ),
                panel(
                    "Publish: duration",
                    (quantile(0.95, "grpc_server_processed_duration_seconds", by="type"), "95 % {{type}}"),
                    (quantile(0.5, "grpc_server_processed_duration_seconds", by="type"), "50 % {{type}}"),
                    unit="s",
                ),
                panel(
                    "REST requests by code",
                    (rate("rest_api_inbound_request_count", by="code, method"), "{{method}} {{code}}"),
                    unit="reqps",
                ),
                panel(
                    "REST: duration",
                    (quantile(0.95, "rest_api_inbound_request_duration", by="method"), "95 % {{method}}"),
                    unit="s",
                ),
                panel("Subscribers", (total("grpc_server_registered_source_clients", by="source"), "{{source}}")),
            ),
        ),
        Row(
            title="Delivery of specs",
            panels=(
                panel(
                    "Spec events by outcome",
                    (
                        rate("spec_controller_event_reconcile_total", by="event_type, status"),
                        "{{event_type}} {{status}}",
                    ),
                    unit="ops",
                ),
                panel(
                    "Spec events: duration",
                    (quantile(0.95, "spec_controller_event_reconcile_duration_seconds"), "95 %"),
                    unit="s",
                ),
                panel(
                    "Queues: waiting", (highest("workqueue_depth", 'queue_name!=""', by="queue_name"), "{{queue_name}}")
                ),
                panel(
                    "Queues: time of the oldest item in progress",
                    (highest("workqueue_longest_running_processor_seconds", by="queue_name"), "{{queue_name}}"),
                    unit="s",
                    text="Grows while a dispatch does not end, for example because the database hangs.",
                ),
                panel(
                    "Spec resyncs: duration",
                    (quantile(0.95, "resources_spec_resync_duration_seconds"), "95 %"),
                    unit="s",
                    text="The answer to an agent that connects.",
                ),
                panel(
                    "Consumers with works",
                    (highest("maestropy_consumers_with_works"), "all"),
                    (total("maestropy_consumers_with_works_connected"), "agent connected"),
                ),
                panel(
                    "Deliveries repeated without a status",
                    (rate("spec_controller_undelivered_resources_republished_total", by="instance"), "{{instance}}"),
                    unit="ops",
                ),
            ),
        ),
        Row(
            title="Statuses",
            panels=(
                panel(
                    "Status events by outcome",
                    (
                        rate("status_controller_event_reconcile_total", by="event_type, status"),
                        "{{event_type}} {{status}}",
                    ),
                    unit="ops",
                ),
                panel(
                    "From status event to subscribers",
                    (quantile(0.95, "resource_status_event_processing_latency_seconds"), "95 %"),
                    unit="s",
                ),
                panel(
                    "Oldest status event not sent",
                    highest("maestropy_status_event_oldest_age_seconds", by="instance"),
                    unit="s",
                ),
                panel(
                    "First status of a new work",
                    (quantile(0.95, "resource_first_status_latency_seconds"), "95 %"),
                    (quantile(0.5, "resource_first_status_latency_seconds"), "50 %"),
                    unit="s",
                ),
                panel(
                    "Calls of agents by code",
                    (rate("maestropy_grpc_broker_processed_total", by="type, code"), "{{type}} {{code}}"),
                    unit="reqps",
                ),
            ),
        ),
        Row(
            title="Deletions",
            panels=(
                panel("Unconfirmed", (highest("delete_recovery_tombstone_backlog", by="state"), "{{state}}")),
                panel(
                    "Age of the oldest",
                    (highest("delete_recovery_tombstone_oldest_age_seconds", by="state"), "{{state}}"),
                    unit="s",
                ),
                panel(
                    "Work of delete recovery", (rate("delete_recovery_work_total", by="kind"), "{{kind}}"), unit="ops"
                ),
            ),
        ),
        Row(
            title="Dependencies",
            panels=(
                panel("Database answers", lowest("maestropy_database_up", by="instance")),
                panel("Database takes no writes", highest("maestropy_database_read_only", by="instance")),
                panel(
                    "Database: duration of a check",
                    (quantile(0.95, "maestropy_database_check_duration_seconds", by="instance"), "{{instance}}"),
                    unit="s",
                ),
                panel(
                    "Notification queue in use",
                    (highest("postgres_notification_queue_usage"), "share"),
                    unit="percentunit",
                ),
                panel(
                    "Advisory locks: duration",
                    (quantile(0.95, "advisory_lock_duration", by="type"), "95 % {{type}}"),
                    unit="s",
                ),
                panel(
                    "Message broker connected",
                    (lowest("maestropy_broker_connected", by="broker, instance"), "{{broker}} {{instance}}"),
                    text="MQTT and Pub/Sub.",
                ),
                panel(
                    "Events to and from the message broker",
                    (rate("cloudevents_sent_total", by="subresource"), "sent {{subresource}}"),
                    (rate("cloudevents_received_total", by="subresource"), "received {{subresource}}"),
                    unit="ops",
                    text="Servers with MQTT or Pub/Sub, and agents.",
                ),
                _CERTIFICATES,
                _CLOCKS,
            ),
        ),
    ),
)

AGENT: Final = Dashboard(
    uid="maestropy-agent",
    title="Maestro agent (maestropy)",
    text="Whether the agents receive specs, apply them and report statuses.",
    rows=(
        Row(
            title="Is it working?",
            panels=(
                stat("Agents that act", total("maestropy_agent_leading"), text="One for each consumer."),
                stat("Connected", total("maestropy_agent_connected")),
                stat("Works", total("maestropy_agent_works")),
                stat("Status updates that wait", total("maestropy_agent_statuses_waiting")),
                stat("Works held", total("maestropy_agent_held_works"), text="Data-safety holds."),
            ),
        ),
        Row(
            title="Events",
            panels=(
                panel(
                    "Received",
                    (
                        rate("cloudevents_received_total", 'consumer=""', by="subresource, action"),
                        "{{subresource}} {{action}}",
                    ),
                    unit="ops",
                ),
                panel(
                    "Sent",
                    (
                        rate("cloudevents_sent_total", 'original_source!=""', by="subresource, action"),
                        "{{subresource}} {{action}}",
                    ),
                    unit="ops",
                ),
                panel(
                    "Oldest status update that waits",
                    highest("maestropy_agent_oldest_status_waiting_seconds", by="instance"),
                    unit="s",
                ),
                panel(
                    "What was done with works",
                    (rate("manifestworks_processed_total", by="action, code"), "{{action}} {{code}}"),
                    unit="ops",
                ),
                panel("Held works by reason", (total("maestropy_agent_held_works", by="reason"), "{{reason}}")),
            ),
        ),
        Row(
            title="Reconciling",
            panels=(
                panel("Works that wait", highest("workqueue_depth", 'name!=""', by="instance")),
                panel("Reconciles", rate("workqueue_adds_total", 'name!=""', by="instance"), unit="ops"),
                panel(
                    "Reconciles after a failure",
                    rate("workqueue_retries_total", 'name!=""', by="instance"),
                    unit="ops",
                    text="Works that cannot be applied are tried again with growing delays.",
                ),
                panel(
                    "Duration of a reconcile",
                    (quantile(0.95, "workqueue_work_duration_seconds", 'name!=""'), "95 %"),
                    (quantile(0.5, "workqueue_work_duration_seconds", 'name!=""'), "50 %"),
                    unit="s",
                ),
            ),
        ),
        Row(
            title="The API server of the cluster",
            panels=(
                panel(
                    "Requests by code",
                    (rate("rest_client_requests_total", by="method, code"), "{{method}} {{code}}"),
                    unit="reqps",
                ),
                panel(
                    "Duration",
                    (quantile(0.95, "rest_client_request_duration_seconds", by="verb"), "95 % {{verb}}"),
                    unit="s",
                ),
                _CERTIFICATES,
                _CLOCKS,
            ),
        ),
    ),
)

REQUEST: Final = Dashboard(
    uid="maestropy-request-path",
    title="Maestro: the path of a request (maestropy)",
    text="From the spec request of a source to the status that it gets back, in order. The first step that is slow or "
    "has errors is the one to look at; `maestro trace work ID` shows the path of one work.",
    rows=(
        Row(
            title="1. The source publishes, the server stores",
            panels=(
                panel(
                    "Publish by code",
                    (rate("grpc_server_processed_total", 'type="Publish"', by="code"), "{{code}}"),
                    unit="reqps",
                ),
                panel(
                    "Duration with the commit",
                    (quantile(0.95, "grpc_server_processed_duration_seconds", 'type="Publish"'), "95 %"),
                    unit="s",
                ),
            ),
        ),
        Row(
            title="2. The server dispatches the spec",
            panels=(
                panel(
                    "Spec events",
                    (rate("spec_controller_event_reconcile_total", by="status"), "{{status}}"),
                    unit="ops",
                ),
                panel(
                    "Oldest that waits",
                    (highest("spec_controller_event_oldest_unreconciled_age_seconds"), "oldest"),
                    unit="s",
                ),
            ),
        ),
        Row(
            title="3. The agent receives and applies it",
            panels=(
                panel(
                    "Specs received",
                    (rate("cloudevents_received_total", 'subresource="spec"', by="action"), "{{action}}"),
                    unit="ops",
                ),
                panel(
                    "Wait and work of a reconcile",
                    (quantile(0.95, "workqueue_queue_duration_seconds", 'name!=""'), "95 % waiting"),
                    (quantile(0.95, "workqueue_work_duration_seconds", 'name!=""'), "95 % working"),
                    unit="s",
                ),
                panel(
                    "Requests to the API server",
                    (rate("rest_client_requests_total", by="code"), "{{code}}"),
                    unit="reqps",
                ),
            ),
        ),
        Row(
            title="4. The agent reports, the server stores",
            panels=(
                panel(
                    "Status updates sent",
                    (rate("cloudevents_sent_total", 'subresource="status"', by="action"), "{{action}}"),
                    unit="ops",
                ),
                panel(
                    "Oldest that waits at an agent",
                    (highest("maestropy_agent_oldest_status_waiting_seconds"), "oldest"),
                    unit="s",
                ),
                panel(
                    "Calls of agents by code",
                    (rate("maestropy_grpc_broker_processed_total", 'type="Publish"', by="code"), "{{code}}"),
                    unit="reqps",
                ),
            ),
        ),
        Row(
            title="5. The server sends the status to the source",
            panels=(
                panel(
                    "Status events",
                    (rate("status_controller_event_reconcile_total", by="status"), "{{status}}"),
                    unit="ops",
                ),
                panel(
                    "From the status event to the subscribers",
                    (quantile(0.95, "resource_status_event_processing_latency_seconds"), "95 %"),
                    unit="s",
                ),
                panel(
                    "Messages to subscribers",
                    (rate("grpc_server_message_sent_total", 'type="Subscribe"', by="source"), "{{source}}"),
                    unit="ops",
                ),
            ),
        ),
        Row(
            title="The whole path",
            panels=(
                panel(
                    "From the creation of a work to its first status",
                    (quantile(0.95, "resource_first_status_latency_seconds"), "95 %"),
                    (quantile(0.5, "resource_first_status_latency_seconds"), "50 %"),
                    unit="s",
                ),
            ),
        ),
    ),
)

DASHBOARDS: Final = (SERVER, AGENT, REQUEST)


def as_json(dashboard: Dashboard) -> str:
    """Return the dashboard as Grafana imports it."""
    return json.dumps(_model(dashboard), indent=2) + "\n"


def _model(dashboard: Dashboard) -> dict[str, Any]:
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.text,
        "tags": ["maestro"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "timezone": "browser",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_DATASOURCE, _NAMESPACE]},
        "panels": list(_panels(dashboard)),
    }


_DATASOURCE: Final = {
    "name": "datasource",
    "label": "Data source",
    "type": "datasource",
    "query": "prometheus",
    "refresh": 1,
    "hide": 0,
}
# `.*` also matches series without the label, so that the dashboards work without Kubernetes.
_NAMESPACE: Final = {
    "name": "namespace",
    "label": "Namespace",
    "type": "query",
    "datasource": {"type": "prometheus", "uid": "${datasource}"},
    "query": "label_values(workqueue_depth, namespace)",
    "refresh": 2,
    "includeAll": True,
    "multi": True,
    "allValue": ".*",
    "current": {"text": "All", "value": "$__all"},
    "hide": 0,
}


def _panels(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    number = y = 0
    for row in dashboard.rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "panels": [],
            "gridPos": _grid(0, y, _WIDTH, 1),
        }
        y += 1
        height = 4 if row.panels[0].kind == "stat" else 8
        per_line = min(len(row.panels), 6 if row.panels[0].kind == "stat" else 3)
        width = _WIDTH // per_line
        for index, item in enumerate(row.panels):
            number += 1
            x = index % per_line * width
            yield _panel(item, number) | {"gridPos": _grid(x, y + index // per_line * height, width, height)}
        y += -(-len(row.panels) // per_line) * height


def _grid(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"h": height, "w": width, "x": x, "y": y}


def _panel(item: Panel, number: int) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    options: dict[str, Any] = {"tooltip": {"mode": "multi", "sort": "desc"}}
    if item.kind == "stat":
        options = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value"}
    return {
        "id": number,
        "type": item.kind,
        "title": item.title,
        "description": item.text,
        "datasource": source,
        "fieldConfig": {
            "defaults": {"unit": item.unit, "min": 0} if item.unit != "s" else {"unit": item.unit},
            "overrides": [],
        },
        "options": options,
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": source, "expr": query.expr, "legendFormat": query.legend}
            for index, query in enumerate(item.queries)
        ],
    }
