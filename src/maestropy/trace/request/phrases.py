"""The catalogue: which phrase of which generation says what.

Today's phrases are the journal's own constants, shared with the servers and agents that write them. Older generations
wrote sentences with the ids inside; their table is here. A new phrase is one entry. Nothing here reads a line.
"""

import re
from dataclasses import dataclass
from typing import Final

from maestropy.journal.fields import Absorb, Accept, Agent, Broker, Database, Deliver, Fanout, Life, Listen, Resync
from maestropy.journal.fields import Sweep as SweepPhrase
from maestropy.trace.request.hits import What


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """What a record with this message says."""

    what: What
    carries_event: bool = False
    """The record describes a CloudEvent, by its attributes or whole; its type decides between spec and status."""
    action: str = ""
    verbosity: int = 0
    is_about_all: bool = False
    """It concerns the component, not one resource."""
    role: str = ""
    """server or agent, where only one of them writes it."""
    prefix: str = ""
    """What to say before the error, where the message tells more than the error."""


def _server(what: What, *, verbosity: int = 0, action: str = "", carries_event: bool = False) -> Phrase:
    return Phrase(what=what, role="server", verbosity=verbosity, action=action, carries_event=carries_event)


def _agent(what: What, *, verbosity: int = 0, action: str = "") -> Phrase:
    return Phrase(what=what, role="agent", verbosity=verbosity, action=action)


def _component(what: What, *, role: str = "", verbosity: int = 0) -> Phrase:
    return Phrase(what=what, role=role, is_about_all=True, verbosity=verbosity)


_STRUCTURED: Final[dict[str, Phrase]] = {
    Accept.RECEIVED: _server(What.WISH, carries_event=True),
    "request refused": _server(What.REFUSED),
    "request failed": _server(What.REFUSED),
    "request changes nothing": _server(What.NO_OP, verbosity=2),
    Listen.RECEIVED: _server(What.NOTIFIED, verbosity=4),
    Deliver.INSERTED: _server(What.PUBLISHING, action="create"),
    Deliver.UPDATED: _server(What.PUBLISHING, action="update"),
    Deliver.DELETED: _server(What.PUBLISHING, action="delete"),
    Deliver.SENDING: Phrase(what=What.SENDING_SPEC, carries_event=True, verbosity=2),
    Deliver.TO_SPEC_SUBSCRIBERS: _server(What.TO_AGENTS, carries_event=True, verbosity=4),
    Deliver.PUBLISH_FAILED: Phrase(what=What.PUBLISH_FAILED),
    Deliver.HANDLE_FAILED: _server(What.PUBLISH_FAILED),
    Deliver.BY_ANOTHER_WORKER: _server(What.OTHER_INSTANCE),
    Deliver.NOT_BY_THIS_INSTANCE: _server(What.OTHER_INSTANCE),
    Deliver.CREATE_NOT_FOUND: _server(What.PUBLISH_SKIPPED, action="create"),
    Deliver.UPDATE_NOT_FOUND: _server(What.PUBLISH_SKIPPED, action="update"),
    Deliver.DELETE_NOT_FOUND: _server(What.PUBLISH_SKIPPED, action="delete"),
    Deliver.CREATE_OF_DELETING: _server(What.PUBLISH_SKIPPED, action="create"),
    Deliver.UPDATE_OF_DELETING: _server(What.PUBLISH_SKIPPED, action="update"),
    Deliver.RESOURCE_GONE: _server(What.PUBLISH_SKIPPED),
    "delete resource as it is not created on the agent yet": _server(What.HARD_DELETED, action="delete"),
    SweepPhrase.REPUBLISHED: _server(What.REPUBLISHED),
    Agent.RECEIVED: Phrase(what=What.RECEIVED_SPEC, carries_event=True, verbosity=2),
    Agent.APPLIED: _agent(What.APPLIED),
    Agent.CREATED: _agent(What.APPLIED),
    Agent.UPDATED: _agent(What.APPLIED),
    Agent.READ_ONLY: _agent(What.APPLIED),
    Agent.DELETED: _agent(What.DELETING),
    Agent.REMOVED: _agent(What.REMOVED),
    Agent.PENDING_DELETION: _agent(What.PENDING_DELETION, verbosity=4),
    Agent.SYNC_FAILED: _agent(What.APPLY_FAILED),
    Agent.APPLY_FAILED: _agent(What.APPLY_FAILED),
    Agent.APPLY_RESOURCE_FAILED: _agent(What.APPLY_FAILED),
    Agent.NOT_ALLOWED: Phrase(what=What.APPLY_FAILED, role="agent", prefix=Agent.NOT_ALLOWED),
    Agent.DECODE_FAILED: _agent(What.DECODE_FAILED),
    Agent.HANDLE_FAILED: _agent(What.DECODE_FAILED),
    Agent.DELETE_WORK_FAILED: _agent(What.STATUS_REFUSED),
    "the server refused a status": _agent(What.STATUS_REFUSED),
    Absorb.RECEIVED_BY_BROKER: _server(What.RECEIVED_STATUS, carries_event=True, verbosity=4),
    Absorb.STATUS_RECEIVED: _server(What.STATUS_TAKEN),
    "received action for resource": _server(What.STATUS_TAKEN),
    Absorb.NOT_OWNED: _server(What.NOT_OWNED),
    Absorb.HANDLING: _server(What.HANDLING),
    Absorb.UPDATING: _server(What.UPDATING, carries_event=True),
    Absorb.STALE: _server(What.STALE),
    "status update changes nothing": _server(What.UNCHANGED),
    Absorb.UPDATE_SENT: _server(What.UPDATE_SENT),
    Absorb.DELETE_SENT: _server(What.DELETE_SENT),
    Absorb.RESOURCE_NOT_FOUND: _server(What.STATUS_NOT_FOUND),
    Absorb.HANDLE_FAILED: _server(What.STATUS_FAILED),
    Absorb.DECODE_FAILED: _server(What.STATUS_FAILED),
    Fanout.BROADCAST: _server(What.BROADCAST),
    Fanout.TO_STATUS_SUBSCRIBERS: _server(What.TO_CLIENTS, carries_event=True),
    Fanout.NO_CLIENTS: _server(What.NO_CLIENTS),
    Fanout.HANDLE_RESOURCE_FAILED: _server(What.FANOUT_FAILED),
    Fanout.REGISTERED: _component(What.CLIENT_ON, role="server"),
    Fanout.UNREGISTERED: _component(What.CLIENT_OFF, role="server"),
    Fanout.SEND_FAILED: _component(What.STREAM_BROKEN, role="server"),
    Fanout.SEND_FAILED_UNREGISTER: _component(What.STREAM_BROKEN, role="server"),
    Fanout.HEARTBEAT_FAILED: _component(What.STREAM_BROKEN, role="server"),
    Fanout.HEARTBEAT_DROPPED: _component(What.SLOW_CLIENT, role="server"),
    Broker.REGISTERING: _component(What.AGENT_ON, role="server"),
    Broker.UNREGISTERING: _component(What.AGENT_OFF, role="server"),
    Broker.MQTT_SUBSCRIBED: _component(What.SUBSCRIBED),
    Broker.GRPC_SUBSCRIBED: _component(What.SUBSCRIBED),
    Broker.DISCONNECTED: _component(What.DISCONNECTED),
    Broker.RECONNECT_FAILED: _component(What.DISCONNECTED),
    Broker.SUBSCRIBE_FAILED: _component(What.DISCONNECTED),
    Broker.RECEIVE_FAILED: _component(What.DISCONNECTED),
    Broker.MQTT_CLIENT_ERROR: _component(What.DISCONNECTED),
    Broker.MQTT_ERROR_MESSAGE: _component(What.DISCONNECTED),
    Broker.RECEIVER_STOPPED: _component(What.DISCONNECTED),
    Broker.CERTIFICATE_ROTATED: _component(What.DISCONNECTED),
    Broker.RECONNECTING: _component(What.DISCONNECTED, verbosity=2),
    Broker.RECONNECTED: _component(What.RECONNECTED),
    Broker.MQTT_CONNECTED: _component(What.RECONNECTED),
    Broker.INVALID_EVENT: _component(What.FOREIGN_EVENT),
    Broker.UNKNOWN_EVENT_TYPE: _component(What.FOREIGN_EVENT),
    Broker.UNSUPPORTED_DATA_TYPE: _component(What.FOREIGN_EVENT),
    Broker.UNSUPPORTED_EVENT_TYPE: _component(What.FOREIGN_EVENT),
    Broker.OTHER_CLUSTER: _component(What.OTHER_CLUSTER, role="agent", verbosity=4),
    Listen.CONNECTION_LOST: _component(What.LISTENER_LOST, role="server"),
    Listen.PING_FAILED: _component(What.LISTENER_LOST, role="server"),
    Listen.STOPPED: _component(What.LISTENER_LOST, role="server"),
    Listen.CONNECTION_CHANGED: _component(What.LISTENER_LOST, role="server"),
    Accept.NO_USER_IN_TOKEN: _component(What.UNAUTHORISED, role="server"),
    Accept.NO_USER_IN_CERTIFICATE: _component(What.UNAUTHORISED, role="server"),
    Resync.STATUS_FROM_CONSUMERS: _component(What.STATUS_RESYNC, role="server"),
    Resync.STATUS_FOR_CONSUMER: _component(What.STATUS_RESYNC, role="server"),
    Database.NO_TRANSACTION: _component(What.DATABASE, role="server"),
    Database.COMMIT_FAILED: _component(What.DATABASE, role="server"),
    Life.GRPC_STARTING: _component(What.STARTED, role="server"),
    "Serving gRPC for sources": _component(What.STARTED, role="server"),
    "Serving gRPC for agents": _component(What.GRPC_BROKER, role="server"),
    Life.GRPC_BROKER_SETTING_UP: _component(What.GRPC_BROKER, role="server"),
    Life.MESSAGE_QUEUE_SETTING_UP: _component(What.MESSAGE_BROKER, role="server"),
    Agent.CACHES_SYNCED: _component(What.STARTED, role="agent"),
    Agent.WORKER_STARTING: _component(What.WORKER, role="agent"),
}
UNHANDLED: Final = b"Unhandled Error"
"""Kubernetes' own libraries say so, and what happened only in `err`."""
STRUCTURED: Final[dict[bytes, Phrase]] = {text.encode(): phrase for text, phrase in _STRUCTURED.items()}
"""By the message between the quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A message of the older generations, which has its ids inside."""

    phrase: Phrase
    pattern: re.Pattern[bytes]
    """Named groups: resource, op, event, source, consumer, detail, topic, found, want, kind."""


_ID = rb"(?P<resource>[0-9A-Za-z._-]+)"
_OBJECT = rb"Event\(v1\.ObjectReference\{.*?\}\): type: '\w+' reason: '"


def _sentence(pattern: bytes, phrase: Phrase) -> Sentence:
    return Sentence(phrase=phrase, pattern=re.compile(pattern, re.DOTALL))


SENTENCES: Final[tuple[Sentence, ...]] = (
    _sentence(rb"receive the event (?:from client|with grpc server),", _server(What.WISH, carries_event=True)),
    _sentence(rb"Received (?:event|data) from channel \[events\] : (?P<event>\S+)", _server(What.NOTIFIED)),
    _sentence(rb"Publishing resource " + _ID + rb" for db row insert", _server(What.PUBLISHING, action="create")),
    _sentence(rb"Publishing resource " + _ID + rb" for db row update", _server(What.PUBLISHING, action="update")),
    _sentence(rb"Publishing resource " + _ID + rb" for db row delete", _server(What.PUBLISHING, action="delete")),
    _sentence(
        rb"Failed to publish resource (?P<resource>[0-9A-Za-z._-]+):? ?(?P<detail>.*)", Phrase(what=What.PUBLISH_FAILED)
    ),
    _sentence(rb"Failed to handle the event (?P<event>[^\s:,]+)[:,]? ?(?P<detail>.*)", _server(What.PUBLISH_FAILED)),
    _sentence(
        rb"delete resource " + _ID + rb" as it is not created on the agent yet",
        _server(What.HARD_DELETED, action="delete"),
    ),
    _sentence(
        rb"skipping to publish (?P<kind>create|update|delete) request for resource " + _ID,
        _server(What.PUBLISH_SKIPPED),
    ),
    _sentence(rb"Sending event: ", Phrase(what=What.SENDING_SPEC, carries_event=True, verbosity=4)),
    _sentence(rb"Received event: ", Phrase(what=What.RECEIVED_SPEC, carries_event=True, verbosity=4)),
    _sentence(rb"Receive the event (?P<kind>ADDED|MODIFIED|DELETED) for " + _ID, _agent(What.STORED, verbosity=4)),
    _sentence(_OBJECT + rb"Server Side Applied (?P<detail>[^']*)'.*?, err <nil>", _agent(What.APPLIED)),
    _sentence(_OBJECT + rb"Server Side Applied [^']*'.*?, err (?P<detail>.*)", _agent(What.APPLY_FAILED)),
    _sentence(_OBJECT + rb"(?P<detail>[^']*(?: ?Created| ?Updated| noop))'", _agent(What.APPLIED)),
    _sentence(_OBJECT + rb"[^']*(?:Create|Update)Failed' (?P<detail>.*)", _agent(What.APPLY_FAILED)),
    _sentence(
        _OBJECT
        + rb"ResourceDeleted' Deleted resource (?P<detail>.*? with key \S+) because manifestwork "
        + _ID
        + rb" is terminating",
        _agent(What.DELETING),
    ),
    _sentence(rb"Resource (?P<detail>.*? with key \S+) is removed Successfully", _agent(What.REMOVED)),
    _sentence(
        rb'"?ManifestWorkController"? controller failed to sync "' + _ID + rb'", err: (?P<detail>.*)',
        _agent(What.APPLY_FAILED),
    ),
    _sentence(rb"Reconcile work " + _ID + rb" fails with err: (?P<detail>.*)", _agent(What.APPLY_FAILED)),
    _sentence(rb"received action STATUSMODIFIED for resource " + _ID, _server(What.STATUS_TAKEN)),
    _sentence(rb"skipping resource status update " + _ID + rb" as it is not owned", _server(What.NOT_OWNED)),
    _sentence(rb"skipping resource " + _ID + rb" as it is not found", _server(What.STATUS_NOT_FOUND)),
    _sentence(rb"handle resource status update " + _ID + rb" by the current instance", _server(What.HANDLING)),
    _sentence(rb"Updating resource status, id=" + _ID, _server(What.UPDATING)),
    _sentence(
        rb"Updating status for stale resource; disregard it: id="
        + _ID
        + rb", foundVersion=(?P<found>\d+), wantedVersion=(?P<want>\d+)",
        _server(What.STALE),
    ),
    _sentence(rb"resource " + _ID + rb" status update event was sent", _server(What.UPDATE_SENT)),
    _sentence(rb"resource " + _ID + rb" status delete event was sent", _server(What.DELETE_SENT)),
    _sentence(rb"failed to handle resource status update " + _ID + rb": (?P<detail>.*)", _server(What.STATUS_FAILED)),
    _sentence(
        rb"failed to handle status event.*?failed to handle resource status update " + _ID + rb": (?P<detail>.*)",
        _server(What.STATUS_FAILED),
    ),
    _sentence(
        rb"failed to handle resource (?!status update)(?P<resource>[^\s:,]+)[:,]? ?(?P<detail>.*)",
        _server(What.FANOUT_FAILED),
    ),
    _sentence(
        rb"Broadcast the resource status,? (?:id=)?"
        + _ID
        + rb"(?:, source=(?P<source>[^,\s]*))?(?:, statusEventType=(?P<kind>\w+))?",
        _server(What.BROADCAST),
    ),
    _sentence(rb"send the event to status subscribers,", _server(What.TO_CLIENTS, carries_event=True)),
    _sentence(rb"no clients registered on this instance", _server(What.NO_CLIENTS)),
    _sentence(
        rb"registered a broadcaster client (?P<event>\S+) \(source=(?P<source>[^)]*)\)",
        _component(What.CLIENT_ON, role="server"),
    ),
    _sentence(rb"unregistered broadcaster client (?P<event>\S+)", _component(What.CLIENT_OFF, role="server")),
    _sentence(rb"recreate the listener (?P<detail>.*)", _component(What.LISTENER_LOST, role="server")),
    _sentence(rb"Context cancelled, stopping channel (?P<detail>.*)", _component(What.LISTENER_LOST, role="server")),
    _sentence(rb"failed to receive cloudevents(?P<detail>.*)", _component(What.DISCONNECTED)),
    _sentence(rb"failed to send (?:event|heartbeat)(?P<detail>.*)", _component(What.STREAM_BROKEN, role="server")),
    _sentence(rb"subscribing to topics: (?P<detail>.*)", _component(What.SUBSCRIBED)),
    _sentence(rb"Client-side throttling delay(?P<detail>.*)", _component(What.THROTTLED)),
    _sentence(rb"Git Commit: ", _component(What.STARTED)),
)

_LEAD = 8
BY_LEAD: Final[dict[bytes, tuple[Sentence, ...]]] = {}
"""Sentences by their first letters, so that a line is tried against a few of them only."""


def _index() -> None:
    leads = re.compile(rb"[A-Za-z][A-Za-z -]*")
    for sentence in SENTENCES:
        text = sentence.pattern.pattern.replace(rb'"?', b"").replace(b"\\", b"")
        found = leads.match(text)
        assert found
        lead = found.group()[:_LEAD].removesuffix(b"(")
        BY_LEAD[lead] = (*BY_LEAD.get(lead, ()), sentence)


_index()
LEAD_LENGTHS: Final = tuple(sorted({len(lead) for lead in BY_LEAD}, reverse=True))


def sentence_of(text: bytes) -> tuple[Sentence, re.Match[bytes]] | None:
    """Return the sentence that `text` begins with, and its parts."""
    text = text.removeprefix(b'"')
    for length in LEAD_LENGTHS:
        for sentence in BY_LEAD.get(text[:length], ()):
            found = sentence.pattern.match(text)
            if found:
                return sentence, found
    return None
