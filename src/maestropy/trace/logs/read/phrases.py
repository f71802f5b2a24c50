"""The catalogue of log phrases: which phrase of which generation means which record kind.

Phrases of the current generation are constants of `maestropy.journal.phrases`, shared with server and agent, which
write them. Older generations wrote unstructured messages with IDs inside; their patterns are here. Data only.
"""

import re
from dataclasses import dataclass
from typing import Final

from maestropy.journal.phrases import (
    AgentPhrase,
    BrokerPhrase,
    DatabasePhrase,
    LifecyclePhrase,
    ListenerPhrase,
    MaintenancePhrase,
    MembershipPhrase,
    RestPhrase,
    ResyncPhrase,
    SpecDispatcherPhrase,
    SpecWriterPhrase,
    StatusDispatcherPhrase,
    StatusWriterPhrase,
)
from maestropy.trace.logs.log_records import RecordKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """The meaning of a log phrase."""

    kind: RecordKind
    carries_event: bool = False
    """The record describes a CloudEvent, by its attributes or whole; its type decides between spec and status."""
    action: str = ""
    verbosity: int = 0
    is_about_all: bool = False
    """It concerns the component, not one resource."""
    role: str = ""
    """server or agent, where only one of them writes it."""
    prefix: str = ""
    """The text before the error, where the message says more than the error."""


def _server(kind: RecordKind, *, verbosity: int = 0, action: str = "", carries_event: bool = False) -> Phrase:
    return Phrase(kind=kind, role="server", verbosity=verbosity, action=action, carries_event=carries_event)


def _agent(kind: RecordKind, *, verbosity: int = 0, action: str = "") -> Phrase:
    return Phrase(kind=kind, role="agent", verbosity=verbosity, action=action)


def _component(kind: RecordKind, *, role: str = "", verbosity: int = 0) -> Phrase:
    return Phrase(kind=kind, role=role, is_about_all=True, verbosity=verbosity)


ACTION_OF_G3: Final = b"received action for resource"
"""What generation G3 writes instead of `received status update for resource`."""
_STRUCTURED: Final[dict[str, Phrase]] = {
    SpecWriterPhrase.RECEIVED: _server(RecordKind.REQUEST_RECEIVED, carries_event=True),
    SpecWriterPhrase.REJECTED: _server(RecordKind.REQUEST_REJECTED),
    SpecWriterPhrase.REJECTED_0_1: _server(RecordKind.REQUEST_REJECTED),
    SpecWriterPhrase.FAILED: _server(RecordKind.REQUEST_REJECTED),
    SpecWriterPhrase.UNCHANGED: _server(RecordKind.NO_OP, verbosity=2),
    ListenerPhrase.RECEIVED: _server(RecordKind.NOTIFIED, verbosity=4),
    SpecDispatcherPhrase.INSERTED: _server(RecordKind.PUBLISHING, action="create"),
    SpecDispatcherPhrase.UPDATED: _server(RecordKind.PUBLISHING, action="update"),
    SpecDispatcherPhrase.DELETED: _server(RecordKind.PUBLISHING, action="delete"),
    SpecDispatcherPhrase.SENDING: Phrase(kind=RecordKind.SENDING_SPEC, carries_event=True, verbosity=2),
    SpecDispatcherPhrase.TO_SPEC_SUBSCRIBERS: _server(RecordKind.SENT_TO_AGENTS, carries_event=True, verbosity=4),
    SpecDispatcherPhrase.PUBLISH_FAILED: Phrase(kind=RecordKind.PUBLISH_FAILED),
    SpecDispatcherPhrase.HANDLE_FAILED: _server(RecordKind.PUBLISH_FAILED),
    SpecDispatcherPhrase.BY_ANOTHER_WORKER: _server(RecordKind.OTHER_INSTANCE),
    SpecDispatcherPhrase.NOT_BY_THIS_INSTANCE: _server(RecordKind.NO_AGENT_HERE),
    SpecDispatcherPhrase.CREATE_NOT_FOUND: _server(RecordKind.PUBLISH_SKIPPED, action="create"),
    SpecDispatcherPhrase.UPDATE_NOT_FOUND: _server(RecordKind.PUBLISH_SKIPPED, action="update"),
    SpecDispatcherPhrase.DELETE_NOT_FOUND: _server(RecordKind.PUBLISH_SKIPPED, action="delete"),
    SpecDispatcherPhrase.CREATE_OF_DELETING: _server(RecordKind.PUBLISH_SKIPPED, action="create"),
    SpecDispatcherPhrase.UPDATE_OF_DELETING: _server(RecordKind.PUBLISH_SKIPPED, action="update"),
    SpecDispatcherPhrase.RESOURCE_GONE: _server(RecordKind.PUBLISH_SKIPPED),
    "delete resource as it is not created on the agent yet": _server(RecordKind.HARD_DELETED, action="delete"),
    MaintenancePhrase.REPUBLISHED: _server(RecordKind.REPUBLISHED),
    AgentPhrase.RECEIVED: Phrase(kind=RecordKind.RECEIVED_SPEC, carries_event=True, verbosity=2),
    AgentPhrase.APPLIED: _agent(RecordKind.APPLIED),
    AgentPhrase.CREATED: _agent(RecordKind.APPLIED),
    AgentPhrase.UPDATED: _agent(RecordKind.APPLIED),
    AgentPhrase.CREATED_ONLY: _agent(RecordKind.APPLIED),
    AgentPhrase.READ_ONLY: _agent(RecordKind.APPLIED),
    AgentPhrase.DELETED: _agent(RecordKind.DELETING),
    AgentPhrase.REMOVED: _agent(RecordKind.REMOVED),
    AgentPhrase.PENDING_DELETION: _agent(RecordKind.PENDING_DELETION, verbosity=4),
    AgentPhrase.SYNC_FAILED: _agent(RecordKind.APPLY_FAILED),
    AgentPhrase.APPLY_FAILED: _agent(RecordKind.APPLY_FAILED),
    AgentPhrase.APPLY_RESOURCE_FAILED: _agent(RecordKind.APPLY_FAILED),
    AgentPhrase.NOT_ALLOWED: Phrase(kind=RecordKind.APPLY_FAILED, role="agent", prefix=AgentPhrase.NOT_ALLOWED),
    AgentPhrase.DECODE_FAILED: _agent(RecordKind.DECODE_FAILED),
    AgentPhrase.HANDLE_FAILED: _agent(RecordKind.DECODE_FAILED),
    AgentPhrase.DELETE_WORK_FAILED: _agent(RecordKind.STATUS_REJECTED),
    AgentPhrase.STATUS_REJECTED: _agent(RecordKind.STATUS_REJECTED),
    StatusWriterPhrase.RECEIVED_BY_BROKER: _server(RecordKind.RECEIVED_STATUS, carries_event=True, verbosity=4),
    StatusWriterPhrase.STATUS_RECEIVED: _server(RecordKind.STATUS_UPDATE_RECEIVED),
    ACTION_OF_G3.decode(): _server(RecordKind.STATUS_UPDATE_RECEIVED),
    StatusWriterPhrase.NOT_OWNED: _server(RecordKind.NOT_OWNED),
    StatusWriterPhrase.HANDLING: _server(RecordKind.HANDLING),
    StatusWriterPhrase.UPDATING: _server(RecordKind.UPDATING, carries_event=True),
    StatusWriterPhrase.STALE: _server(RecordKind.STALE),
    StatusWriterPhrase.UNORDERED: _server(RecordKind.STALE),
    StatusWriterPhrase.UNCHANGED: _server(RecordKind.UNCHANGED),
    StatusWriterPhrase.UPDATE_SENT: _server(RecordKind.UPDATE_SENT),
    StatusWriterPhrase.DELETE_SENT: _server(RecordKind.DELETE_SENT),
    StatusWriterPhrase.RESOURCE_NOT_FOUND: _server(RecordKind.STATUS_NOT_FOUND),
    StatusWriterPhrase.HANDLE_FAILED: _server(RecordKind.STATUS_FAILED),
    StatusWriterPhrase.DECODE_FAILED: _server(RecordKind.STATUS_FAILED),
    StatusDispatcherPhrase.BROADCAST: _server(RecordKind.BROADCAST),
    StatusDispatcherPhrase.TO_STATUS_SUBSCRIBERS: _server(RecordKind.SENT_TO_CLIENTS, carries_event=True),
    StatusDispatcherPhrase.NO_CLIENTS: _server(RecordKind.NO_CLIENTS),
    StatusDispatcherPhrase.HANDLE_RESOURCE_FAILED: _server(RecordKind.STATUS_DISPATCH_FAILED),
    StatusDispatcherPhrase.REGISTERED: _component(RecordKind.CLIENT_SUBSCRIBED, role="server"),
    StatusDispatcherPhrase.UNREGISTERED: _component(RecordKind.CLIENT_UNSUBSCRIBED, role="server"),
    StatusDispatcherPhrase.SEND_FAILED: _component(RecordKind.STREAM_BROKEN, role="server"),
    StatusDispatcherPhrase.SEND_FAILED_UNREGISTER: _component(RecordKind.STREAM_BROKEN, role="server"),
    StatusDispatcherPhrase.HEARTBEAT_FAILED: _component(RecordKind.STREAM_BROKEN, role="server"),
    StatusDispatcherPhrase.HEARTBEAT_DROPPED: _component(RecordKind.SLOW_CLIENT, role="server"),
    BrokerPhrase.REGISTERING: _component(RecordKind.AGENT_SUBSCRIBED, role="server"),
    BrokerPhrase.UNREGISTERING: _component(RecordKind.AGENT_UNSUBSCRIBED, role="server"),
    BrokerPhrase.MQTT_SUBSCRIBED: _component(RecordKind.SUBSCRIBED),
    BrokerPhrase.PUBSUB_SUBSCRIBED: _component(RecordKind.SUBSCRIBED),
    BrokerPhrase.GRPC_SUBSCRIBED: _component(RecordKind.SUBSCRIBED),
    BrokerPhrase.DISCONNECTED: _component(RecordKind.DISCONNECTED),
    BrokerPhrase.RECONNECT_FAILED: _component(RecordKind.DISCONNECTED),
    BrokerPhrase.SUBSCRIBE_FAILED: _component(RecordKind.DISCONNECTED),
    BrokerPhrase.RECEIVE_FAILED: _component(RecordKind.DISCONNECTED),
    BrokerPhrase.MQTT_CLIENT_ERROR: _component(RecordKind.DISCONNECTED),
    BrokerPhrase.MQTT_ERROR_MESSAGE: _component(RecordKind.DISCONNECTED),
    BrokerPhrase.RECEIVER_STOPPED: _component(RecordKind.DISCONNECTED),
    BrokerPhrase.CERTIFICATE_ROTATED: _component(RecordKind.DISCONNECTED),
    BrokerPhrase.RECONNECTING: _component(RecordKind.DISCONNECTED, verbosity=2),
    BrokerPhrase.RECONNECTED: _component(RecordKind.RECONNECTED),
    BrokerPhrase.MQTT_CONNECTED: _component(RecordKind.RECONNECTED),
    BrokerPhrase.INVALID_EVENT: _component(RecordKind.FOREIGN_EVENT),
    BrokerPhrase.UNKNOWN_EVENT_TYPE: _component(RecordKind.FOREIGN_EVENT),
    BrokerPhrase.UNSUPPORTED_DATA_TYPE: _component(RecordKind.FOREIGN_EVENT),
    BrokerPhrase.UNSUPPORTED_EVENT_TYPE: _component(RecordKind.FOREIGN_EVENT),
    BrokerPhrase.OTHER_CLUSTER: _component(RecordKind.OTHER_CLUSTER, role="agent", verbosity=4),
    ListenerPhrase.CONNECTION_LOST: _component(RecordKind.LISTENER_LOST, role="server"),
    ListenerPhrase.PING_FAILED: _component(RecordKind.LISTENER_LOST, role="server"),
    ListenerPhrase.STOPPED: _component(RecordKind.LISTENER_LOST, role="server"),
    ListenerPhrase.CONNECTION_CHANGED: _component(RecordKind.LISTENER_LOST, role="server"),
    SpecWriterPhrase.NO_USER_IN_TOKEN: _component(RecordKind.UNAUTHORISED, role="server"),
    SpecWriterPhrase.NO_USER_IN_CERTIFICATE: _component(RecordKind.UNAUTHORISED, role="server"),
    RestPhrase.ACTION: _component(RecordKind.OPERATOR_ACTION, role="server"),
    ResyncPhrase.STATUS_FROM_CONSUMERS: _component(RecordKind.STATUS_RESYNC, role="server"),
    ResyncPhrase.STATUS_FOR_CONSUMER: _component(RecordKind.STATUS_RESYNC, role="server"),
    DatabasePhrase.NO_TRANSACTION: _component(RecordKind.DATABASE, role="server"),
    DatabasePhrase.COMMIT_FAILED: _component(RecordKind.DATABASE, role="server"),
    LifecyclePhrase.GRPC_STARTING: _component(RecordKind.STARTED, role="server"),
    "Observed a panic": _component(RecordKind.PANIC),
    "Serving gRPC for sources": _component(RecordKind.STARTED, role="server"),
    "Serving gRPC for agents": _component(RecordKind.GRPC_BROKER, role="server"),
    LifecyclePhrase.GRPC_BROKER_SETTING_UP: _component(RecordKind.GRPC_BROKER, role="server"),
    LifecyclePhrase.MESSAGE_QUEUE_SETTING_UP: _component(RecordKind.MESSAGE_BROKER, role="server"),
    AgentPhrase.CACHES_SYNCED: _component(RecordKind.STARTED, role="agent"),
    AgentPhrase.WORKER_STARTING: _component(RecordKind.WORKER, role="agent"),
    MembershipPhrase.RING_CHANGED: _component(RecordKind.INSTANCES, role="server", verbosity=4),
    "purge status events on the ready instances": _component(RecordKind.INSTANCES, role="server", verbosity=2),
    AgentPhrase.RECONCILING: _component(RecordKind.PROGRESS, role="agent", verbosity=4),
    AgentPhrase.PATCHING: _component(RecordKind.PROGRESS, role="agent", verbosity=4),
    AgentPhrase.CONTROLLER_STOPPING: _component(RecordKind.STOPPED, role="agent"),
    AgentPhrase.WORKER_STOPPING: _component(RecordKind.STOPPED, role="agent"),
    AgentPhrase.WORKERS_STOPPED: _component(RecordKind.STOPPED, role="agent"),
    AgentPhrase.WATCH_FAILED: _component(RecordKind.API_SERVER_FAILED),
    LifecyclePhrase.EVENT_CONTROLLER_STOPPING: _component(RecordKind.STOPPED, role="server"),
    LifecyclePhrase.STATUS_CONTROLLER_STOPPING: _component(RecordKind.STOPPED, role="server"),
    LifecyclePhrase.MESSAGE_QUEUE_STOPPING: _component(RecordKind.STOPPED, role="server"),
    LifecyclePhrase.HEALTH_STOPPING: _component(RecordKind.STOPPED, role="server"),
    LifecyclePhrase.BROKER_STOPPING: _component(RecordKind.STOPPED, role="server"),
    LifecyclePhrase.STOPPING: _component(RecordKind.STOPPED),
}
UNHANDLED: Final = b"Unhandled Error"
"""Kubernetes' libraries use this message, with the actual error only in `err`."""
STRUCTURED: Final[dict[bytes, Phrase]] = {text.encode(): phrase for text, phrase in _STRUCTURED.items()}
"""By the message between the quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnstructuredPhrase:
    """A message of the older generations, which has its ids inside."""

    phrase: Phrase
    pattern: re.Pattern[bytes]
    """Named groups: resource, op, event, source, consumer, detail, topic, found, want, kind."""


_ID = rb"(?P<resource>[0-9A-Za-z._-]+)"
_OBJECT = rb"Event\(v1\.ObjectReference\{.*?\}\): type: '\w+' reason: '"


def _unstructured(pattern: bytes, phrase: Phrase) -> UnstructuredPhrase:
    return UnstructuredPhrase(phrase=phrase, pattern=re.compile(pattern, re.DOTALL))


UNSTRUCTURED: Final[tuple[UnstructuredPhrase, ...]] = (
    _unstructured(
        rb"receive the event (?:from client|with grpc server),",
        _server(RecordKind.REQUEST_RECEIVED, carries_event=True),
    ),
    _unstructured(rb"Received (?:event|data) from channel \[events\] : (?P<event>\S+)", _server(RecordKind.NOTIFIED)),
    _unstructured(
        rb"Publishing resource " + _ID + rb" for db row insert", _server(RecordKind.PUBLISHING, action="create")
    ),
    _unstructured(
        rb"Publishing resource " + _ID + rb" for db row update", _server(RecordKind.PUBLISHING, action="update")
    ),
    _unstructured(
        rb"Publishing resource " + _ID + rb" for db row delete", _server(RecordKind.PUBLISHING, action="delete")
    ),
    _unstructured(
        rb"Failed to publish resource (?P<resource>[0-9A-Za-z._-]+):? ?(?P<detail>.*)",
        Phrase(kind=RecordKind.PUBLISH_FAILED),
    ),
    _unstructured(
        rb"Failed to handle the event (?P<event>[^\s:,]+)[:,]? ?(?P<detail>.*)", _server(RecordKind.PUBLISH_FAILED)
    ),
    _unstructured(
        rb"delete resource " + _ID + rb" as it is not created on the agent yet",
        _server(RecordKind.HARD_DELETED, action="delete"),
    ),
    _unstructured(
        rb"skipping to publish (?P<kind>create|update|delete) request for resource " + _ID,
        _server(RecordKind.PUBLISH_SKIPPED),
    ),
    _unstructured(rb"Sending event: ", Phrase(kind=RecordKind.SENDING_SPEC, carries_event=True, verbosity=4)),
    _unstructured(rb"Received event: ", Phrase(kind=RecordKind.RECEIVED_SPEC, carries_event=True, verbosity=4)),
    _unstructured(
        rb"Receive the event (?P<kind>ADDED|MODIFIED|DELETED) for " + _ID, _agent(RecordKind.STORED, verbosity=4)
    ),
    _unstructured(_OBJECT + rb"Server Side Applied (?P<detail>[^']*)'.*?, err <nil>", _agent(RecordKind.APPLIED)),
    _unstructured(_OBJECT + rb"Server Side Applied [^']*'.*?, err (?P<detail>.*)", _agent(RecordKind.APPLY_FAILED)),
    _unstructured(_OBJECT + rb"(?P<detail>[^']*(?: ?Created| ?Updated| noop))'", _agent(RecordKind.APPLIED)),
    _unstructured(_OBJECT + rb"[^']*(?:Create|Update)Failed' (?P<detail>.*)", _agent(RecordKind.APPLY_FAILED)),
    _unstructured(
        _OBJECT
        + rb"ResourceDeleted' Deleted resource (?P<detail>.*? with key \S+) because manifestwork "
        + _ID
        + rb" is terminating",
        _agent(RecordKind.DELETING),
    ),
    _unstructured(rb"Resource (?P<detail>.*? with key \S+) is removed Successfully", _agent(RecordKind.REMOVED)),
    _unstructured(
        rb'"?ManifestWorkController"? controller failed to sync "' + _ID + rb'", err: (?P<detail>.*)',
        _agent(RecordKind.APPLY_FAILED),
    ),
    _unstructured(rb"Reconcile work " + _ID + rb" fails with err: (?P<detail>.*)", _agent(RecordKind.APPLY_FAILED)),
    _unstructured(rb"received action STATUSMODIFIED for resource " + _ID, _server(RecordKind.STATUS_UPDATE_RECEIVED)),
    _unstructured(rb"skipping resource status update " + _ID + rb" as it is not owned", _server(RecordKind.NOT_OWNED)),
    _unstructured(rb"skipping resource " + _ID + rb" as it is not found", _server(RecordKind.STATUS_NOT_FOUND)),
    _unstructured(
        rb"handle resource status update " + _ID + rb" by the current instance", _server(RecordKind.HANDLING)
    ),
    _unstructured(rb"Updating resource status, id=" + _ID, _server(RecordKind.UPDATING)),
    _unstructured(
        rb"Updating status for stale resource; disregard it: id="
        + _ID
        + rb", foundVersion=(?P<found>\d+), wantedVersion=(?P<want>\d+)",
        _server(RecordKind.STALE),
    ),
    _unstructured(rb"resource " + _ID + rb" status update event was sent", _server(RecordKind.UPDATE_SENT)),
    _unstructured(rb"resource " + _ID + rb" status delete event was sent", _server(RecordKind.DELETE_SENT)),
    _unstructured(
        rb"failed to handle resource status update " + _ID + rb": (?P<detail>.*)", _server(RecordKind.STATUS_FAILED)
    ),
    _unstructured(
        rb"failed to handle status event.*?failed to handle resource status update " + _ID + rb": (?P<detail>.*)",
        _server(RecordKind.STATUS_FAILED),
    ),
    _unstructured(
        rb"failed to handle resource (?!status update)(?P<resource>[^\s:,]+)[:,]? ?(?P<detail>.*)",
        _server(RecordKind.STATUS_DISPATCH_FAILED),
    ),
    _unstructured(
        rb"Broadcast the resource status,? (?:id=)?"
        + _ID
        + rb"(?:, source=(?P<source>[^,\s]*))?(?:, statusEventType=(?P<kind>\w+))?",
        _server(RecordKind.BROADCAST),
    ),
    _unstructured(rb"send the event to status subscribers,", _server(RecordKind.SENT_TO_CLIENTS, carries_event=True)),
    _unstructured(rb"no clients registered on this instance", _server(RecordKind.NO_CLIENTS)),
    _unstructured(
        rb"registered a broadcaster client (?P<event>\S+) \(source=(?P<source>[^)]*)\)",
        _component(RecordKind.CLIENT_SUBSCRIBED, role="server"),
    ),
    _unstructured(
        rb"unregistered broadcaster client (?P<event>\S+)", _component(RecordKind.CLIENT_UNSUBSCRIBED, role="server")
    ),
    _unstructured(rb"recreate the listener (?P<detail>.*)", _component(RecordKind.LISTENER_LOST, role="server")),
    _unstructured(
        rb"Context cancelled, stopping channel (?P<detail>.*)", _component(RecordKind.LISTENER_LOST, role="server")
    ),
    _unstructured(rb"failed to receive cloudevents(?P<detail>.*)", _component(RecordKind.DISCONNECTED)),
    _unstructured(
        rb"failed to send (?:event|heartbeat)(?P<detail>.*)", _component(RecordKind.STREAM_BROKEN, role="server")
    ),
    _unstructured(rb"subscribing to topics: (?P<detail>.*)", _component(RecordKind.SUBSCRIBED)),
    _unstructured(rb"Client-side throttling delay(?P<detail>.*)", _component(RecordKind.THROTTLED)),
    _unstructured(rb"Git Commit: ", _component(RecordKind.STARTED)),
    _unstructured(rb"maestro-agent version ", _component(RecordKind.STARTED, role="agent")),
    _unstructured(rb"Received SIGTERM or SIGINT signal, shutting down", _component(RecordKind.STOPPED)),
    _unstructured(rb"Observed a panic: (?P<detail>[^\n]*)", _component(RecordKind.PANIC)),
    _unstructured(rb"Failed to watch (?P<detail>.*)", _component(RecordKind.API_SERVER_FAILED)),
    _unstructured(rb"failed to list (?P<detail>.*)", _component(RecordKind.API_SERVER_FAILED)),
    _unstructured(
        rb"error retrieving resource lock (?P<detail>.*)", _component(RecordKind.API_SERVER_FAILED, role="agent")
    ),
)

_PREFIX_LENGTH = 8
BY_PREFIX: Final[dict[bytes, tuple[UnstructuredPhrase, ...]]] = {}
"""Unstructured messages by their first characters, so that a line is matched against a few of them only."""


def _index() -> None:
    leads = re.compile(rb"[A-Za-z][A-Za-z -]*")
    for unstructured in UNSTRUCTURED:
        text = unstructured.pattern.pattern.replace(rb'"?', b"").replace(b"\\", b"")
        match = leads.match(text)
        assert match
        lead = match.group()[:_PREFIX_LENGTH].removesuffix(b"(")
        BY_PREFIX[lead] = (*BY_PREFIX.get(lead, ()), unstructured)


_index()
PREFIX_LENGTHS: Final = tuple(sorted({len(lead) for lead in BY_PREFIX}, reverse=True))


def match_unstructured(text: bytes) -> tuple[UnstructuredPhrase, re.Match[bytes]] | None:
    """Return the unstructured message that `text` starts with, and its match."""
    text = text.removeprefix(b'"')
    for length in PREFIX_LENGTHS:
        for unstructured in BY_PREFIX.get(text[:length], ()):
            match = unstructured.pattern.match(text)
            if match:
                return unstructured, match
    return None
