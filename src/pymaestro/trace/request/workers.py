"""Let several processes do shares of one task. The only place of the tracer that starts processes of its own.

Workers are forked, so that they have everything in memory already and only answers travel. Where that is not safe (not
on Linux, or beside other threads) the shares are done here, one after the other: slower, never different.
"""

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from typing import Any, TypeVar

Share = TypeVar("Share")
Answer = TypeVar("Answer")

_task: Callable[[Any], Any] | None = None
"""What this process does, if it is a worker."""


def spread(task: Callable[[Share], Answer], shares: Sequence[Share], *, jobs: int) -> Iterator[Answer]:
    """Yield the answer to every share, in their order."""
    if jobs < 2 or len(shares) < 2 or not _can_fork():
        yield from map(task, shares)
        return
    # Leaving the block ends the workers, whatever ends it.
    with get_context("fork").Pool(min(jobs, len(shares)), initializer=_adopt, initargs=(task,)) as pool:
        yield from pool.imap(_run, shares)


def _can_fork() -> bool:
    return sys.platform == "linux" and threading.active_count() == 1


def _adopt(task: Callable[[Any], Any]) -> None:
    global _task  # noqa: PLW0603 - a forked worker has one task for its whole life
    _task = task
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us
    gc.disable()


def _run(share: Any) -> Any:
    assert _task is not None
    return _task(share)
