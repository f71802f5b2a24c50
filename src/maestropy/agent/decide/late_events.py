"""Recognise events that arrive after newer ones of the same work.

A message broker delivers what a server sent before it was stopped, even when another server has sent newer states
meanwhile. Such an event looks like one of a restored database. So it is doubted, not dropped: the agent resyncs, and
what the server then sends is applied. Pure: no I/O, no clock.
"""

from maestropy.agent.decide import data_safety
from maestropy.agent.decide.data_safety import SpecOrigin
from maestropy.wire import errors, timestamps


def was_absent(created: str, *, complete_at: timestamps.Timestamp | None) -> bool:
    """Return whether an unknown work should have been in the last complete answer to a resync, of this database time.

    Then the database has lost the work since it sent the event: a backup was restored, for example. A work that was
    created while the answer was read may seem so too.
    """
    if complete_at is None or not created:
        return False
    try:
        return timestamps.parse(created) < complete_at
    except errors.WireError:
        return False


def is_late_spec(known: SpecOrigin, incoming: SpecOrigin) -> bool:
    """Return whether a spec is older than the one that the agent has."""
    return is_late_deletion(known, incoming) or data_safety.is_older_spec(known, incoming)


def is_late_deletion(known: SpecOrigin, incoming: SpecOrigin) -> bool:
    """Return whether a deletion is of an earlier incarnation than the one that the agent has."""
    return data_safety.compare_creation(known.created, incoming.created) < 0


def is_deleted_before(deleted: SpecOrigin, incoming: SpecOrigin) -> bool:
    """Return whether a spec is of an incarnation that the agent has deleted, or may be of it.

    The spec may be a version that the agent never received. Two incarnations can seem to be of one time only if a time
    is in full seconds; then the server is asked once more than necessary.
    """
    if not deleted.created or not incoming.created:
        return False
    return data_safety.compare_creation(deleted.created, incoming.created) <= 0
