"""Back off when another actor keeps changing an object that the agent corrects.

The first drift corrections are immediate. If an autoscaler, a job cleaner or another work keeps undoing them, the
interval grows up to the resync interval, so the agent does not fight at the speed of watch events.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

_CORRECTIONS_WITHOUT_BACKOFF = 3
_FIRST_BACKOFF_SECONDS = 1.0


@dataclass(slots=True)
class _Drift:
    count: int = 0
    next_at: float = 0.0


class DriftBackoff:
    """The backoff of every object that drifts."""

    def __init__(self, *, monotonic: Callable[[], float], max_seconds: float) -> None:
        self._monotonic = monotonic
        self._max_seconds = max_seconds
        self._drifts: dict[Hashable, _Drift] = {}

    def backoff_seconds(self, key: Hashable) -> float:
        """Return how long the next drift correction has to wait; 0 if it may be done now."""
        drift = self._drifts.get(key)
        return max(0.0, drift.next_at - self._monotonic()) if drift is not None else 0.0

    def record_correction(self, key: Hashable) -> None:
        """Count a drift correction."""
        now = self._monotonic()
        drift = self._drifts.setdefault(key, _Drift())
        if now - drift.next_at > self._max_seconds:
            # After a quiet time the count starts again.
            drift.count = 0
        drift.count += 1
        doublings = drift.count - _CORRECTIONS_WITHOUT_BACKOFF
        pause = min(self._max_seconds, _FIRST_BACKOFF_SECONDS * 2 ** min(doublings, 32)) if doublings >= 0 else 0.0
        drift.next_at = now + pause

    def forget(self, key: Hashable) -> None:
        """Drop an object that the agent no longer owns."""
        self._drifts.pop(key, None)
