"""Format log records, times and durations for people. Pure."""

from datetime import UTC, datetime, timedelta

from maestropy.trace.logs.log_records import LogRecord, RecordKind
from maestropy.trace.output import printable

_WORDS = {
    RecordKind.REQUEST_RECEIVED: "receive the event from client",
    RecordKind.REQUEST_REJECTED: "request rejected",
    RecordKind.NO_OP: "request changes nothing",
    RecordKind.NOTIFIED: "notified by the database",
    RecordKind.PUBLISHING: "Publishing resource",
    RecordKind.SENDING_SPEC: "Sending event (spec)",
    RecordKind.SENT_TO_AGENTS: "sending the event to spec subscribers",
    RecordKind.PUBLISH_FAILED: "Failed to publish",
    RecordKind.PUBLISH_SKIPPED: "skipping to publish",
    RecordKind.OTHER_INSTANCE: "processed by another worker",
    RecordKind.NO_AGENT_HERE: "no agent of the consumer on this instance",
    RecordKind.HARD_DELETED: "deleted as it is not created on the agent yet",
    RecordKind.RECEIVED_SPEC: "Received event (spec)",
    RecordKind.STORED: "Receive the event",
    RecordKind.APPLIED: "applied",
    RecordKind.DELETING: "deletion requested",
    RecordKind.REMOVED: "removed",
    RecordKind.APPLY_FAILED: "failed to apply",
    RecordKind.CONTROLLER_FAILED: "a controller that applies nothing failed",
    RecordKind.DECODE_FAILED: "failed to decode spec",
    RecordKind.PENDING_DELETION: "resources pending deletions",
    RecordKind.SENDING_STATUS: "Sending event (status)",
    RecordKind.RECEIVED_STATUS: "Received event (status)",
    RecordKind.STATUS_UPDATE_RECEIVED: "received status update for resource",
    RecordKind.NOT_OWNED: "skipping, not owned by the current instance",
    RecordKind.HANDLING: "handle resource status update",
    RecordKind.UPDATING: "Updating resource status",
    RecordKind.UPDATE_SENT: "resource status update event was sent",
    RecordKind.DELETE_SENT: "resource status delete event was sent",
    RecordKind.STALE: "stale status; disregard it",
    RecordKind.UNCHANGED: "status update changes nothing",
    RecordKind.STATUS_FAILED: "failed to handle status event",
    RecordKind.STATUS_NOT_FOUND: "skipping resource as it is not found",
    RecordKind.BROADCAST: "Broadcast the resource status",
    RecordKind.SENT_TO_CLIENTS: "send the event to status subscribers",
    RecordKind.NO_CLIENTS: "no clients registered on this instance",
    RecordKind.STATUS_DISPATCH_FAILED: "failed to handle resource",
    RecordKind.REPUBLISHED: "Re-published undelivered resource",
    RecordKind.STATUS_REJECTED: "status was not taken",
    RecordKind.LISTENER_LOST: "the database's notifications were lost",
    RecordKind.DISCONNECTED: "disconnected",
    RecordKind.STREAM_BROKEN: "failed to send event",
    RecordKind.SUBSCRIBED: "subscribed",
    RecordKind.FOREIGN_EVENT: "event ignored",
    RecordKind.OTHER_CLUSTER: "event of another cluster ignored",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST = 160


def describe(record: LogRecord) -> str:
    """Return a record as its phrase and the details that matter."""
    phrase = _WORDS.get(record.kind, record.kind.name.lower().replace("_", " "))
    marks = []
    if record.action and record.stage in (1, 2, 3, 8):
        marks.append(record.action)
    if record.version > 0:
        marks.append(f"v{record.version}")
    if record.sequence:
        marks.append(f"seq …{record.sequence % 1_000_000:06d}")
    if record.is_deleting:
        marks.append("deleting")
    detail = "" if record.detail in ("final", "version", "sequence") else record.detail
    return printable(" ".join(filter(None, [phrase, *marks, detail[:_LONGEST]])))


def clock(at: float) -> str:
    """Return the time of day."""
    return (_EPOCH + timedelta(seconds=at)).strftime("%H:%M:%S.%f")[:-3] if at else ""


def span(seconds: float) -> str:
    """Return a duration in a readable unit."""
    if seconds < 1:
        return f"{max(0.0, seconds) * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def short(identifier: str) -> str:
    """Return the first characters of a long ID."""
    return f"{identifier[:8]}…" if len(identifier) > 12 else identifier
