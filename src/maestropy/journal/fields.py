"""Define every key and logger name that server and agent log, and their verbosities.

Most are those of the Go Maestro: dashboards and log queries depend on their spelling, so it must not change. `phrases`
has the messages. Classes are namespaces only.
"""

from typing import Final


class Verbosity:
    """The verbosity from which on a kind of log record is written."""

    ALWAYS: Final = 0
    BROKER: Final = 2
    """The attributes of every event that passes the broker."""
    DETAIL: Final = 4
    """Whole events instead of their attributes, and each step of the processing."""
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


class LogKey:
    """Names of fields."""

    LOGGER: Final = "logger"
    ERR: Final = "err"
    OP_ID: Final = "op-id"
    TRACE_ID: Final = "trace_id"

    # The event and its resource.
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
    ADDRESS: Final = "address"
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
    PAUSE: Final = "pause"
    REQUEUE_TIME: Final = "requeue time"
    OWNER_UID: Final = "owner UID"
    NUM_OF_RESOURCES: Final = "numOfResources"
    POD_NAME: Final = "podName"
    AGENT_ID: Final = "agentID"
    HOLD_ID: Final = "holdID"
    DATABASE_ID: Final = "databaseID"
    DATABASE_HOST: Final = "databaseHost"
    DATABASE_ADDRESS: Final = "databaseAddress"
    INITIALIZED: Final = "initialized"
    PUBLISHED: Final = "published"
    MIGRATIONS: Final = "migrations"
    INDEXES: Final = "indexes"
    REPAIRED: Final = "repaired"
    HOLDER: Final = "holder"
    """The process that has a lock."""
    PARTITION: Final = "partition"
    LEASE: Final = "lease"
    IDENTITY: Final = "identity"
