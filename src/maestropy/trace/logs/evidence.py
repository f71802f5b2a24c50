"""The evidence table: which kind of log record shows that which stage of a request was done, or failed. Data only.

Readers, matching, the judge, the fast judgement of complete requests and the stage counts all use this table.
"""

from enum import Enum, IntEnum
from typing import Final, NamedTuple

from maestropy.trace.stages import Stage


class RecordKind(IntEnum):
    """The kinds of log records; `EVIDENCE` says what those about a request show."""

    REQUEST_RECEIVED = 1
    REQUEST_REJECTED = 2
    NO_OP = 3
    NOTIFIED = 4
    PUBLISHING = 5
    SENDING_SPEC = 6
    SENT_TO_AGENTS = 7
    PUBLISH_FAILED = 8
    PUBLISH_SKIPPED = 9
    OTHER_INSTANCE = 10
    HARD_DELETED = 11
    RECEIVED_SPEC = 12
    STORED = 13
    APPLIED = 14
    REMOVED = 15
    APPLY_FAILED = 16
    DECODE_FAILED = 17
    PENDING_DELETION = 18
    SENDING_STATUS = 19
    RECEIVED_STATUS = 20
    STATUS_UPDATE_RECEIVED = 21
    NOT_OWNED = 22
    HANDLING = 23
    UPDATING = 24
    UPDATE_SENT = 25
    DELETE_SENT = 26
    STALE = 27
    UNCHANGED = 28
    STATUS_FAILED = 29
    STATUS_NOT_FOUND = 30
    BROADCAST = 31
    SENT_TO_CLIENTS = 32
    NO_CLIENTS = 33
    STATUS_DISPATCH_FAILED = 34
    REPUBLISHED = 35
    STATUS_REJECTED = 36
    DELETING = 37
    CONTROLLER_FAILED = 38
    NO_AGENT_HERE = 39
    # About a component, not about one resource.
    STARTED = 50
    GRPC_BROKER = 51
    MESSAGE_BROKER = 52
    CLIENT_SUBSCRIBED = 53
    CLIENT_UNSUBSCRIBED = 54
    AGENT_SUBSCRIBED = 55
    AGENT_UNSUBSCRIBED = 56
    SUBSCRIBED = 57
    DISCONNECTED = 58
    RECONNECTED = 59
    LISTENER_LOST = 60
    STREAM_BROKEN = 61
    SLOW_CLIENT = 62
    FOREIGN_EVENT = 63
    UNAUTHORISED = 64
    STATUS_RESYNC = 65
    DATABASE = 66
    THROTTLED = 67
    WORKER = 68
    OTHER_CLUSTER = 69
    STOPPED = 70
    API_SERVER_FAILED = 71
    PROGRESS = 72
    INSTANCES = 73
    PANIC = 74
    OPERATOR_ACTION = 75
    OTHER = 99

    # Millions of records are looked up by their kind; the number is a sufficient hash.
    __hash__ = int.__hash__


class Shows(Enum):
    """What a record shows of its stage."""

    DONE = "done"
    FAILED = "failed"
    CONTEXT = "context"
    """It belongs to the stage, and proves neither."""


class Evidence(NamedTuple):
    """The stage of a record kind, and what the record shows of it."""

    stage: Stage
    shows: Shows
    words: str
    """What reports call such a record: mostly its phrase."""
    is_of_create: bool = True
    """Whether a create that succeeds at once may have it."""


def _done(stage: Stage, words: str, *, is_of_create: bool = True) -> Evidence:
    return Evidence(stage, Shows.DONE, words, is_of_create)


def _failed(stage: Stage, words: str) -> Evidence:
    return Evidence(stage, Shows.FAILED, words, is_of_create=False)


def _context(stage: Stage, words: str, *, is_of_create: bool = False) -> Evidence:
    return Evidence(stage, Shows.CONTEXT, words, is_of_create)


EVIDENCE: Final[dict[RecordKind, Evidence]] = {
    RecordKind.REQUEST_RECEIVED: _done(Stage.SERVER_RECEIVES, "receive the event from client"),
    RecordKind.REQUEST_REJECTED: _context(Stage.SERVER_PUBLISHES, "request rejected"),
    RecordKind.NO_OP: _context(Stage.SERVER_PUBLISHES, "request changes nothing"),
    RecordKind.NOTIFIED: _context(Stage.SERVER_PUBLISHES, "notified by the database", is_of_create=True),
    RecordKind.PUBLISHING: _done(Stage.SERVER_PUBLISHES, "Publishing resource"),
    RecordKind.SENDING_SPEC: _done(Stage.SERVER_PUBLISHES, "Sending event (spec)"),
    RecordKind.SENT_TO_AGENTS: _done(Stage.SERVER_PUBLISHES, "sending the event to spec subscribers"),
    RecordKind.PUBLISH_FAILED: _failed(Stage.SERVER_PUBLISHES, "Failed to publish"),
    RecordKind.PUBLISH_SKIPPED: _context(Stage.SERVER_PUBLISHES, "skipping to publish"),
    RecordKind.OTHER_INSTANCE: _context(Stage.SERVER_PUBLISHES, "processed by another worker", is_of_create=True),
    RecordKind.NO_AGENT_HERE: _context(
        Stage.SERVER_PUBLISHES, "no agent of the consumer on this instance", is_of_create=True
    ),
    RecordKind.HARD_DELETED: _failed(Stage.SERVER_PUBLISHES, "deleted as it is not created on the agent yet"),
    RecordKind.REPUBLISHED: _context(Stage.SERVER_PUBLISHES, "Re-published undelivered resource"),
    RecordKind.RECEIVED_SPEC: _done(Stage.AGENT_RECEIVES, "Received event (spec)"),
    RecordKind.STORED: _done(Stage.AGENT_RECEIVES, "Receive the event"),
    RecordKind.APPLIED: _done(Stage.AGENT_HANDLES, "applied"),
    RecordKind.DELETING: _done(Stage.AGENT_HANDLES, "deletion requested", is_of_create=False),
    RecordKind.REMOVED: _done(Stage.AGENT_HANDLES, "removed", is_of_create=False),
    RecordKind.APPLY_FAILED: _failed(Stage.AGENT_HANDLES, "failed to apply"),
    RecordKind.DECODE_FAILED: _failed(Stage.AGENT_HANDLES, "failed to decode spec"),
    RecordKind.CONTROLLER_FAILED: _context(Stage.AGENT_HANDLES, "a controller that applies nothing failed"),
    RecordKind.PENDING_DELETION: _context(Stage.AGENT_HANDLES, "resources pending deletions"),
    RecordKind.SENDING_STATUS: _done(Stage.AGENT_PUBLISHES_STATUS, "Sending event (status)"),
    RecordKind.STATUS_REJECTED: _failed(Stage.AGENT_PUBLISHES_STATUS, "status was not taken"),
    RecordKind.RECEIVED_STATUS: _done(Stage.SERVER_RECEIVES_STATUS, "Received event (status)"),
    RecordKind.STATUS_UPDATE_RECEIVED: _done(Stage.SERVER_RECEIVES_STATUS, "received status update for resource"),
    RecordKind.NOT_OWNED: _context(
        Stage.SERVER_RECEIVES_STATUS, "skipping, not owned by the current instance", is_of_create=True
    ),
    RecordKind.HANDLING: _context(Stage.SERVER_HANDLES_STATUS, "handle resource status update", is_of_create=True),
    RecordKind.UPDATING: _done(Stage.SERVER_HANDLES_STATUS, "Updating resource status"),
    RecordKind.UPDATE_SENT: _done(Stage.SERVER_HANDLES_STATUS, "resource status update event was sent"),
    RecordKind.DELETE_SENT: _done(
        Stage.SERVER_HANDLES_STATUS, "resource status delete event was sent", is_of_create=False
    ),
    RecordKind.STALE: _context(Stage.SERVER_HANDLES_STATUS, "stale status; disregard it"),
    RecordKind.UNCHANGED: _done(Stage.SERVER_HANDLES_STATUS, "status update changes nothing", is_of_create=False),
    RecordKind.STATUS_FAILED: _failed(Stage.SERVER_HANDLES_STATUS, "failed to handle status event"),
    RecordKind.STATUS_NOT_FOUND: _context(Stage.SERVER_HANDLES_STATUS, "skipping resource as it is not found"),
    RecordKind.BROADCAST: _done(Stage.SERVER_BROADCASTS_STATUS, "Broadcast the resource status"),
    RecordKind.SENT_TO_CLIENTS: _done(Stage.SERVER_SENDS_STATUS, "send the event to status subscribers"),
    RecordKind.NO_CLIENTS: _context(
        Stage.SERVER_SENDS_STATUS, "no clients registered on this instance", is_of_create=True
    ),
    RecordKind.STATUS_DISPATCH_FAILED: _failed(Stage.SERVER_SENDS_STATUS, "failed to handle resource"),
}
STAGE_OF: Final[dict[RecordKind, int]] = {kind: int(evidence.stage) for kind, evidence in EVIDENCE.items()}


NAMED_BY_ID: Final = (
    RecordKind.REQUEST_RECEIVED, RecordKind.PUBLISHING, RecordKind.SENDING_SPEC, RecordKind.SENT_TO_AGENTS,
    RecordKind.RECEIVED_SPEC,
)  # fmt: skip
"""The kinds of records that always name the resource ID; others of old agents may have the work's name in its place."""


def kinds(stage: int, shows: Shows) -> frozenset[RecordKind]:
    """Return the kinds of records that show this of a stage."""
    return frozenset(kind for kind, evidence in EVIDENCE.items() if evidence.stage == stage and evidence.shows is shows)


DONE: Final = {int(stage): kinds(stage, Shows.DONE) for stage in Stage}
"""The kinds of records that prove each stage."""
FAILED: Final = {int(stage): kinds(stage, Shows.FAILED) for stage in Stage}
"""The kinds of records that show an error of each stage."""
