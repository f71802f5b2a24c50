"""Decide whether a status update is newer than the stored status, without trust in the clocks of agents.

A sequence ID contains the time of the agent's host. A clock that was ahead and is corrected makes every later status
look old. So a sequence ID far ahead of the time of the database does not count, and a new status whose order is not
known is neither stored nor dropped: the agent sends it again, and what follows from an answer or a question of the
server is newer than what is stored. It is stored under a sequence ID of the server. Pure: the time is an argument.
"""

import enum
from dataclasses import dataclass

from maestropy.wire import errors, ordering


class Cause(enum.StrEnum):
    """Why the order of a status update is not known; the label of a metric."""

    AHEAD = "ahead"
    OLDER = "older"
    OTHER_NODE = "other_node"


@dataclass(frozen=True, slots=True)
class OrderProblem:
    """Why the sequence ID of a status update does not show that it is newer."""

    cause: Cause
    text: str
    """The text for the agent: which field, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFacts:
    """What the order of a status update depends on, besides the stored status."""

    now_ms: int
    """The time of the database, in milliseconds since 1970."""
    unordered_sequence_id: str = ""
    """Sequence ID of the last update of the resource that could not be ordered; empty: none of late."""
    agents_get_errors: bool = False
    """Whether agents learn that an update was not stored. Behind a message broker they do not."""
    can_ask: bool = True
    """Whether this instance reaches an agent of the consumer."""


def problem_with(sequence_id: str, stored: str, *, now_ms: int) -> OrderProblem | None:
    """Return why `sequence_id` is not newer than `stored` (empty: none); None if it is."""
    if ordering.is_ahead(sequence_id, now_ms=now_ms):
        return OrderProblem(Cause.AHEAD, _ahead_text(sequence_id, now_ms=now_ms))
    try:
        if not stored or ordering.is_ahead(stored, now_ms=now_ms) or ordering.is_newer(sequence_id, stored):
            return None
    except errors.InvalidContent as error:
        return OrderProblem(Cause.OTHER_NODE, str(error))
    except errors.MalformedMessage:
        return None  # the stored sequence ID is damaged, the one of the update has been checked
    return OrderProblem(
        Cause.OLDER,
        f"sequenceid {sequence_id} is not newer than the stored one, {stored}, but the status is new: send it again "
        "with a newer sequenceid; if this repeats, check the clock of the agent's host",
    )


def is_after(sequence_id: str, unordered: str) -> bool:
    """Return whether an agent made `sequence_id` after `unordered`, which could not be ordered (empty: none)."""
    try:
        return bool(unordered) and ordering.is_newer(sequence_id, unordered)
    except errors.WireError:
        return False


def renumbered(stored: str, *, now_ms: int) -> str:
    """Return a sequence ID of the server that is newer than `stored`: sources must not see one that goes back."""
    try:
        last = 0 if not stored or ordering.is_ahead(stored, now_ms=now_ms) else int(ordering.parse(stored))
    except errors.WireError:
        last = 0
    return str(ordering.next_id(last, now_ms=now_ms))


def _ahead_text(sequence_id: str, *, now_ms: int) -> str:
    seconds = (ordering.parse(sequence_id).time_ms - now_ms) // 1000
    return (
        f"sequenceid {sequence_id} is {seconds} s ahead of the time of the database, more than "
        f"{ordering.AHEAD_MAX_MS // 1000} s: correct the clock of the agent's host; a Go agent also needs a restart"
    )
