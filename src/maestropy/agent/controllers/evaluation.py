"""Evaluate the expressions of works in turns, so that the event loop and other works go on.

One slice of evaluations runs at a time, whichever work it belongs to, and every other task can run before the next. A
slice ends with the evaluation that brings it over its length, and one evaluation is bounded by the budget of a
manifest: together 50,000 steps, measured at less than 50 ms. A large status is hashed in a turn too.
`expression_throttle` decides how often a work is evaluated.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterable
from typing import Final, TypeVar

from maestropy.agent.expressions.budget import Budget, BudgetExceeded, Limit
from maestropy.agent.state.expression_throttle import ExpressionThrottle
from maestropy.journal.emit import Journal
from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import AgentPhrase
from maestropy.wire.works.status import WorkStatus

SLICE_STEPS: Final = 10_000
_MANIFEST_STEPS: Final = 100
"""What a manifest costs without expressions, or after the budget is used up."""

_HASHED_BYTES_PER_STEP: Final = 100

Result = TypeVar("Result")


class _Turns:
    """Who evaluates, and how many steps were taken since other tasks could run."""

    def __init__(self) -> None:
        # asyncio serves waiting tasks in their order, so no work waits longer than one slice of each other work.
        self.lock = asyncio.Lock()
        self.steps = 0

    async def add(self, steps: int) -> bool:
        """Count steps, under the lock; return whether all other tasks could run, because the slice is over."""
        self.steps += steps
        if self.steps < SLICE_STEPS:
            return False
        self.steps = 0
        # The lock is kept, so that no other work evaluates before all other tasks could run.
        await asyncio.sleep(0)
        return True


class Evaluation:
    """The evaluation of the expressions of one work in one reconcile."""

    def __init__(self, budget: Budget | None, *, turns: _Turns, record: Callable[[Budget], None]) -> None:
        self.budget = budget
        """What the expressions may cost; None while the work is paused because it spent too much."""
        self._turns = turns
        self._record = record

    async def run(self, evaluations: Iterable[Callable[[], Result]]) -> list[Result]:
        """Run evaluations that charge the budget, and return their results in order."""
        remaining = iter(evaluations)
        if self.budget is None:
            return [evaluate() for evaluate in remaining]
        results: list[Result] = []
        while True:
            async with self._turns.lock:
                for evaluate in remaining:
                    before = self.budget.steps_taken
                    results.append(evaluate())
                    if await self._turns.add(_MANIFEST_STEPS + self.budget.steps_taken - before):
                        break
                else:
                    return results

    async def hash(self, status: WorkStatus) -> None:
        """Compute the hash of a status, which keeps it."""
        async with self._turns.lock:
            await self._turns.add(status.size // _HASHED_BYTES_PER_STEP)

    def finish(self) -> None:
        """Count what was spent; a work that spent too much is paused."""
        if self.budget is not None:
            self._record(self.budget)


class Evaluator:
    """Begins the evaluations of all works of one agent."""

    def __init__(self, throttle: ExpressionThrottle, *, journal: Journal, on_exceeded: Callable[[Limit], None]) -> None:
        self._throttle = throttle
        self._journal = journal
        self._on_exceeded = on_exceeded
        self._turns = _Turns()

    def begin(self, key: str, *, spec: Hashable, log_fields: dict[str, object]) -> Evaluation:
        """Begin the evaluation of a work with this spec."""

        def record(budget: Budget) -> None:
            pause = self._throttle.record(key, budget, spec=spec)
            for limit in sorted(budget.exceeded):
                self._on_exceeded(limit)
                fields = {**log_fields, LogKey.REASON: str(BudgetExceeded(limit)), LogKey.PAUSE: f"{pause:g}s"}
                self._journal.warning(AgentPhrase.BUDGET_EXCEEDED, fields)

        return Evaluation(self._throttle.budget(key, spec=spec), turns=self._turns, record=record)

    def pause_seconds(self, key: str) -> float:
        """Return how long the evaluation of a work is still paused."""
        return self._throttle.pause_seconds(key)

    def forget(self, key: str) -> None:
        """Drop a work that is gone."""
        self._throttle.forget(key)
