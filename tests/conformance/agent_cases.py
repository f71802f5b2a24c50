"""Collect the cases that every agent must pass on every cluster: on the sandbox and on a real API server.

A case is `async def case_<rule>(env)`; its ID is the rule. A case that passes on one cluster and not on the other shows
a bug of the sandbox.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping

import pytest

for name in ("apply", "data_safety", "deletion", "delivery", "eviction", "executor", "feedback", "input", "strategy"):
    # pytest rewrites asserts of test files only.
    pytest.register_assert_rewrite(f"tests.conformance.{name}_cases")

from tests.conformance import (  # noqa: E402 - rewritten from here on
    apply_cases,
    data_safety_cases,
    deletion_cases,
    delivery_cases,
    eviction_cases,
    executor_cases,
    feedback_cases,
    input_cases,
    strategy_cases,
)
from tests.conformance.agent_environment import AgentEnvironment  # noqa: E402

Case = Callable[[AgentEnvironment], Awaitable[None]]
_MODULES = (
    apply_cases,
    deletion_cases,
    strategy_cases,
    feedback_cases,
    executor_cases,
    eviction_cases,
    input_cases,
    data_safety_cases,
    delivery_cases,
)


def _cases() -> Iterator[tuple[str, Case]]:
    for module in _MODULES:
        for name, function in inspect.getmembers(module, inspect.iscoroutinefunction):
            if name.startswith("case_") and function.__module__ == module.__name__:
                yield name.removeprefix("case_").replace("_", "-"), function


CASES: Mapping[str, Case] = dict(_cases())

LONG = frozenset({"unanswered-spec-resync-evicts-nothing", "work-of-removed-kind-can-be-deleted"})
"""Cases that wait for timeouts of the agent."""

every_case = pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=name, marks=[pytest.mark.long] if name in LONG else []) for name, case in CASES.items()],
)
