"""The vocabulary of the journal: every message, key and logger name that a server or an agent writes.

Writers take their words from here and readers search for the same constants, so neither has to guess.
The spelling is a contract with dashboards, log queries and runbooks that exist already: do not improve it.
Classes are namespaces only. The comment over a group names the stage of the loop; a comment beside a phrase gives
its verbosity when that is not zero.
"""

from typing import Final


class Verbosity:
    """From which verbosity on a kind of record is written."""

    ALWAYS: Final = 0
    BROKER: Final = 2
    """Every event that passes the broker, by its attributes."""
    DETAIL: Final = 4
    """Whole events instead of their attributes, and each step on the way."""
    BROKER_DETAIL: Final = 5
    """Whole events that pass the broker."""


class Logger:
    """Values of the key `logger`."""

    SERVER: Final = "maestro-server"
    CONTROLLERS: Final = "maestro-server.maestro-controllers"
    UNHANDLED: Final = "UnhandledError"
    WORK: Final = "ManifestWorkController"
    WORK_UNHANDLED: Final = "ManifestWorkController.UnhandledError"
    AVAILABLE_STATUS: Final = "AvailableStatusController"
    WORK_FINALIZER: Final = "ManifestWorkFinalizer"
    APPLIED_WORK_FINALIZER: Final = "AppliedManifestWorkFinalizer"


class Key:
    """Names of fields."""

    LOGGER: Final = "logger"
    ERR: Final = "err"
    OP_ID: Final = "op-id"

    # The event and what it is about.
    RESOURCE_ID: Final = "resourceID"
    EVENT_ID: Final = "eventID"
    EVENT_TYPE: Final = "eventType"
    EVENT_SOURCE: Final = "eventSource"
    EXTENSIONS: Final = "extensions"
    EVENT: Final = "event"
    """The id of the database event in records of a controller, the whole CloudEvent at high verbosity."""
    STATUS_EVENT: Final = "status_event"
    STATUS_EVENT_TYPE: Final = "statusEventType"
    SOURCE: Final = "source"
    CONSUMER: Final = "consumer"
    CONSUMER_NAME: Final = "consumerName"
    CONSUMERS: Final = "consumers"
    RESOURCES: Final = "resources"
    RESOURCE: Final = "resource"
    RESOURCE_TYPE: Final = "resourceType"
    ACTION: Final = "action"
    FOUND_VERSION: Final = "foundVersion"
    WANT_VERSION: Final = "wantVersion"
    FOUND_SEQUENCE_ID: Final = "foundSequenceID"
    WANT_SEQUENCE_ID: Final = "wantSequenceID"

    # The server and its connections.
    INSTANCE_ID: Final = "instanceID"
    ACTIVE_INSTANCE_IDS: Final = "activeInstanceIDs"
    INACTIVE_INSTANCE_IDS: Final = "inactiveInstanceIDs"
    READY_INSTANCE_IDS: Final = "readyInstanceIDs"
    ADDED_MEMBERS: Final = "addedMembers"
    REMOVED_MEMBERS: Final = "removedMembers"
    IDS: Final = "IDs"
    CHANNEL: Final = "channel"
    EXTRA: Final = "extra"
    KEY: Final = "key"
    ID: Final = "id"
    SUBSCRIBER: Final = "subscriber"
    SUB_ID: Final = "subID"
    CLUSTER_NAME: Final = "clusterName"
    DATA_TYPE: Final = "dataType"
    SUBSCRIPTION_TYPE: Final = "subscriptionType"
    BROKER_HOST: Final = "brokerHost"
    TOPIC: Final = "topic"
    QOS: Final = "QoS"
    LOCK_ID: Final = "lockID"
    LOCK_TYPE: Final = "lockType"
    PORT: Final = "port"
    BIND_ADDRESS: Final = "bindAddress"
    PATH: Final = "path"
    BYTES: Final = "bytes"
    BATCH: Final = "batch"
    COUNT: Final = "count"
    AGE: Final = "age"
    THRESHOLD: Final = "threshold"
    ERROR: Final = "error"
    MESSAGE: Final = "message"

    # The agent.
    MANIFEST_WORK_NAME: Final = "manifestWorkName"
    APPLIED_MANIFEST_WORK_NAME: Final = "appliedManifestWorkName"
    GVR: Final = "gvr"
    RESOURCE_NAMESPACE: Final = "resourceNamespace"
    RESOURCE_NAME: Final = "resourceName"
    FIELD_MANAGER: Final = "fieldManager"
    COMPONENT: Final = "component"
    REASON: Final = "reason"
    REQUEUE_TIME: Final = "requeue time"
    OWNER_UID: Final = "owner UID"
    NUM_OF_RESOURCES: Final = "numOfResources"
    POD_NAME: Final = "podName"


class Accept:
    """Stage 1: the server receives a wish."""

    RECEIVED: Final = "receive the event from client"
    """Attributes below verbosity 4, the whole event from there on."""
    NO_USER_IN_TOKEN: Final = "unable to get user and groups from token"  # noqa: S105 -- a sentence
    NO_USER_IN_CERTIFICATE: Final = "unable to get user and groups from certificate"
    ACCESS_REVIEW: Final = "AccessReview"  # 4


class Deliver:
    """Stage 2: the server passes a wish on to the agent."""

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


class Absorb:
    """Stages 6 and 7: the server receives a report and handles it."""

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


class Fanout:
    """Stages 8 and 9: every server instance tells its subscribers."""

    BROADCAST: Final = "Broadcast the resource status"
    TO_STATUS_SUBSCRIBERS: Final = "send the event to status subscribers"
    """Attributes below verbosity 4, the whole event from there on."""
    NO_CLIENTS: Final = "no clients registered on this instance"
    RESOURCE_NOT_FOUND: Final = Absorb.RESOURCE_NOT_FOUND
    PROCESSING_TIME: Final = "Recorded resource status processing time metric"  # 4
    REGISTERED: Final = "registered a broadcaster client"
    UNREGISTERED: Final = "unregistered broadcaster client"
    UNKNOWN_CLIENT: Final = "attempted to unregister non-existent broadcaster client"
    HANDLE_RESOURCE_FAILED: Final = "failed to handle resource"
    SEND_FAILED: Final = "failed to send event"
    SEND_FAILED_UNREGISTER: Final = "failed to send event, unregister subscriber"
    HEARTBEAT_FAILED: Final = "failed to send heartbeat"
    HEARTBEAT_DROPPED: Final = "send channel is full, dropping heartbeat"


class Resync:
    """Both sides compare what they have."""

    STATUS_FROM_CONSUMERS: Final = "Resyncing resource status from consumers"
    STATUS_BATCH: Final = "Sending status resync batch"  # 4
    STATUS_FOR_CONSUMER: Final = "processing status resync request for consumer"
    CONSUMER_FAILED: Final = "failed to resync resources status for consumer"
    UNHEARD: Final = "an agent asks for its works and does not listen yet; it is answered again"
    CONSUMERS_FAILED: Final = "failed to resync resources status for consumers"
    CONSUMERS_UNKNOWN: Final = "failed to get all consumers"


class Listen:
    """NOTIFY of the database."""

    STARTING: Final = "Starting listener"
    RECEIVED: Final = "Received event from channel"  # 4
    CONNECTION_LOST: Final = "recreate the listener for channel due to the connection loss"
    PING_FAILED: Final = "recreate the listener due to ping failed"
    STOPPED: Final = "Context cancelled, stopping channel monitor"
    CONNECTION_CHANGED: Final = "Listener: the state of the underlying database connection changes"


class Broker:
    """The connection to the message broker, on either side of it."""

    MQTT_CONNECTED: Final = "mqtt is connected"
    MQTT_SUBSCRIBED: Final = "subscribed to mqtt broker"
    MQTT_CLIENT_ERROR: Final = "mqtt client error"
    MQTT_ERROR_MESSAGE: Final = "MQTT error message"
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


class Sweep:
    """What the server does from time to time."""

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
    REMINDED: Final = "Deletion is sent again, its agent has not confirmed it"
    PURGE_EVENTS_FAILED: Final = "Failed to delete reconciled events from db"
    LIST_EVENTS_FAILED: Final = "Failed to list unreconciled events from db"
    OLDEST_EVENT_FAILED: Final = "Failed to retrieve age of oldest unreconciled event from db"
    PURGE_STATUS_EVENTS_FAILED: Final = "Failed to delete handled status events from db"
    FIND_STATUS_EVENTS_FAILED: Final = "Failed to find handled status events from db"
    READY_INSTANCES_FAILED: Final = "Failed to find ready instances from db"
    QUEUE_USAGE_FAILED: Final = "Failed to get postgres notification queue usage"


class Membership:
    """Which instances live, and which of them owns a consumer."""

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


class Life:
    """Starting, serving, stopping."""

    GRPC_STARTING: Final = "Starting gRPC server"
    HEALTH_STARTING: Final = "Starting HealthCheck server"
    BROADCASTER_STARTING: Final = "Starting event broadcaster"
    MESSAGE_QUEUE_STARTING: Final = "Starting message queue event server"
    EVENT_CONTROLLER_STARTING: Final = "Starting event controller"
    STATUS_CONTROLLER_STARTING: Final = "Starting status event controller"
    MESSAGE_QUEUE_SETTING_UP: Final = "Setting up message queue event server"
    GRPC_BROKER_SETTING_UP: Final = "Setting up grpc broker"
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


class Rest:
    """The REST API."""

    USER_ERROR: Final = "user request error"
    BODY_NOT_SENT: Final = "cannot send response body for request"
    SIZE_UNBOUND: Final = "A query with an unbound size was requested."
    SIZE_TOO_LARGE: Final = "A query with a size greater than the maximum was requested."
    SIZE_ZERO: Final = "A query with 0 size requested, returning early without collecting any resources from database"


class Database:
    """Transactions and locks."""

    NO_TRANSACTION: Final = "Could not create transaction"
    COMMIT_FAILED: Final = "Could not commit transaction"
    ROLLBACK_FAILED: Final = "Could not rollback transaction"
    ROLLED_BACK: Final = "Rolled back transaction"
    UNLOCK_FAILED: Final = "error unlocking advisory lock"
    NOT_LOCK_OWNER: Final = "Caller not lock owner"  # 4


class Agent:
    """Stages 3 to 5: the agent receives a wish, carries it out and reports."""

    RECEIVED: Final = Absorb.RECEIVED  # 2, whole event 5
    STORED: Final = "Receive the event {change} for {work}"  # 4; plain text without quotes, not a structured message
    APPLIED: Final = "Server side applied"
    CREATED: Final = "Created resource because it was missing"
    UPDATED: Final = "Updated resource"
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
    SENDING: Final = Deliver.SENDING  # 2, whole event 5


class Own:
    """The journal about itself."""

    LINES_LOST: Final = "journal lines were dropped because the log stream did not take them"
    UNPRINTABLE: Final = "a journal record could not be formatted"
