"""How often the expressions of a work are evaluated."""

import pytest

from maestropy.agent.expressions.budget import Budget, BudgetExceeded
from maestropy.agent.state.expression_throttle import STEPS_PER_SECOND, ExpressionThrottle


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


def spent(steps: int, *, exceeds: bool = False) -> Budget:
    budget = Budget()
    budget.spend(steps)
    if exceeds:
        with pytest.raises(BudgetExceeded), budget.expression() as part:
            part.spend(10**9)
    return budget


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def throttle(clock: Clock) -> ExpressionThrottle:
    return ExpressionThrottle(monotonic=clock.monotonic, max_seconds=240)


def test_cheap_work_has_no_pause(throttle: ExpressionThrottle) -> None:
    assert throttle.record("w", spent(1000), spec=1) == 0
    assert throttle.budget("w", spec=1) is not None
    assert throttle.pause_seconds("w") == 0


def test_pause_of_costly_work_is_proportional(throttle: ExpressionThrottle, clock: Clock) -> None:
    assert throttle.record("w", spent(20_000 + 3 * STEPS_PER_SECOND), spec=1) == 3
    assert throttle.budget("w", spec=1) is None
    clock.now += 3
    assert throttle.budget("w", spec=1) is not None


def test_pause_doubles_up_to_maximum(throttle: ExpressionThrottle, clock: Clock) -> None:
    pauses = []
    for _ in range(8):
        pauses.append(throttle.record("w", spent(0, exceeds=True), spec=1))
        assert throttle.budget("w", spec=1) is None
        clock.now += pauses[-1]
    assert pauses == [5, 10, 20, 40, 80, 160, 240, 240]


@pytest.mark.parametrize("end", ["new-spec", "within-budget", "forgotten"])
def test_pause_starts_again(end: str, throttle: ExpressionThrottle, clock: Clock) -> None:
    for _ in range(3):
        clock.now += throttle.record("w", spent(0, exceeds=True), spec=1)
    if end == "within-budget":
        throttle.record("w", spent(10), spec=1)
    if end == "forgotten":
        throttle.forget("w")
    spec = 2 if end == "new-spec" else 1
    assert throttle.budget("w", spec=spec) is not None
    assert throttle.record("w", spent(0, exceeds=True), spec=spec) == 5


def test_works_pause_independently(throttle: ExpressionThrottle) -> None:
    throttle.record("w", spent(0, exceeds=True), spec=1)
    assert throttle.budget("other", spec=1) is not None
