"""Turn lists and status events into watch events: each change once, none missed.

Works come from lists, which are complete, and from a stream, which is fast. They overlap, also with earlier ones after
a reconnect. A list is passed work by work between `begin` and `complete`; a work that a complete list does not have is
gone. Pure.
"""

import enum
from dataclasses import dataclass

from maestropy.sdk.work import Work
from maestropy.wire import errors as wire_errors
from maestropy.wire import ordering
from maestropy.wire.works import work as wire
from maestropy.wire.works.work import ManifestWork


class EventType(enum.StrEnum):
    """The kind of a watch event."""

    ADDED = "ADDED"
    """The work is new to this watch; it may be older than the watch."""
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    """The work is gone. It carries its last state; only its metadata if the watch was interrupted."""
    SYNCED = "SYNCED"
    """All existing works were sent; only for watches with bookmarks."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change of one work."""

    type: EventType
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class _WorkMark:
    """The fields that decide whether a work has changed."""

    version: int
    sequence: str
    is_deleting: bool
    created: str
    metadata: ManifestWork
    """The metadata for a later DELETED event."""


class WatchState:
    """The works that one watch has sent."""

    def __init__(self) -> None:
        self._known: dict[str, _WorkMark] = {}
        self._unlisted: set[str] = set()

    def begin(self) -> None:
        """Start a list."""
        self._unlisted = set(self._known)

    def complete(self) -> list[WatchEvent]:
        """Complete a list; return DELETED for works it did not have."""
        gone, self._unlisted = self._unlisted, set()
        return [self._gone(uid) for uid in sorted(gone) if uid in self._known]

    def listed(self, work: Work) -> list[WatchEvent]:
        """Return the events for a work of a list."""
        self._unlisted.discard(work.id)
        known, mark = self._known.get(work.id), _mark_of(work)
        if known is not None and _is_other_incarnation(known, mark):
            return [self._gone(work.id), self._keep(work, mark, EventType.ADDED)]
        if known is None:
            return [self._keep(work, mark, EventType.ADDED)]
        if _is_newer(mark, known) or (mark.is_deleting and not known.is_deleting):
            return [self._keep(work, mark, EventType.MODIFIED)]
        return []

    def received(self, work: Work) -> list[WatchEvent]:
        """Return the events for a work of a status event."""
        known, mark = self._known.get(work.id), _mark_of(work)
        is_gone = work.manifest_work.status.is_deleted
        if known is None:
            # The last status of a work that this watch never sent.
            return [] if is_gone else [self._keep(work, mark, EventType.ADDED)]
        if mark.created and known.created and mark.created < known.created:
            return []
        if is_gone:
            del self._known[work.id]
            return [WatchEvent(EventType.DELETED, work)]
        if _is_other_incarnation(known, mark):
            return [self._gone(work.id), self._keep(work, mark, EventType.ADDED)]
        return [self._keep(work, mark, EventType.MODIFIED)] if _is_newer(mark, known) else []

    def excluded(self, work: Work) -> list[WatchEvent]:
        """Return DELETED if the watch has sent a work that it no longer includes."""
        return [self._gone(work.id)] if work.id in self._known else []

    def _keep(self, work: Work, mark: _WorkMark, event_type: EventType) -> WatchEvent:
        self._known[work.id] = mark
        return WatchEvent(event_type, work)

    def _gone(self, uid: str) -> WatchEvent:
        return WatchEvent(EventType.DELETED, Work.wrap(self._known.pop(uid).metadata))


def _mark_of(work: Work) -> _WorkMark:
    metadata = work.manifest_work.metadata
    return _WorkMark(
        version=work.version,
        sequence=work.annotations.get(wire.SEQUENCE_ID_ANNOTATION, ""),
        is_deleting=work.is_deleting,
        created=str(metadata.get("creationTimestamp") or ""),
        metadata=ManifestWork({"metadata": metadata}),
    )


def _is_other_incarnation(known: _WorkMark, mark: _WorkMark) -> bool:
    """Return whether a work is another incarnation, whose version starts at one again."""
    return bool(known.created and mark.created) and mark.created != known.created


def _is_newer(mark: _WorkMark, known: _WorkMark) -> bool:
    if mark.version != known.version:
        return mark.version > known.version
    if not mark.sequence:
        return False
    try:
        # Far back: the known one came from an agent whose clock was wrong, and the server has replaced it.
        is_far_back = ordering.is_ahead(known.sequence, now_ms=ordering.parse(mark.sequence).time_ms)
        return is_far_back or ordering.is_newer(mark.sequence, known.sequence)
    except wire_errors.WireError:
        # Sequence IDs of different agents cannot be compared; then a difference counts as a change.
        return mark.sequence != known.sequence
