"""Words for people: what a record said, times, durations. Pure."""

from datetime import UTC, datetime, timedelta

from maestropy.trace.output import printable
from maestropy.trace.request.hits import Hit, What

_WORDS = {
    What.WISH: "receive the event from client",
    What.REFUSED: "request refused",
    What.NO_OP: "request changes nothing",
    What.NOTIFIED: "notified by the database",
    What.PUBLISHING: "Publishing resource",
    What.SENDING_SPEC: "Sending event (spec)",
    What.TO_AGENTS: "sending the event to spec subscribers",
    What.PUBLISH_FAILED: "Failed to publish",
    What.PUBLISH_SKIPPED: "skipping to publish",
    What.OTHER_INSTANCE: "processed by another worker",
    What.HARD_DELETED: "deleted as it is not created on the agent yet",
    What.RECEIVED_SPEC: "Received event (spec)",
    What.STORED: "Receive the event",
    What.APPLIED: "applied",
    What.DELETING: "deletion requested",
    What.REMOVED: "removed",
    What.APPLY_FAILED: "failed to apply",
    What.DECODE_FAILED: "failed to decode spec",
    What.PENDING_DELETION: "resources pending deletions",
    What.SENDING_STATUS: "Sending event (status)",
    What.RECEIVED_STATUS: "Received event (status)",
    What.STATUS_TAKEN: "received status update for resource",
    What.NOT_OWNED: "skipping, not owned by the current instance",
    What.HANDLING: "handle resource status update",
    What.UPDATING: "Updating resource status",
    What.UPDATE_SENT: "resource status update event was sent",
    What.DELETE_SENT: "resource status delete event was sent",
    What.STALE: "stale status; disregard it",
    What.UNCHANGED: "status update changes nothing",
    What.STATUS_FAILED: "failed to handle status event",
    What.STATUS_NOT_FOUND: "skipping resource as it is not found",
    What.BROADCAST: "Broadcast the resource status",
    What.TO_CLIENTS: "send the event to status subscribers",
    What.NO_CLIENTS: "no clients registered on this instance",
    What.FANOUT_FAILED: "failed to handle resource",
    What.REPUBLISHED: "Re-published undelivered resource",
    What.STATUS_REFUSED: "status was not taken",
    What.LISTENER_LOST: "the database's notifications were lost",
    What.DISCONNECTED: "disconnected",
    What.STREAM_BROKEN: "failed to send event",
    What.SUBSCRIBED: "subscribed",
    What.FOREIGN_EVENT: "event ignored",
    What.OTHER_CLUSTER: "event of another cluster ignored",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST = 160


def said(hit: Hit) -> str:
    """Return what a record said, in its phrase and the details that matter."""
    words = _WORDS.get(hit.what, hit.what.name.lower().replace("_", " "))
    marks = []
    if hit.action and hit.stage in (1, 2, 3, 8):
        marks.append(hit.action)
    if hit.version > 0:
        marks.append(f"v{hit.version}")
    if hit.sequence:
        marks.append(f"seq …{hit.sequence % 1_000_000:06d}")
    if hit.is_deleting:
        marks.append("deleting")
    detail = "" if hit.detail in ("final", "version", "sequence") else hit.detail
    return printable(" ".join(filter(None, [words, *marks, detail[:_LONGEST]])))


def clock(at: float) -> str:
    """Return the time of day."""
    return (_EPOCH + timedelta(seconds=at)).strftime("%H:%M:%S.%f")[:-3] if at else ""


def span(seconds: float) -> str:
    """Return a duration as people say it."""
    if seconds < 1:
        return f"{max(0.0, seconds) * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def short(identifier: str) -> str:
    """Return the beginning of a long id."""
    return f"{identifier[:8]}…" if len(identifier) > 12 else identifier
