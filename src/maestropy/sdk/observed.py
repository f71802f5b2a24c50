"""What a watcher has seen, and what is news to it.

Works come from two sides: from lists, which are complete, and from a stream, which is quick. They overlap, and after a
reconnect they overlap with what was seen before. This module turns both into events without a loss or a double; it
does no I/O. A list is told work by work between `begin` and `complete`; what a complete list does not have is gone.
"""

import enum
from dataclasses import dataclass

from maestropy.sdk.work import Work
from maestropy.wire import errors as wire_errors
from maestropy.wire import order
from maestropy.wire import work as wire
from maestropy.wire.work import ManifestWork


class EventType(enum.StrEnum):
    """What happened."""

    ADDED = "ADDED"
    """The watcher has not seen this work before; it may be older than the watch."""
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    """It is gone. The work is its last state; if the watch was interrupted when it went, only its metadata."""
    SYNCED = "SYNCED"
    """Everything there was has been told; only those who ask for bookmarks get this."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One thing that happened to one work."""

    type: EventType
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """What must change before a work is news again."""

    version: int
    sequence: str
    is_deleting: bool
    created: str
    metadata: ManifestWork
    """Enough to say later who it was."""


class Observed:
    """The memory of one watcher."""

    def __init__(self) -> None:
        self._known: dict[str, _Mark] = {}
        self._unseen: set[str] = set()

    def begin(self) -> None:
        """Begin to hear a list."""
        self._unseen = set(self._known)

    def complete(self) -> list[WatchEvent]:
        """Return what the list, now complete, did not have any more."""
        gone, self._unseen = self._unseen, set()
        return [self._gone(uid) for uid in sorted(gone) if uid in self._known]

    def listed(self, found: Work) -> list[WatchEvent]:
        """Return what is new about a work in a list."""
        self._unseen.discard(found.id)
        known, mark = self._known.get(found.id), _mark(found)
        if known is not None and _is_another(known, mark):
            return [self._gone(found.id), self._keep(found, mark, EventType.ADDED)]
        if known is None:
            return [self._keep(found, mark, EventType.ADDED)]
        if _is_newer(mark, known) or (mark.is_deleting and not known.is_deleting):
            return [self._keep(found, mark, EventType.MODIFIED)]
        return []

    def heard(self, found: Work) -> list[WatchEvent]:
        """Return what is new about a work that the stream speaks of."""
        known, mark = self._known.get(found.id), _mark(found)
        is_gone = found.manifest_work.status.is_deleted
        if known is None:
            # Its last word, about something this watcher never told of.
            return [] if is_gone else [self._keep(found, mark, EventType.ADDED)]
        if mark.created and known.created and mark.created < known.created:
            return []
        if is_gone:
            del self._known[found.id]
            return [WatchEvent(EventType.DELETED, found)]
        if _is_another(known, mark):
            return [self._gone(found.id), self._keep(found, mark, EventType.ADDED)]
        return [self._keep(found, mark, EventType.MODIFIED)] if _is_newer(mark, known) else []

    def lost(self, found: Work) -> list[WatchEvent]:
        """Return what it means that a known work no longer is what the watcher looks for."""
        return [self._gone(found.id)] if found.id in self._known else []

    def _keep(self, found: Work, mark: _Mark, event_type: EventType) -> WatchEvent:
        self._known[found.id] = mark
        return WatchEvent(event_type, found)

    def _gone(self, uid: str) -> WatchEvent:
        return WatchEvent(EventType.DELETED, Work.wrap(self._known.pop(uid).metadata))


def _mark(found: Work) -> _Mark:
    metadata = found.manifest_work.metadata
    return _Mark(
        version=found.version,
        sequence=found.annotations.get(wire.SEQUENCE_ID_ANNOTATION, ""),
        is_deleting=found.is_deleting,
        created=str(metadata.get("creationTimestamp") or ""),
        metadata=ManifestWork({"metadata": metadata}),
    )


def _is_another(known: _Mark, mark: _Mark) -> bool:
    """Say whether a work of the same name was made anew: its version then counts from one again."""
    return bool(known.created and mark.created) and mark.created != known.created


def _is_newer(mark: _Mark, known: _Mark) -> bool:
    if mark.version != known.version:
        return mark.version > known.version
    if not mark.sequence:
        return False
    try:
        return order.is_newer(mark.sequence, known.sequence)
    except wire_errors.WireError:
        # Ids of two kinds of agents cannot be compared; a change is then better told than kept back.
        return mark.sequence != known.sequence
