"""How soon may we undo again what somebody else does to an object of ours, again and again?

The first repairs come at once. Whoever keeps undoing them (an autoscaler, a cleaner of finished jobs, another work that
wants the same object otherwise) gets a fight that slows down to the slow round, instead of one at the speed of watches.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

_AT_ONCE = 3
_FIRST_SECONDS = 1.0


@dataclass(slots=True)
class _Fight:
    count: int = 0
    next_at: float = 0.0


class Repairs:
    """The fights that are going on."""

    def __init__(self, *, monotonic: Callable[[], float], longest_seconds: float) -> None:
        self._monotonic = monotonic
        self._longest = longest_seconds
        self._fights: dict[Hashable, _Fight] = {}

    def seconds_to_wait(self, key: Hashable) -> float:
        """Return how long the next repair has to wait; 0 if it may be done now."""
        fight = self._fights.get(key)
        return max(0.0, fight.next_at - self._monotonic()) if fight is not None else 0.0

    def note(self, key: Hashable) -> None:
        """Count a repair."""
        now = self._monotonic()
        fight = self._fights.setdefault(key, _Fight())
        if now - fight.next_at > self._longest:
            # Long enough without one: this is another story.
            fight.count = 0
        fight.count += 1
        doublings = fight.count - _AT_ONCE
        pause = min(self._longest, _FIRST_SECONDS * 2 ** min(doublings, 32)) if doublings >= 0 else 0.0
        fight.next_at = now + pause

    def forget(self, key: Hashable) -> None:
        """The object is no longer ours."""
        self._fights.pop(key, None)
