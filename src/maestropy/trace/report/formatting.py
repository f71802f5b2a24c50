"""Format log records, times and durations for people. Pure."""

from datetime import UTC, datetime, timedelta

from maestropy.trace.logs.evidence import EVIDENCE
from maestropy.trace.logs.log_records import LogRecord, RecordKind
from maestropy.trace.output import printable

_WORDS = {
    **{kind: shown.words for kind, shown in EVIDENCE.items()},
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
