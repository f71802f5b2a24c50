"""The metric families of the server: names, labels and buckets of the Go server.

Dashboards and alerts depend on them. `maestropy.server.telemetry.metrics` sets the values.
"""

from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from maestropy.transport.http.metrics_text import TENFOLD

BARE_COUNTERS: Final = frozenset({"rest_api_inbound_request_count", "advisory_lock_count", "advisory_unlock_count"})
"""Counters whose names do not end in `_total`."""

EVENT_LABELS: Final = ("source", "consumer", "type", "subresource", "action")

_GO_DEFAULT: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""The defaults of the Go client library; those of the Python library differ."""


class RestFamilies:
    """Families of the REST API."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ["method", "path", "code"]
        self.count = Counter("rest_api_inbound_request_count", "REST requests answered.", labels, registry=registry)
        self.seconds = Histogram(
            "rest_api_inbound_request_duration",
            "How long a REST request took, in seconds.",
            labels,
            buckets=(0.1, 1, 10, 30),
            registry=registry,
        )


class CallFamilies:
    """Families of the calls of one gRPC service."""

    def __init__(self, prefix: str, labels: list[str], registry: CollectorRegistry) -> None:
        self.called = Counter(f"{prefix}_called_total", "Calls that arrived.", labels, registry=registry)
        self.processed = Counter(f"{prefix}_processed_total", "Calls that ended.", [*labels, "code"], registry=registry)
        self.received = Counter(
            f"{prefix}_message_received_total", "Messages that clients sent.", labels, registry=registry
        )
        self.sent = Counter(f"{prefix}_message_sent_total", "Messages sent to clients.", labels, registry=registry)
        self.seconds = Histogram(
            f"{prefix}_processed_duration_seconds",
            "How long a call took.",
            labels,
            buckets=_GO_DEFAULT,
            registry=registry,
        )


class RpcFamilies:
    """Families of the gRPC services: those of the Go server for sources, and our own for agents."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.sources = CallFamilies("grpc_server", ["type", "source"], registry)
        # The Go server does not count the calls of agents. There are too many agents for a label.
        self.agents = CallFamilies("maestropy_grpc_broker", ["type"], registry)
        self.limited_reviews = Counter(
            "grpc_server_token_reviews_limited_total",
            "Tokens rejected without a review, because too many of the client's address were not valid.",
            registry=registry,
        )
        self.closed_connections = Counter(
            "grpc_server_pending_connections_closed_total",
            "Connections closed because they had no authenticated call and exceeded a limit.",
            registry=registry,
        )
        self.clients = Gauge(
            "grpc_server_registered_source_clients",
            "Clients that are subscribed now.",
            ["source"],
            registry=registry,
            multiprocess_mode="livesum",
        )


class ResourceFamilies:
    """Families of resources and their statuses."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ["id", "consumer", "source"]
        self.processed = Counter(
            "resource_processed_total", "Resources processed.", ["id", "action"], registry=registry
        )
        self.first_status = Histogram(
            "resource_first_status_latency_seconds",
            "From the creation of a resource to the first status of its agent.",
            labels,
            buckets=(5, 30, 120, 600),
            registry=registry,
        )
        self.status_broadcast = Histogram(
            "resource_status_event_processing_latency_seconds",
            "From a status event to its broadcast by this instance.",
            [*labels, "server_instance_id"],
            buckets=(0.05, 0.1, 0.5, 1, 5),
            registry=registry,
        )
        self.unordered = Counter(
            "maestropy_status_updates_unordered_total",
            "New statuses whose sequence ID does not show that they are newer; the agent is asked for its status.",
            ["cause"],
            registry=registry,
        )
        self.resynced = Histogram(
            "resources_spec_resync_duration_seconds",
            "How long the answer to a spec resync took.",
            ["source", "consumer", "type"],
            buckets=(0.1, 0.2, 0.5, 1, 2, 10, 30),
            registry=registry,
        )


class LockFamilies:
    """Families of the advisory locks."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ["type", "status"]
        self.locked = Counter("advisory_lock_count", "Advisory locks asked for.", labels, registry=registry)
        self.unlocked = Counter("advisory_unlock_count", "Advisory locks given back.", labels, registry=registry)
        self.seconds = Histogram(
            "advisory_lock_duration",
            "How long an advisory lock was held, in seconds.",
            labels,
            buckets=(0.1, 0.2, 0.5, 1, 2, 10),
            registry=registry,
        )


class BrokerFamilies:
    """Families of the message broker."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = list(EVENT_LABELS)
        self.received = Counter("cloudevents_received_total", "Events from the broker.", labels, registry=registry)
        self.sent = Counter("cloudevents_sent_total", "Events to the broker.", labels, registry=registry)
        self.reconnected = Counter(
            "cloudevents_client_reconnected_total", "Reconnects.", ["client_id"], registry=registry
        )


class ControllerFamilies:
    """Families of the spec or the status controller."""

    def __init__(self, name: Literal["spec", "status"], registry: CollectorRegistry) -> None:
        prefix = f"{name}_controller_event"
        self.total = Counter(
            f"{prefix}_reconcile_total",
            f"Events the {name} controller worked on.",
            ["event_type", "status"],
            registry=registry,
        )
        self.seconds = Histogram(
            f"{prefix}_reconcile_duration_seconds",
            f"How long the {name} controller worked on an event.",
            ["event_type"],
            buckets=_GO_DEFAULT,
            registry=registry,
        )
        self.syncs = Counter(
            f"{prefix}_sync_operation_total", f"Periodic syncs of the {name} controller.", ["status"], registry=registry
        )


class MaintenanceFamilies:
    """Families of the periodic tasks."""

    def __init__(self, registry: CollectorRegistry) -> None:
        # Read from the database, so every process has the same value; the newest one counts.
        self.oldest_event = Gauge(
            "spec_controller_event_oldest_unreconciled_age_seconds",
            "Age of the oldest event that waits for delivery.",
            registry=registry,
            multiprocess_mode="livemostrecent",
        )
        self.notification_queue = Gauge(
            "postgres_notification_queue_usage",
            "Share of the notification queue of PostgreSQL that is in use.",
            registry=registry,
            multiprocess_mode="livemostrecent",
        )
        self.read_only = Gauge(
            "maestropy_database_read_only",
            "1 while the database takes no writes: it is read-only, or a standby.",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self.lists = Counter(
            "maestropy_list_reads_total",
            "Lists of the REST API with a read replica, by the database that they were read from and why.",
            ["database", "reason"],
            registry=registry,
        )
        self.replica_in_use = Gauge(
            "maestropy_read_replica_in_use",
            "1 while lists are read from the read replica, 0 while they are read from the primary instead.",
            registry=registry,
            multiprocess_mode="livemin",
        )
        self.replica_lag = Gauge(
            "maestropy_read_replica_lag_seconds",
            "How old the data of the read replica are at most; NaN if it is unknown.",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self.republished = Counter(
            "spec_controller_undelivered_resources_republished_total",
            "Resources sent again because no status came back.",
            registry=registry,
        )
        self.retired = Counter(
            "spec_controller_stale_delete_events_reconciled_total",
            "Delete events given up because no agent is left to confirm them.",
            registry=registry,
        )


class QueueFamilies:
    """Families of the work queues."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ["queue_name"]
        self.depth = Gauge(
            "workqueue_depth", "Items waiting in the queue.", labels, registry=registry, multiprocess_mode="livesum"
        )
        self.adds = Counter("workqueue_adds_total", "Items put into the queue.", labels, registry=registry)
        self.retries = Counter("workqueue_retries_total", "Items put back after a failure.", labels, registry=registry)
        self.waited = Histogram(
            "workqueue_queue_duration_seconds", "How long an item waited.", labels, buckets=TENFOLD, registry=registry
        )
        self.worked = Histogram(
            "workqueue_work_duration_seconds",
            "How long an item was worked on.",
            labels,
            buckets=TENFOLD,
            registry=registry,
        )
        self.unfinished = Gauge(
            "workqueue_unfinished_work_seconds",
            "Time spent so far on items that are not done.",
            labels,
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.longest = Gauge(
            "workqueue_longest_running_processor_seconds",
            "Time spent so far on the oldest item that is not done.",
            labels,
            registry=registry,
            multiprocess_mode="livemax",
        )
