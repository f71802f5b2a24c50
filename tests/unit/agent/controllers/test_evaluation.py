"""Evaluations of several works take turns."""

import asyncio
import io

from maestropy.agent.controllers.evaluation import SLICE_STEPS, Evaluation, Evaluator
from maestropy.agent.expressions.budget import Limit
from maestropy.agent.state.expression_throttle import ExpressionThrottle
from maestropy.journal import emit


def evaluator(exceeded: list[Limit]) -> Evaluator:
    throttle = ExpressionThrottle(monotonic=lambda: 0.0, max_seconds=240)
    return Evaluator(throttle, journal=emit.Journal(io.BytesIO(), clock=lambda: 0.0), on_exceeded=exceeded.append)


async def test_works_and_other_tasks_run_between_slices() -> None:
    agent = evaluator([])
    order: list[str] = []

    def costly(name: str, evaluation: Evaluation) -> None:
        assert evaluation.budget is not None
        evaluation.budget.spend(SLICE_STEPS)
        order.append(name)

    async def run(name: str) -> None:
        evaluation = agent.begin(name, spec=1, log_fields={})
        await evaluation.run([lambda: costly(name, evaluation)] * 3)

    async def beat() -> None:
        for _ in range(20):
            order.append("-")
            await asyncio.sleep(0)

    await asyncio.gather(run("a"), run("b"), beat())
    assert [entry for entry in order if entry != "-"] == ["a", "b", "a", "b", "a", "b"]
    # Another task runs between any two slices.
    text = "".join(order).rstrip("-")
    assert "ab" not in text
    assert "ba" not in text


async def test_cheap_evaluations_run_without_pause() -> None:
    evaluation = evaluator([]).begin("w", spec=1, log_fields={})
    assert await evaluation.run([lambda: 1, lambda: 2]) == [1, 2]


async def test_exceeded_limit_is_counted_and_pauses_work() -> None:
    exceeded: list[Limit] = []
    agent = evaluator(exceeded)
    evaluation = agent.begin("w", spec=1, log_fields={})
    assert evaluation.budget is not None
    evaluation.budget._exceed(Limit.MANIFEST)
    evaluation.finish()
    assert exceeded == [Limit.MANIFEST]
    assert agent.pause_seconds("w") == 5
    assert agent.begin("w", spec=1, log_fields={}).budget is None
    assert agent.begin("w", spec=2, log_fields={}).budget is not None
