"""Run parts of one task in several processes. The only module of the tracer that starts processes.

This process runs the first part itself and forked processes run the others: they share its memory, and only results
are sent back. Where forking is not safe (not on Linux, or with other threads) no process is forked.
"""

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TypeVar

Share = TypeVar("Share")
Result = TypeVar("Result")


def can_fork() -> bool:
    """Say whether other processes may help."""
    return sys.platform == "linux" and threading.active_count() == 1


def run_shares(
    task: Callable[[Share], Result], shares: Sequence[Share], *, mine: Callable[[Share], Result]
) -> Iterator[Result]:
    """Yield the result of every share, in order; the first share is run here, by `mine`."""
    context = get_context("fork")
    with ExitStack() as stack:
        receivers = []
        for share in shares[1:]:
            receiver, sender = context.Pipe(duplex=False)
            receivers.append(stack.enter_context(closing(receiver)))
            process = context.Process(target=_run_share, args=(task, share, sender), daemon=True)
            process.start()
            sender.close()
            stack.callback(process.join)
            stack.callback(process.terminate)  # whatever ends this block ends the helpers, in the other order
        yield mine(shares[0])
        for share, receiver in zip(shares[1:], receivers, strict=True):
            try:
                result: Result = receiver.recv()
            except EOFError:
                result = task(share)  # the helper died, or met what has to be met here
            yield result


def _run_share(task: Callable[[Share], Result], share: Share, sender: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent process
    gc.disable()
    with suppress(Exception):  # the parent process repeats the share and raises the error
        sender.send(task(share))
