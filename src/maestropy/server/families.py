"""The metric families of the server: names, labels and buckets, as existing dashboards and alerts know them.

Tables in the shape of code. Who counts what, and when, is in `maestropy.server.metrics`.
"""

from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from maestropy.transport.exposition import TENFOLD

BARE_COUNTERS: Final = frozenset({"rest_api_inbound_request_count", "advisory_lock_count", "advisory_unlock_count"})
"""Counters whose names do not end in `_total`."""

EVENT_LABELS: Final = ("source", "consumer", "type", "subresource", "action")

_GO_DEFAULT: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""The client library's own default has more."""


class Rest:
    """The REST API."""

    def __init__(self, registry: CollectorRegistry) -> None:
        by = ["method", "path", "code"]
        self.count = Counter("rest_api_inbound_request_count", "REST requests answered.", by, registry=registry)
        self.seconds = Histogram(
            "rest_api_inbound_request_duration",
            "How long a REST request took, in seconds.",
            by,
            buckets=(0.1, 1, 10, 30),
            registry=registry,
        )


class Rpc:
    """The gRPC service for sources."""

    def __init__(self, registry: CollectorRegistry) -> None:
        by = ["type", "source"]
        self.called = Counter("grpc_server_called_total", "Calls that arrived.", by, registry=registry)
        self.processed = Counter("grpc_server_processed_total", "Calls that ended.", [*by, "code"], registry=registry)
        self.received = Counter(
            "grpc_server_message_received_total", "Messages that clients sent.", by, registry=registry
        )
        self.sent = Counter("grpc_server_message_sent_total", "Messages sent to clients.", by, registry=registry)
        self.seconds = Histogram(
            "grpc_server_processed_duration_seconds",
            "How long a call took.",
            by,
            buckets=_GO_DEFAULT,
            registry=registry,
        )
        self.clients = Gauge(
            "grpc_server_registered_source_clients",
            "Clients that are subscribed now.",
            ["source"],
            registry=registry,
            multiprocess_mode="livesum",
        )


class Resource:
    """Resources and their statuses."""

    def __init__(self, registry: CollectorRegistry) -> None:
        by = ["id", "consumer", "source"]
        self.processed = Counter(
            "resource_processed_total", "Resources processed.", ["id", "action"], registry=registry
        )
        self.first_status = Histogram(
            "resource_first_status_latency_seconds",
            "From the creation of a resource to the first status of its agent.",
            by,
            buckets=(5, 30, 120, 600),
            registry=registry,
        )
        self.status_told = Histogram(
            "resource_status_event_processing_latency_seconds",
            "From a status event to its broadcast by this instance.",
            [*by, "server_instance_id"],
            buckets=(0.05, 0.1, 0.5, 1, 5),
            registry=registry,
        )
        self.resynced = Histogram(
            "resources_spec_resync_duration_seconds",
            "How long the answer to a spec resync took.",
            ["source", "consumer", "type"],
            buckets=(0.1, 0.2, 0.5, 1, 2, 10, 30),
            registry=registry,
        )


class Lock:
    """Advisory locks of the database."""

    def __init__(self, registry: CollectorRegistry) -> None:
        by = ["type", "status"]
        self.locked = Counter("advisory_lock_count", "Advisory locks asked for.", by, registry=registry)
        self.unlocked = Counter("advisory_unlock_count", "Advisory locks given back.", by, registry=registry)
        self.seconds = Histogram(
            "advisory_lock_duration",
            "How long an advisory lock was held, in seconds.",
            by,
            buckets=(0.1, 0.2, 0.5, 1, 2, 10),
            registry=registry,
        )


class Broker:
    """The connection to a message broker."""

    def __init__(self, registry: CollectorRegistry) -> None:
        by = list(EVENT_LABELS)
        self.received = Counter("cloudevents_received_total", "Events from the broker.", by, registry=registry)
        self.sent = Counter("cloudevents_sent_total", "Events to the broker.", by, registry=registry)
        self.reconnected = Counter(
            "cloudevents_client_reconnected_total", "Connections made anew.", ["client_id"], registry=registry
        )


class Controller:
    """One of the two controllers."""

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


class Sweep:
    """What the periodic stages look after."""

    def __init__(self, registry: CollectorRegistry) -> None:
        # Read from the database, so every process that reads tells the same; the newest reading counts.
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


class Queue:
    """Work queues, all of them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        by = ["queue_name"]
        self.depth = Gauge(
            "workqueue_depth", "Items waiting in the queue.", by, registry=registry, multiprocess_mode="livesum"
        )
        self.adds = Counter("workqueue_adds_total", "Items put into the queue.", by, registry=registry)
        self.retries = Counter("workqueue_retries_total", "Items put back after a failure.", by, registry=registry)
        self.waited = Histogram(
            "workqueue_queue_duration_seconds", "How long an item waited.", by, buckets=TENFOLD, registry=registry
        )
        self.worked = Histogram(
            "workqueue_work_duration_seconds",
            "How long an item was worked on.",
            by,
            buckets=TENFOLD,
            registry=registry,
        )
        self.unfinished = Gauge(
            "workqueue_unfinished_work_seconds",
            "Time spent so far on items that are not done.",
            by,
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.longest = Gauge(
            "workqueue_longest_running_processor_seconds",
            "Time spent so far on the oldest item that is not done.",
            by,
            registry=registry,
            multiprocess_mode="livemax",
        )
