"""Ctrl-C may come between any two instructions of a blocking call; whenever it comes, the loop behind it goes on."""

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator, Callable
from types import FrameType
from typing import Any

import pytest

from maestropy.sdk import blocking


async def numbers() -> AsyncIterator[int]:
    for number in itertools.count():
        yield number


def is_interrupted(call: Callable[[], object], *, at: int) -> bool:
    """Raise KeyboardInterrupt before that instruction; tell whether there were as many."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        # What asyncio remembers of earlier tests is forgotten in functions that cannot raise.
        if frame.f_code.co_name == "_remove":
            return None
        frame.f_trace_opcodes = True
        count += event == "opcode"
        if count == at:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.filterwarnings("ignore:coroutine '_next' was never awaited:RuntimeWarning")
def test_no_interrupt_stops_the_loop() -> None:
    loop = blocking.Loop.acquire()
    try:
        for at in itertools.count(1):
            items = blocking.Items(numbers(), loop)
            if not is_interrupted(lambda items=items: next(items), at=at):
                break
            # Directly: were the loop stuck, its own way would wait for ever.
            assert asyncio.run_coroutine_threadsafe(asyncio.sleep(0, "alive"), loop._loop).result(timeout=20) == "alive"
            assert loop.run(asyncio.sleep(0, "free")) == "free"
            items.close()
        assert at > 50, "the call has that many instructions at least"
    finally:
        loop.release()
