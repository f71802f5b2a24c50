"""Remember the outlines of stored statuses, so that the history records transitions and not every status.

Bounded: of a work that is forgotten, or that another instance has reported on, the stored status is read again. Used by
the status writer under the locks of the rows, and changed only after the commit.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from maestropy.server.decide import status_intake
from maestropy.server.decide.history import kinds, status_changes
from maestropy.store import rows

_MAX_WORKS: Final = 20_000
_MAX_MEMBERS: Final = 200
"""Conditions and feedback values of one work; the outline of a larger status is not kept."""


@dataclass(frozen=True, slots=True)
class FoundTransition:
    """What a status changes, and what to remember of it."""

    id: str
    sequence_id: str
    outline: status_changes.Outline
    record: rows.Record | None


@dataclass(frozen=True, slots=True)
class _Known:
    sequence_id: str
    outline: status_changes.Outline
    """Of the last status that was recorded."""
    recorded_at: float | None


class StatusTransitions:
    """The outlines of the statuses that this instance has stored."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def needs_status_of(self, stored: rows.StoredStatus) -> bool:
        """Return whether the stored status has to be read to compare a new one with it."""
        if not stored.sequence_id:
            return False  # there is none
        known = self._known.get(stored.id)
        return known is None or known.sequence_id != stored.sequence_id

    def find(
        self, stored: rows.StoredStatus, update: status_intake.StatusUpdate, *, stored_data: bytes | None
    ) -> FoundTransition:
        """Return what `update` changes; `stored_data` is the stored status, if it had to be read."""
        known = self._known.get(stored.id)
        if stored_data is not None:
            version = int(stored.observed_version) if stored.observed_version.isdecimal() else 0
            before, recorded_at = status_changes.outline(stored_data, version=version), None
        elif known is not None and stored.sequence_id:
            before, recorded_at = known.outline, known.recorded_at
        else:
            before, recorded_at = status_changes.EMPTY, None
        after = status_changes.outline(update.received.data, version=update.version)
        found = status_changes.transition(before, after)
        seconds_ago = None if recorded_at is None else self._monotonic() - recorded_at
        if found is None or not status_changes.is_due(found, recorded_seconds_ago=seconds_ago):
            # The outline of the last recorded status stays: the next entry says what changed since then.
            return FoundTransition(stored.id, update.sequence_id, before, None)
        record = rows.Record(update.requester, kinds.short(update.operation_id), found.detail)
        return FoundTransition(stored.id, update.sequence_id, after, record)

    def note(self, transitions: Iterable[FoundTransition]) -> None:
        """Remember statuses that are stored now."""
        for found in transitions:
            before = self._known.pop(found.id, None)
            if len(found.outline.conditions) + len(found.outline.feedback) > _MAX_MEMBERS:
                continue
            recorded_at = self._monotonic() if found.record else before.recorded_at if before else None
            self._known[found.id] = _Known(found.sequence_id, found.outline, recorded_at)
        while len(self._known) > _MAX_WORKS:
            self._known.popitem(last=False)

    def forget(self, resource_id: str) -> None:
        """Forget a work that is removed."""
        self._known.pop(resource_id, None)
