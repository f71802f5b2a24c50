"""Define every message that server and agent log.

Server and agent log these constants, and the tracer searches for the same constants. Most messages are those of the Go
Maestro: dashboards, log queries and runbooks depend on their spelling, so it must not change.
Classes are namespaces only, one per component that logs the phrases. Where a class belongs to stages of a traced
request, its docstring names them. A comment beside a phrase gives its verbosity when that is not zero.
"""

from typing import Final


class SpecWriterPhrase:
    """Stage 1: the server receives a spec request from a source."""

    RECEIVED: Final = "receive the event from client"
    """Attributes below verbosity 4, the whole event from there on."""
    NO_USER_IN_TOKEN: Final = "unable to get user and groups from token"  # noqa: S105 -- a sentence
    NO_USER_IN_CERTIFICATE: Final = "unable to get user and groups from certificate"
    ACCESS_REVIEW: Final = "AccessReview"  # 4

    # Our own messages, which the Go server does not write.
    REJECTED: Final = "request rejected"
    """Also of requests of agents and of REST clients."""
    REJECTED_0_1: Final = "request refused"
    """The same message of version 0.1, for the tracer."""
    FAILED: Final = "request failed"
    UNCHANGED: Final = "request changes nothing"  # 2
    CALL_FAILED: Final = "a call failed unexpectedly"


class SpecDispatcherPhrase:
    """Stage 2: the server dispatches the spec to the agent."""

    INSERTED: Final = "Publishing resource for db row insert"
    UPDATED: Final = "Publishing resource for db row update"
    DELETED: Final = "Publishing resource for db row delete"
    SENDING: Final = "Sending event"  # 2, whole event 5
    TO_SPEC_SUBSCRIBERS: Final = "sending the event to spec subscribers"  # 4
    PUBLISH_FAILED: Final = "Failed to publish resource"
    HANDLE_FAILED: Final = "Failed to handle the event"
    BY_ANOTHER_WORKER: Final = "Event is processed by another worker"
    NOT_BY_THIS_INSTANCE: Final = "Event should not be processed by this instance"
    EVENT_NOT_FOUND: Final = "Event is not found"
    EVENT_RECONCILED: Final = "Event is already reconciled"
    RESOURCE_GONE: Final = "The resource has been deleted, mark the event as reconciled"
    CREATE_NOT_FOUND: Final = "skipping to publish create request for resource as it is not found"
    UPDATE_NOT_FOUND: Final = "skipping to publish update request for resource as it is not found"
    DELETE_NOT_FOUND: Final = "skipping to publish delete request for resource as it is not found"
    CREATE_OF_DELETING: Final = (
        "skipping create for resource that is marked as deleting; the delete event will propagate the delete"
    )
    UPDATE_OF_DELETING: Final = (
        "skipping update for resource that is marked as deleting; the delete event will propagate the delete"
    )


class StatusWriterPhrase:
    """Stages 6 and 7: the server receives a status update and stores it."""

    RECEIVED_BY_BROKER: Final = "receive the event with grpc broker"  # 4
    RECEIVED: Final = "Received event"  # 2, whole event 5
    STATUS_RECEIVED: Final = "received status update for resource"
    NOT_OWNED: Final = "skipping resource status update as it is not owned by the current instance"
    HANDLING: Final = "handle resource status update by the current instance"
    FIRST_STATUS: Final = "First status received from agent"  # 4
    UPDATING: Final = "Updating resource status"
    """Attributes below verbosity 4, the whole event from there on."""
    STALE: Final = "Updating status for stale resource; disregard it"
    UPDATE_SENT: Final = "resource status update event was sent"
    DELETE_SENT: Final = "resource status delete event was sent"
    RESOURCE_NOT_FOUND: Final = "skipping resource as it is not found"
    DECODE_FAILED: Final = "failed to decode status"
    HANDLE_FAILED: Final = "failed to handle status event"
    REDELIVERED: Final = "the agent deleted a work that was not to be deleted; the spec is sent again"

    # Our own messages, which the Go server does not write.
    UNCHANGED: Final = "status update changes nothing"
    UNORDERED: Final = "the order of a status update is not known; the agent is asked for its status"


class StatusDispatcherPhrase:
    """Stages 8 and 9: every server instance dispatches the status event to its subscribers."""

    BROADCAST: Final = "Broadcast the resource status"
    TO_STATUS_SUBSCRIBERS: Final = "send the event to status subscribers"
    """Attributes below verbosity 4, the whole event from there on."""
    NO_CLIENTS: Final = "no clients registered on this instance"
    RESOURCE_NOT_FOUND: Final = StatusWriterPhrase.RESOURCE_NOT_FOUND
    PROCESSING_TIME: Final = "Recorded resource status processing time metric"  # 4
    REGISTERED: Final = "registered a broadcaster client"
    UNREGISTERED: Final = "unregistered broadcaster client"
    UNKNOWN_CLIENT: Final = "attempted to unregister non-existent broadcaster client"
    HANDLE_RESOURCE_FAILED: Final = "failed to handle resource"
    SEND_FAILED: Final = "failed to send event"
    SEND_FAILED_UNREGISTER: Final = "failed to send event, unregister subscriber"
    HEARTBEAT_FAILED: Final = "failed to send heartbeat"
    HEARTBEAT_DROPPED: Final = "send channel is full, dropping heartbeat"

    # Our own messages, which the Go server does not write.
    SUBSCRIPTION_REJECTED: Final = "subscription rejected"
    """Also of subscriptions of agents."""
    NOT_RECHECKED: Final = "the credentials of a subscription could not be checked; it stays open"


class ResyncPhrase:
    """Spec resync and status resync between server and agents."""

    STATUS_FROM_CONSUMERS: Final = "Resyncing resource status from consumers"
    STATUS_BATCH: Final = "Sending status resync batch"  # 4
    STATUS_FOR_CONSUMER: Final = "processing status resync request for consumer"
    CONSUMER_FAILED: Final = "failed to resync resources status for consumer"
    NO_SUBSCRIBER: Final = "an agent sent a spec resync and has not subscribed yet; it is answered again"
    CONSUMERS_FAILED: Final = "failed to resync resources status for consumers"
    CONSUMERS_UNKNOWN: Final = "failed to get all consumers"

    # Our own messages.
    ANSWER_FAILED: Final = "the rest of the answer to a resync failed; the streams end, so that the client resyncs"
    HOLD: Final = "data-safety hold: the agent keeps works that this database does not ask for"
    HOLD_ADOPTED: Final = "data-safety hold: the adoption is sent to the agent"
    HOLD_ENDED: Final = "data-safety hold ended: the agent keeps no works any more"
    PAUSED: Final = "delivery to the consumer is paused; its spec resync is answered after the resumption"


class ListenerPhrase:
    """The connection that receives NOTIFY messages of PostgreSQL."""

    STARTING: Final = "Starting listener"
    RECEIVED: Final = "Received event from channel"  # 4
    CONNECTION_LOST: Final = "recreate the listener for channel due to the connection loss"
    PING_FAILED: Final = "recreate the listener due to ping failed"
    STOPPED: Final = "Context cancelled, stopping channel monitor"
    CONNECTION_CHANGED: Final = "Listener: the state of the underlying database connection changes"


class BrokerPhrase:
    """The connection to the message broker, in server and agent."""

    MQTT_CONNECTED: Final = "mqtt is connected"
    MQTT_SUBSCRIBED: Final = "subscribed to mqtt broker"
    MQTT_CLIENT_ERROR: Final = "mqtt client error"
    MQTT_ERROR_MESSAGE: Final = "MQTT error message"
    PUBSUB_SUBSCRIBED: Final = "subscribed to pubsub"
    GRPC_SUBSCRIBED: Final = "subscribed to grpc server"
    REGISTERING: Final = "registering subscriber"
    UNREGISTERING: Final = "unregister subscriber"
    RECEIVER_STARTED: Final = "start the cloudevents receiver"
    RECEIVER_STOPPED: Final = "stop the cloudevents receiver"
    DISCONNECTED: Final = "the cloudevents client is disconnected"
    RECONNECTING: Final = "reconnecting the cloudevents client"
    RECONNECTED: Final = "the cloudevents client is reconnected"
    RECONNECT_FAILED: Final = "the cloudevents client reconnect failed"
    SUBSCRIBE_FAILED: Final = "failed to subscribe after connection"
    RECEIVE_FAILED: Final = "failed to receive cloudevents"
    CERTIFICATE_ROTATED: Final = (
        "certificate rotation detected, shutting down client connections to start using new credentials"
    )
    INVALID_EVENT: Final = "invalid event"
    UNKNOWN_EVENT_TYPE: Final = "failed to parse cloud event type"
    UNSUPPORTED_DATA_TYPE: Final = "unsupported event data type, ignore"
    UNSUPPORTED_EVENT_TYPE: Final = "ignore unsupported event type"
    OTHER_CLUSTER: Final = "event clustername and agent clustername do not match, ignore"  # 4
    CONSUMER_REJECTED: Final = "the broker rejects messages to a consumer; they are sent again later"
    CONSUMER_NOT_NAMED: Final = (
        "the certificate of an agent does not name its consumer; "
        "it is accepted because --grpc-broker-agent-identity is not exact"
    )
    MESSAGE_FAILED: Final = "a message of an agent failed unexpectedly"
    MESSAGES_LOST: Final = "more messages waited than the broker keeps; the statuses of the agents are requested again"


class MaintenancePhrase:
    """The periodic tasks of the server."""

    PURGE_EVENTS: Final = "purge all reconciled events"
    SYNC_EVENTS: Final = "sync all unreconciled events"
    PURGE_STATUS_EVENTS: Final = "purge status events on the ready instances"  # 4
    UNDELIVERED_STARTING: Final = "Starting undelivered resource detector"
    UNDELIVERED_FOUND: Final = "Found resources with no status feedback, re-publishing"
    REPUBLISHED: Final = "Re-published undelivered resource"
    REPUBLISH_FAILED: Final = "Failed to create re-publish event"
    UNDELIVERED_FAILED: Final = "Failed to find undelivered resources"
    UNDELIVERED_ELSEWHERE: Final = "Another instance is checking undelivered resources, skip"  # 4
    STALE_DELETES_STARTING: Final = "Starting stale delete event detector"
    STALE_DELETES_RETIRED: Final = "Retired stale delete events for soft-deleted resources with no agent"
    STALE_DELETES_REMAIN: Final = (
        "Retired stale delete events, batch limit reached so more likely remain (draining on subsequent ticks)"
    )
    STALE_DELETES_FAILED: Final = "Failed to reconcile stale delete events"
    STALE_DELETES_ELSEWHERE: Final = "Another instance is checking stale delete events, skip"  # 4
    DELETION_REPEATED: Final = "Deletion is sent again, its agent has not confirmed it"
    RECOVERY_STARTING: Final = "Starting delete recovery scheduler"
    RECOVERY_ROUND: Final = "Delete recovery round complete"  # 2
    RECOVERY_FAILED: Final = "Delete recovery round failed"
    BACKLOG_FAILED: Final = "Delete recovery metrics snapshot failed"
    TASK_FAILED: Final = "a periodic task failed; it is tried again"
    HISTORY_NOT_WRITTEN: Final = "history entries could not be written"
    HISTORY_PARTITION_KEPT: Final = "a partition of the history could not be changed; it is tried again"
    HISTORY_DROPPED: Final = "dropped a partition of the history"
    PURGE_EVENTS_FAILED: Final = "Failed to delete reconciled events from db"
    LIST_EVENTS_FAILED: Final = "Failed to list unreconciled events from db"
    OLDEST_EVENT_FAILED: Final = "Failed to retrieve age of oldest unreconciled event from db"
    PURGE_STATUS_EVENTS_FAILED: Final = "Failed to delete handled status events from db"
    FIND_STATUS_EVENTS_FAILED: Final = "Failed to find handled status events from db"
    READY_INSTANCES_FAILED: Final = "Failed to find ready instances from db"
    QUEUE_USAGE_FAILED: Final = "Failed to get postgres notification queue usage"


class MembershipPhrase:
    """Which instances are active, and which of them owns a consumer."""

    CREATING: Final = "Creating new maestro instance"  # 4
    CONSUMERS_OWNED: Final = "Consumers set for current instance"  # 4
    RING_CHANGED: Final = "newly added server instances and removed server instances from the hash ring"  # 4
    CHECKED_ELSEWHERE: Final = "failed to acquire the lock as another maestro instance is checking instances, skip"  # 4
    LOCK_FAILED: Final = "Error obtaining the instance lock"
    HEARTBEAT_FAILED: Final = "Unable to update heartbeat for maestro instance"
    CREATE_FAILED: Final = "Unable to create maestro instance"
    GET_FAILED: Final = "Unable to get maestro instance"
    LIST_FAILED: Final = "Unable to get all maestro instances"
    MARK_ACTIVE_FAILED: Final = "Unable to mark active maestro instances"
    MARK_INACTIVE_FAILED: Final = "Unable to mark inactive maestro instances"
    CONSUMER_SET_FAILED: Final = "Unable to update consumer set"
    DUPLICATE_ID: Final = (
        "an instance with this ID was alive a moment ago; if it still runs, give each instance its own --client-id"
    )
    WITHDRAWN: Final = "this instance leaves its consumers to the other instances"
    REJOINED: Final = "this instance owns consumers again"
    INSTANCES_CHANGED: Final = "server instances changed"
    DATABASE_CHANGED: Final = (
        "the database was replaced or restored; the agents and sources connected here have to resync"
    )


class LifecyclePhrase:
    """Starting, serving, stopping."""

    GRPC_STARTING: Final = "Starting gRPC server"
    HEALTH_STARTING: Final = "Starting HealthCheck server"
    BROADCASTER_STARTING: Final = "Starting event broadcaster"
    MESSAGE_QUEUE_STARTING: Final = "Starting message queue event server"
    EVENT_CONTROLLER_STARTING: Final = "Starting event controller"
    STATUS_CONTROLLER_STARTING: Final = "Starting status event controller"
    MESSAGE_QUEUE_SETTING_UP: Final = "Setting up message queue event server"
    GRPC_BROKER_SETTING_UP: Final = "Setting up grpc broker"
    TRACING_PROBLEM: Final = "A problem with OpenTelemetry traces"
    """Our own, of the agent too."""
    SERVING: Final = "Serving "
    """Our own, before the name of a listener: `Serving rest`, `Serving gRPC for agents`."""
    API_WITH_TLS: Final = "Serving with TLS"
    API_WITHOUT_TLS: Final = "Serving without TLS"
    GRPC_WITH_TLS: Final = "Serving gRPC service with TLS"
    GRPC_WITH_MTLS: Final = "Serving gRPC service with mTLS"
    GRPC_WITHOUT_TLS: Final = "Serving gRPC service without TLS"
    BROKER_WITH_TLS: Final = "Serving gRPC broker with TLS"
    BROKER_WITHOUT_TLS: Final = "Serving gRPC broker without TLS"
    METRICS_WITH_TLS: Final = "Serving Metrics with TLS"
    METRICS_WITHOUT_TLS: Final = "Serving Metrics without TLS at"
    HEALTH_WITH_TLS: Final = "Serving HealthCheck with TLS"
    HEALTH_WITHOUT_TLS: Final = "Serving HealthCheck without TLS"
    LISTEN_FAILED: Final = "failed to listen"
    API_START_FAILED: Final = "Unable to start API server"
    API_TERMINATED: Final = "Web server terminated"
    METRICS_TERMINATED: Final = "Metrics server terminated"
    HEALTH_TERMINATED: Final = "HealthCheck server terminated"
    EVENT_CONTROLLER_STOPPING: Final = "Shutting down event controller"
    STATUS_CONTROLLER_STOPPING: Final = "Shutting down status event controller"
    MESSAGE_QUEUE_STOPPING: Final = "Shutting down message queue event server"
    HEALTH_STOPPING: Final = "Shutting down HealthCheck server"
    BROKER_STOPPING: Final = "Stopping gRPC broker"
    API_STOP_FAILED: Final = "Failed to stop api server"
    METRICS_STOP_FAILED: Final = "Failed to stop metrics server"

    # Our own messages, which the Go server does not write.
    MIGRATED: Final = "database migrated"
    CLOCKS_DIFFER: Final = "the clock of this host differs from the database clock; the server uses the database clock"
    OPEN_TO_NETWORK: Final = "this server is open to the network"
    CERTIFICATE_DATES: Final = "a certificate has expired or expires soon"
    SECURITY_FILE_FAILED: Final = "a certificate or key file could not be loaded"
    CONSOLE_LOGIN_FAILED: Final = "a user could not sign in to the console"
    CONNECTIONS_CLOSED: Final = "closed connections without an authenticated call"
    STOPPING: Final = "shutting down"
    REQUESTS_CANCELLED: Final = "some requests did not finish in time and were cancelled"
    STOPPED: Final = "the server has stopped"


class RestPhrase:
    """The REST API."""

    USER_ERROR: Final = "user request error"
    BODY_NOT_SENT: Final = "cannot send response body for request"
    SIZE_UNBOUND: Final = "A query with an unbound size was requested."
    SIZE_TOO_LARGE: Final = "A query with a size greater than the maximum was requested."
    SIZE_ZERO: Final = "A query with 0 size requested, returning early without collecting any resources from database"

    # Our own messages, which the Go server does not write.
    CUT_SHORT: Final = "response cut short"
    ADOPTED: Final = "data-safety hold adopted: this database decides about the held works"
    ACTION: Final = "operator action"
    RENDITIONS_NOT_FILLED: Final = "renditions not filled"
    HEALTH_CHECK_FAILED: Final = "health check failed"


class DatabasePhrase:
    """Transactions and locks."""

    NO_TRANSACTION: Final = "Could not create transaction"
    COMMIT_FAILED: Final = "Could not commit transaction"
    ROLLBACK_FAILED: Final = "Could not rollback transaction"
    ROLLED_BACK: Final = "Rolled back transaction"
    UNLOCK_FAILED: Final = "error unlocking advisory lock"
    NOT_LOCK_OWNER: Final = "Caller not lock owner"  # 4

    # Our own messages, which the Go server does not write.
    IN_USE: Final = "the server uses this database"
    MOVED: Final = "the database connections lead to another host now"
    READ_ONLY: Final = "the database takes no writes; this instance is not ready"
    WRITABLE: Final = "the database takes writes again"
    UNUSABLE_INDEXES: Final = "the database lacks valid indexes, statements are slow; run `maestro migration`"
    WAITING_FOR_MIGRATION: Final = "another process migrates the database; waiting for its lock"
    SCHEMA_REPAIRED: Final = "the database lacked parts of recorded migrations; they were added"
    NEWER_SCHEMA: Final = (
        "a newer Maestro has migrated the database; this version uses it as it is, upgrade it when you can"
    )
    PROMOTED: Final = "a standby of the database was promoted; the agents and sources connected here have to resync"
    NO_TIMELINE: Final = "the database does not tell its timeline; a promotion of a standby is not noticed"
    REPLICA_IN_USE: Final = "lists are read from the read replica"
    REPLICA_UNUSED: Final = "lists are read from the primary, not from the read replica"
    POOLER: Final = "the database connections pass through a connection pooler; the server keeps no session state"


class AgentPhrase:
    """Stages 3 to 5: the agent receives a spec event, applies the manifests and reports the status."""

    RECEIVED: Final = StatusWriterPhrase.RECEIVED  # 2, whole event 5
    STORED: Final = "Receive the event {change} for {work}"  # 4; plain text without quotes, not a structured message
    APPLIED: Final = "Server side applied"
    CREATED: Final = "Created resource because it was missing"
    UPDATED: Final = "Updated resource"
    CREATED_ONLY: Final = "Resource created because of missing"
    READ_ONLY: Final = "Noop because its read-only"
    REQUEUE: Final = "Requeue manifestwork"  # 2
    DELETED: Final = "Deleted resource"
    REMOVED: Final = "Resource is removed successfully"
    PENDING_DELETION: Final = "resources pending deletions"  # 4
    SYNC_FAILED: Final = "controller failed to sync"
    APPLY_FAILED: Final = "apply work failed"
    APPLY_RESOURCE_FAILED: Final = "failed to apply resource"
    NOT_ALLOWED: Final = "not allowed to apply the resource"
    DECODE_FAILED: Final = "failed to decode spec"
    HANDLE_FAILED: Final = "failed to handle spec event"
    DELETE_WORK_FAILED: Final = "failed to delete work"
    WORKER_STARTING: Final = "Starting worker of controller ..."
    CACHES_SYNCED: Final = "Caches are synced"
    RECONCILING: Final = "Reconciling ManifestWork"  # 4
    PATCHING: Final = "patching manifestwork"  # 4
    CONTROLLER_STOPPING: Final = "Shutting down ..."
    WORKER_STOPPING: Final = "Shutting down worker of controller ..."
    WORKERS_STOPPED: Final = "All workers have been terminated"
    WATCH_FAILED: Final = "Failed to watch"
    SENDING: Final = SpecDispatcherPhrase.SENDING  # 2, whole event 5
    EVICTED: Final = "AppliedManifestWork evicted after eviction grace period"

    # Our own messages, which the Go agent does not write.
    STARTING: Final = "starting the agent"
    LATE_EVENT: Final = "the event is older than the work; resyncing to learn whether it is late"
    ORPHANED: Final = "the server does not have this work; its objects stay while it is held, or for the grace period"
    BUDGET_EXCEEDED: Final = "the expressions of this work exceeded a limit; they are evaluated again after a pause"
    WORK_HELD: Final = "data-safety hold: nothing of this work is deleted or overwritten"
    HOLD: Final = "data-safety hold: works are kept as they are; see `maestro consumer adopt --dry-run`"
    HOLD_ENDED: Final = "data-safety hold ended"
    OTHER_CONSUMERS: Final = (
        "agents of other consumers use this server address on this cluster; their works are left alone"
    )
    OTHER_AGENTS: Final = "AppliedManifestWorks of another agent identity are on this cluster; they are left alone"
    CLOCK_AHEAD: Final = "the clock of this host is wrong; sequence IDs follow the time of the database"
    HOLD_ADOPTED: Final = "an operator adopted the database; the data-safety hold ends"
    WAITING_FOR_LEADERSHIP: Final = "waiting for leadership"
    LEADING: Final = "leading"
    LEASE_FAILED: Final = "the lease could not be read or written"
    CERTIFICATE_NOT_LOADED: Final = "the serving certificate could not be loaded; the previous one stays in use"
    CRD_INSTALLING: Final = "installing the AppliedManifestWork CRD"
    CRD_FORBIDDEN: Final = "the agent is not allowed to read or create the AppliedManifestWork CRD"
    CRD_FAILED: Final = "the AppliedManifestWork CRD could not be installed"
    STATUS_POSTPONED: Final = "the server could not take a status update now; it is sent again later"
    RESYNC_POSTPONED: Final = "the server did not accept a spec resync request; it is sent again later"
    STATUS_REJECTED: Final = "the server rejected a status update"
    SHORT_STATUS_REJECTED: Final = "the server rejected a status update without feedback values"
    DELETE_RESOURCE_FAILED: Final = "failed to delete an applied resource"
    WATCH_INTERRUPTED: Final = "the watch of applied resources is interrupted"
    APPLIED_WORK_WATCH_INTERRUPTED: Final = "the watch of AppliedManifestWorks is interrupted"
    CRD_WATCH_INTERRUPTED: Final = "the watch of CustomResourceDefinitions is interrupted"


class JournalPhrase:
    """Problems of the log itself."""

    LINES_LOST: Final = "log lines were dropped because standard error did not accept them"
    UNPRINTABLE: Final = "a log record could not be formatted"
