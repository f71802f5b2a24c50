"""When an agent is told again of a deletion whose end it has not reported, and when it is told in other words.

A deletion that reached an agent can still be forgotten there. A Go agent loses one that meets a status of its own on
the way: it hears it anew. An older Go agent that has it before it has taken up the work knows of it and does nothing,
for ever: it needs another copy of the work. Nobody hears of either, so time alone decides. Whoever has a good reason to
take long, such as a finalizer nobody removes, is told less and less often. `maestropy.server.sweep` sees to it.
"""

from datetime import datetime, timedelta

from maestropy.store import rows

FIRST_WAIT = timedelta(seconds=5)
"""A Go agent says within about three seconds that it has finished."""
LONGEST_WAIT = timedelta(minutes=10)
AT_ONCE = 500
"""How many deletions are repeated in one turn: what is stuck in crowds must not crowd out what is new."""
_REMINDER = "-again"
_PLAIN_REMINDERS = 3


def next_wait(age: timedelta) -> timedelta:
    """Return the time to the next reminder: as long as the deletion has taken so far, so that waits double."""
    return min(max(age, FIRST_WAIT), LONGEST_WAIT)


def event_id(fresh_id: str) -> str:
    """Return an id by which whoever sends the event knows it for a reminder; to others it is a deletion."""
    return f"{fresh_id}{_REMINDER}"


def needs_other_words(spec: rows.Spec, *, event_id: str, now: datetime) -> bool:
    """Say whether the event sends a deletion in words that make the agent begin anew.

    The fourth reminder does, and later every third, while the agent has said nothing about the bundle since: one that
    is merely slow says within seconds that it has begun, and hears plain reminders until then.
    """
    if not event_id.endswith(_REMINDER) or spec.deleted_at is None or spec.updated_at > spec.deleted_at:
        return False
    reminders = ((now - spec.deleted_at) // FIRST_WAIT).bit_length()
    return reminders >= _PLAIN_REMINDERS and reminders % _PLAIN_REMINDERS == 1
