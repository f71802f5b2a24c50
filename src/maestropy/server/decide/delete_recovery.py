"""Decide when a delete request is sent to an agent again, and when a replacement is sent in its place.

An agent can lose a delete request that it has received. A Go agent drops one that crosses a status update of its own:
sending it again is enough. An older Go agent that receives it before it has cached the work keeps it and does nothing:
it needs a replacement (`delivery.replacement_deletion`). Neither agent reports this, so only time decides. A deletion
that takes long for a good reason, such as a finalizer, is repeated less and less often.

The schedule is that of Go Maestro's delete recovery, on the same rows, with one difference: a round that has fewer
consumers than its limit gives each of them several turns. Delays are in nanoseconds, as Go stores them. Pure: no I/O,
no clock. `server.controllers.spec.delete_recovery` runs the rounds.
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from maestropy.store import rows

PAUSE = timedelta(seconds=1)
"""Between two rounds of all servers on a database."""
SILENCE = timedelta(seconds=40)
"""An agent that is merely slow has reported by then that the deletion has begun."""
FIRST_DELAY = timedelta(seconds=60)
"""The default of Go Maestro, and what other servers are assumed to use while this one sends nothing again."""
_REDELIVERIES_PER_REPLACEMENT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPolicy:
    """How often unconfirmed deletions are sent again; the flags `--delete-event-republish-*`."""

    initial: timedelta = FIRST_DELAY
    """The first delay. Zero: this server sends none again."""
    longest: timedelta = timedelta(hours=1)
    batch: int = 25
    """How many events a round of all servers queues at most, and how many deletions it puts into the schedule."""

    @property
    def initial_ns(self) -> int:
        """The first delay in nanoseconds."""
        return _nanoseconds(self.initial)


def first_retry(deletion: rows.UnconfirmedDeletion, policy: RecoveryPolicy) -> rows.Retry:
    """Return when a deletion that has no schedule is sent again; this may be long ago."""
    return rows.Retry(at=deletion.deleted_at + policy.initial, delay_ns=policy.initial_ns)


def next_retry(
    deletion: rows.UnconfirmedDeletion, policy: RecoveryPolicy, *, event_id: str | None, now: datetime
) -> rows.Retry:
    """Return when a deletion whose turn it was is sent again; `event_id` is its new event.

    Delays double up to the longest one and lose up to half, so that deletions of one moment spread; the random ID of
    the event decides how much. Without a new event, because the last one still waits for its delivery, the delay stays.
    """
    if event_id is None:
        return rows.Retry(at=now + policy.initial, delay_ns=deletion.delay_ns or 0)
    delay_ns = next_delay(deletion.delay_ns or 0, policy)
    half = delay_ns // 2
    spread = half + (delay_ns - half) * zlib.crc32(event_id.encode()) // 2**32
    return rows.Retry(at=now + timedelta(microseconds=spread // 1000), delay_ns=delay_ns)


def next_delay(previous_ns: int, policy: RecoveryPolicy) -> int:
    """Return twice the previous delay, at least twice the first and at most the longest one."""
    longest = _nanoseconds(policy.longest)
    previous = max(previous_ns, policy.initial_ns)
    return longest if previous >= longest // 2 else 2 * previous


def first_turns(
    deletions: Iterable[rows.UnconfirmedDeletion], policy: RecoveryPolicy, now: datetime
) -> dict[str, datetime]:
    """Return by consumer when the first of its deletions is due; not before now, so that it queues behind others."""
    turns: dict[str, datetime] = {}
    for deletion in deletions:
        due = max(first_retry(deletion, policy).at, now)
        turns[deletion.consumer] = min(due, turns.get(deletion.consumer, due))
    return turns


def turns_per_consumer(policy: RecoveryPolicy, *, consumers: int) -> int:
    """Return how many deletions each of the due consumers may send in a round; a Go server always sends one."""
    return max(1, policy.batch // max(1, consumers))


def needs_replacement(spec: rows.ResourceSpec, *, is_repeated: bool, now: datetime, initial: timedelta) -> bool:
    """Return whether a delete request is sent as a replacement that makes the agent start the deletion anew.

    The second redelivery is, or a later one that comes after enough silence, and then every third: the one after a
    replacement is what the agent confirms. None is once the agent has reported a status since the deletion.
    Delays double and lose less than half, so that the age of a deletion tells its redelivery: the n-th comes after
    2^(n-1) to 2^n times the first delay.
    """
    if not is_repeated or spec.deleted_at is None or spec.updated_at > spec.deleted_at:
        return False
    first_delay = initial or FIRST_DELAY
    redelivery = ((now - spec.deleted_at) // first_delay).bit_length()
    delays_of_silence = -(-SILENCE // first_delay)
    first = max(2, (delays_of_silence - 1).bit_length() + 1)
    return redelivery >= first and (redelivery - first) % _REDELIVERIES_PER_REPLACEMENT == 0


def _nanoseconds(length: timedelta) -> int:
    return length // timedelta(microseconds=1) * 1000
