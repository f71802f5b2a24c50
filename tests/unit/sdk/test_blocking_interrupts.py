"""Ctrl-C between any two instructions of a blocking call neither stops the background loop nor loses a coroutine."""

import asyncio
import functools
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
    """Raise KeyboardInterrupt before instruction `at`; return whether the call has that many."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        # Callbacks of weak references of earlier tests cannot raise.
        if frame.f_code.co_name == "_remove":
            return None
        frame.f_trace_opcodes = True
        count += event == "opcode"
        if count == at:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    # Python 3.12 traces instructions only if a frame asked for them before tracing began.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.long
def test_interrupt_at_any_instruction_keeps_the_loop_running() -> None:
    loop = blocking.BackgroundLoop.acquire()
    try:
        for at in itertools.count(1):
            items = blocking.BlockingIterator(numbers(), loop)
            if not is_interrupted(functools.partial(next, items), at=at):
                break
            # Called directly: on a blocked loop, `run` would wait for ever.
            assert asyncio.run_coroutine_threadsafe(asyncio.sleep(0, "alive"), loop._loop).result(timeout=20) == "alive"
            assert loop.run(functools.partial(asyncio.sleep, 0, "free")) == "free"
            items.close()
        assert at > 50, "the call has that many instructions at least"
    finally:
        loop.release()
