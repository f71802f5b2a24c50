"""Run `async def` tests: each in an event loop of its own, and a test that leaves a task behind fails.

`tests.conftest` imports the hook. A plugin such as pytest-asyncio would add fixtures, modes and loop scopes that no
test here uses, and it cancels what a test leaves behind without a word.
"""

import asyncio
import contextlib
import inspect
import io
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

Result = TypeVar("Result")

_TURNS = 10
"""Turns of the event loop in which what was cancelled or closed last may still end."""


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in a new event loop; every task that it started must have ended too."""
    __tracebackhide__ = True

    async def watched() -> Result:
        __tracebackhide__ = True
        result = await coroutine
        for _ in range(_TURNS):
            leftovers = _leftovers()
            if not leftovers:
                return result
            await asyncio.sleep(0)
        raise AssertionError("tasks left behind:\n" + "\n".join(map(_describe, leftovers)))

    return asyncio.run(watched())


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function; leave every other test to pytest."""
    __tracebackhide__ = True
    test = pyfuncitem.obj
    if getattr(test, "is_hypothesis_test", False):
        example = test.hypothesis.inner_test
        if inspect.iscoroutinefunction(example):
            test.hypothesis.inner_test = lambda *args, **values: run(example(*args, **values))
        return None
    if not inspect.iscoroutinefunction(test):
        return None
    run(test(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}))
    return True


def _leftovers() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task is not asyncio.current_task() and not _is_grpc(task)]


def _is_grpc(task: asyncio.Task[Any]) -> bool:
    """Say whether the task is gRPC's own: its poller lives as long as the process, and its calls end a little later."""
    coroutine = task.get_coro()
    return "grpc" in repr(coroutine) or type(coroutine).__module__.startswith("_cython")


def _describe(task: asyncio.Task[Any]) -> str:
    stack = io.StringIO()
    # A coroutine of a compiled library has no frame to print.
    with contextlib.suppress(TypeError):
        task.print_stack(file=stack)
    return f"{task.get_name()}: {task.get_coro()!r}\n{stack.getvalue()}"
