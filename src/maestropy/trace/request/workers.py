"""Let several processes do shares of one task. The only place of the tracer that starts processes of its own.

This process does the first share itself, forked ones the others: they have everything in memory already, and only
answers travel. Where that is not safe (not on Linux, or beside other threads) nobody is asked to help.
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
Answer = TypeVar("Answer")


def can_fork() -> bool:
    """Say whether other processes may help."""
    return sys.platform == "linux" and threading.active_count() == 1


def spread(
    task: Callable[[Share], Answer], shares: Sequence[Share], *, mine: Callable[[Share], Answer]
) -> Iterator[Answer]:
    """Yield the answer to every share, in their order; the first is found here, by `mine`."""
    context = get_context("fork")
    with ExitStack() as stack:
        answers = []
        for share in shares[1:]:
            receiver, sender = context.Pipe(duplex=False)
            answers.append(stack.enter_context(closing(receiver)))
            process = context.Process(target=_answer, args=(task, share, sender), daemon=True)
            process.start()
            sender.close()
            stack.callback(process.join)
            stack.callback(process.terminate)  # whatever ends this block ends the helpers, in the other order
        yield mine(shares[0])
        for share, receiver in zip(shares[1:], answers, strict=True):
            try:
                answer: Answer = receiver.recv()
            except EOFError:
                answer = task(share)  # the helper died, or met what has to be met here
            yield answer


def _answer(task: Callable[[Share], Answer], share: Share, sender: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us
    gc.disable()
    with suppress(Exception):  # whoever started us tries again, and tells
        sender.send(task(share))
