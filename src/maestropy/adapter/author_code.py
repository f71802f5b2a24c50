"""Run the adapter's own code in threads, so that code that blocks stops no timeout, no probe and no other event.

A thread cannot be ended. One whose function does not return in time is left behind: it is a daemon, so the process can
end, and what it returns later is dropped. A process with many of them takes no more calls and must be restarted.
"""

import asyncio
import contextvars
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from maestropy.adapter import standard_streams
from maestropy.adapter.decide import author_results, failure
from maestropy.adapter.decide.effects import CallAuthor
from maestropy.adapter.errors import BadAdapter, DidNotReturn, Exited

MOST_LEFT_BEHIND = 32
"""Threads that may be left behind; each may use a processor for ever."""
_RUNNING, _LEFT_BEHIND = "adapter-code", "adapter-code-left-behind"


@dataclass(frozen=True, slots=True)
class _Returned:
    value: Any


@dataclass(frozen=True, slots=True)
class _Raised:
    error: Exception


async def run(step: CallAuthor, *, deadline: float | None = None) -> Any:
    """Call an author's function in a thread; raises what it raises, and DidNotReturn at the loop's time `deadline`."""
    if reason := why_stuck():
        raise BadAdapter(reason)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    ended: asyncio.Future[_Returned | _Raised] = loop.create_future()

    def settle(ending: _Returned | _Raised) -> None:
        if not ended.done():
            ended.set_result(ending)

    def body() -> None:
        ending = _ending(step.function)
        standard_streams.repair()
        try:
            loop.call_soon_threadsafe(settle, ending)
        except RuntimeError:
            return  # the loop is closed, and nobody waits any more

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(body,), name=_RUNNING, daemon=True)
    thread.start()
    limit = asyncio.timeout_at(deadline)
    try:
        async with limit:
            ending = await ended
    except TimeoutError:
        raise _did_not_return(step, thread, seconds=loop.time() - begun) from None
    finally:
        if not ended.done() or ended.cancelled():
            thread.name = _LEFT_BEHIND
    if isinstance(ending, _Raised):
        raise ending.error
    return ending.value


def why_stuck() -> str:
    """Return why no more calls are made; empty while there are."""
    if sum(thread.name == _LEFT_BEHIND for thread in threading.enumerate()) < MOST_LEFT_BEHIND:
        return ""
    return f"{MOST_LEFT_BEHIND} calls of the adapter's functions have not returned; restart the adapter"


def _ending(function: Callable[[], Any]) -> _Returned | _Raised:
    try:
        return _Returned(failure.call(function))
    except Exception as error:  # noqa: BLE001 - raised again where the call was made
        return _Raised(error)
    except BaseException as error:  # noqa: BLE001 - Ctrl-C interrupts the main thread only: this one is the author's
        exited = Exited("the adapter's own code tried to end the process; return a value, or raise an error")
        exited.__cause__ = error
        return _Raised(exited)


def _did_not_return(step: CallAuthor, thread: threading.Thread, *, seconds: float) -> DidNotReturn:
    line = _current_line(step.author, thread)
    now = f"; it is at line {line}" if line else ""
    where = author_results.location(step.author)
    return DidNotReturn(f"{where} did not return within {seconds:.0f} s{now}; it must not wait, and do no I/O")


def _current_line(function: Callable[..., Any], thread: threading.Thread) -> int:
    """Return the line of the function's file at which a thread is; 0 if it is not known."""
    code = getattr(function, "__code__", None)
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and code is not None:
        if frame.f_code.co_filename == code.co_filename:
            return frame.f_lineno
        frame = frame.f_back
    return 0
