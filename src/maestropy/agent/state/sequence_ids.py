"""Create the sequence IDs of status updates; they keep their order when the clock of this host is wrong or set.

A server that says what the time of its database is, and which sequence IDs it has stored, rejects those far ahead of
that time. So the agent continues above the stored ones, and with the time of the database while its own clock is ahead.
A Go server says neither; then the clock of this host counts, and IDs never go back while the agent runs.
"""

from collections.abc import Iterable

from maestropy.aio import clock as clocks
from maestropy.wire import errors, ordering

_TOLERATED_MS = 60_000


class SequenceIds:
    """The last sequence ID, and the time for the next one."""

    def __init__(self, clock: clocks.Clock) -> None:
        self._clock = clock
        self._last = 0
        self._database_ms: int | None = None
        """The time of the database at `_noted_at`, while the clock of this host is ahead of it."""
        self._noted_at = 0.0

    def next(self) -> str:
        """Return the next sequence ID."""
        self._last = ordering.next_id(self._last, now_ms=self._now_ms())
        return str(self._last)

    def note(self, stored: Iterable[str], *, database_ms: int) -> int:
        """Continue above the sequence IDs that the server has stored; return how far this host is ahead of it, in ms.

        Zero if it is not ahead, or by so little that it does not matter.
        """
        ahead_ms = self._host_ms() - database_ms
        is_ahead = ahead_ms > _TOLERATED_MS
        self._database_ms, self._noted_at = (database_ms if is_ahead else None), self._clock.monotonic()
        if self._last and ordering.is_ahead(str(self._last), now_ms=database_ms):
            self._last = 0  # the server has stored nothing under such an ID
        self._last = max(self._last, *(_usable(sequence_id, now_ms=database_ms) for sequence_id in stored), 0)
        return ahead_ms if is_ahead else 0

    def _now_ms(self) -> int:
        if self._database_ms is None:
            return self._host_ms()
        return self._database_ms + round((self._clock.monotonic() - self._noted_at) * 1000)

    def _host_ms(self) -> int:
        return round(self._clock.epoch() * 1000)


def _usable(sequence_id: str, *, now_ms: int) -> int:
    """Return a stored sequence ID as a number; 0 if it is absent or damaged, or if it does not count for the server."""
    try:
        return 0 if ordering.is_ahead(sequence_id, now_ms=now_ms) else int(sequence_id)
    except errors.WireError:
        return 0
