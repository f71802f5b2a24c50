"""Wait for a state instead of sleeping for a fixed time; fail with the name of the state when it does not come."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

TIMEOUT = 60.0
"""Seconds; a test that passes does not wait for it, so it may be long on a busy machine."""

Value = TypeVar("Value")


@overload
async def until(
    condition: Callable[[], Awaitable[Value]], *, what: str = "the state", seconds: float = TIMEOUT
) -> Value: ...
@overload
async def until(condition: Callable[[], Value], *, what: str = "the state", seconds: float = TIMEOUT) -> Value: ...
async def until(condition: Callable[[], Any], *, what: str = "the state", seconds: float = TIMEOUT) -> Any:
    """Wait until the condition yields a true value, and return it; the event loop goes on meanwhile."""
    deadline, pause = time.monotonic() + seconds, 0.001
    while True:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not come within {seconds:g} s"
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def wait_for(look: Callable[[], Value | None], *, what: str = "the state", seconds: float = TIMEOUT) -> Value:
    """Block until `look` returns a true value, and return it."""
    deadline, pause = time.monotonic() + seconds, 0.001
    while True:
        value = look()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not come within {seconds:g} s"
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)
