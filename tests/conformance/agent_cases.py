"""What every agent does on every cluster: one suite, run on the sandbox and on a real API server.

A case is `async def case_<numbers>_<what>(fleet)`; its id is its name, and the numbers are those of the catalogue of
behaviours users rely on. A case that passes on one cluster and not on the other shows a bug of the sandbox.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping

import pytest

for name in ("apply", "deletion", "delivery", "eviction", "executor", "feedback", "input", "strategy"):
    # Only of test files does pytest show by itself what an assert compared.
    pytest.register_assert_rewrite(f"conformance.{name}_cases")

from conformance import (  # noqa: E402 - rewritten from here on
    apply_cases,
    deletion_cases,
    delivery_cases,
    eviction_cases,
    executor_cases,
    feedback_cases,
    input_cases,
    strategy_cases,
)
from conformance.fleet import Fleet  # noqa: E402

Case = Callable[[Fleet], Awaitable[None]]
_MODULES = (
    apply_cases,
    deletion_cases,
    strategy_cases,
    feedback_cases,
    executor_cases,
    eviction_cases,
    input_cases,
    delivery_cases,
)


def _cases() -> Iterator[tuple[str, Case]]:
    for module in _MODULES:
        for name, found in inspect.getmembers(module, inspect.iscoroutinefunction):
            if name.startswith("case_") and found.__module__ == module.__name__:
                yield name.removeprefix("case_").replace("_", "-"), found


CASES: Mapping[str, Case] = dict(_cases())

every_case = pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
