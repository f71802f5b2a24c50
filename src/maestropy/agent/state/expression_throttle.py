"""Limit how often the expressions of one work are evaluated.

A work that exceeded its budget is evaluated again after a pause that doubles each time; a work that stays just below it
pauses in proportion to what it cost. A pause ends early when the spec changes. Kept in memory: after a restart of the
agent every work is evaluated once.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from maestropy.agent.expressions.budget import Budget

FREE_STEPS: Final = 20_000
"""Steps after which no pause follows."""
STEPS_PER_SECOND: Final = 100_000
"""Steps that a work gets per second in the long run: less than a tenth of a processor."""
FIRST_PAUSE_SECONDS: Final = 5.0


@dataclass(slots=True)
class _Evaluated:
    spec: Hashable
    exceeded_count: int = 0
    next_at: float = 0.0


class ExpressionThrottle:
    """The pause of every work."""

    def __init__(self, *, monotonic: Callable[[], float], max_seconds: float) -> None:
        self._monotonic = monotonic
        self._max_seconds = max_seconds
        self._works: dict[str, _Evaluated] = {}

    def budget(self, key: str, *, spec: Hashable) -> Budget | None:
        """Return the budget for one reconcile of a work with this spec; None during its pause."""
        evaluated = self._works.get(key)
        if evaluated is not None and evaluated.spec == spec and evaluated.next_at > self._monotonic():
            return None
        return Budget()

    def record(self, key: str, budget: Budget, *, spec: Hashable) -> float:
        """Count what a reconcile spent; return the pause in seconds."""
        previous = self._works.get(key)
        count = previous.exceeded_count if previous is not None and previous.spec == spec else 0
        count = count + 1 if budget.exceeded else 0
        pause = max(0, budget.steps_taken - FREE_STEPS) / STEPS_PER_SECOND
        if count:
            pause = max(pause, FIRST_PAUSE_SECONDS * 2 ** min(count - 1, 16))
        pause = min(pause, self._max_seconds)
        if not pause:
            self._works.pop(key, None)
        else:
            self._works[key] = _Evaluated(spec, count, self._monotonic() + pause)
        return pause

    def pause_seconds(self, key: str) -> float:
        """Return how long the pause of a work still takes; 0 without a pause."""
        evaluated = self._works.get(key)
        return max(0.0, evaluated.next_at - self._monotonic()) if evaluated is not None else 0.0

    def forget(self, key: str) -> None:
        """Drop a work that is gone."""
        self._works.pop(key, None)
