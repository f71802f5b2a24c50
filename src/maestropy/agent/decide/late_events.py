"""Recognise events that arrive after newer ones of the same work.

A message broker delivers what a server sent before it was stopped, even when another server has sent newer states
meanwhile. Such an event looks like one of a restored database. So it is doubted, not dropped: the agent resyncs, and
what the server then sends is applied. Pure: no I/O, no clock.
"""

from maestropy.agent.decide import data_safety
from maestropy.agent.decide.data_safety import SpecOrigin
from maestropy.wire import errors, timestamps


def is_late_spec(known: SpecOrigin, incoming: SpecOrigin) -> bool:
    """Return whether a spec is older than the one that the agent has."""
    return is_late_deletion(known, incoming) or data_safety.is_older_spec(known, incoming)


def is_late_deletion(known: SpecOrigin, incoming: SpecOrigin) -> bool:
    """Return whether a deletion is of an earlier incarnation than the one that the agent has."""
    return data_safety.compare_creation(known.created, incoming.created) < 0


def is_deleted_before(deleted: SpecOrigin, incoming: SpecOrigin) -> bool:
    """Return whether a spec is of an incarnation that the agent has deleted.

    If two incarnations seem to be of one time, in full seconds, the later was published later.
    """
    if not deleted.created or not incoming.created:
        return False
    order = data_safety.compare_creation(deleted.created, incoming.created)
    return order < 0 or (order == 0 and not _is_published_later(incoming, than=deleted))


def _is_published_later(incoming: SpecOrigin, *, than: SpecOrigin) -> bool:
    try:
        return timestamps.parse(incoming.published) > timestamps.parse(than.published)
    except errors.WireError:
        return False
