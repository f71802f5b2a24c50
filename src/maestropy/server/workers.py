"""Keep several server processes running on one host.

Each worker is one more instance, told apart by its index. A worker that dies is started again, later each time; one
that keeps dying at once is a mistake no restart can mend, so then all end. Workers hold the other end of a pipe to us:
if we are killed, they notice and end too. What a worker does is none of our business.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.aio import backoff

GRACE_SECONDS = 30.0
FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 30.0

# A worker that lived this long was in order: whatever killed it was news.
HEALTHY_SECONDS = 30.0
DEATHS_IN_A_ROW = 5
USAGE_EXIT_CODE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One process to keep running."""

    index: int
    command: tuple[str, ...]
    environ: Mapping[str, str]


class WorkersFailed(Exception):
    """The workers cannot be kept running."""

    def __init__(self, message: str, *, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def is_hopeless(exit_code: int, *, quick_deaths: int) -> bool:
    """Return whether starting the worker again would change nothing."""
    return exit_code == USAGE_EXIT_CODE or quick_deaths >= DEATHS_IN_A_ROW


def worst(exit_codes: Sequence[int]) -> int:
    """Return the exit code that stands for all; a death by signal counts as the shell counts it."""
    return max((128 - code if code < 0 else code for code in exit_codes), default=0)


async def supervise(
    workers: Sequence[Worker],
    *,
    until: Coroutine[Any, Any, None],
    report: Callable[[str], None],
    jitter: Callable[[], float],
) -> int:
    """Keep `workers` running until `until` returns; end them in good order and return the worst exit code."""
    last: dict[int, int] = {}
    hopeless: list[int] = []
    try:
        async with asyncio.TaskGroup() as group:
            kept = [
                group.create_task(_keep(worker, last=last, report=report, jitter=jitter), name=f"worker {worker.index}")
                for worker in workers
            ]
            await until
            for task in kept:
                task.cancel()
    except* WorkersFailed as failures:
        for error in failures.exceptions:
            report(str(error))
            hopeless.append(error.exit_code if isinstance(error, WorkersFailed) else 1)
    return worst((*hopeless, *last.values()))


async def _keep(
    worker: Worker, *, last: dict[int, int], report: Callable[[str], None], jitter: Callable[[], float]
) -> None:
    clock = asyncio.get_running_loop().time
    delays = _delays(jitter)
    quick_deaths = 0
    while True:
        born = clock()
        code = await _live(worker, last=last)
        if clock() - born >= HEALTHY_SECONDS:
            quick_deaths, delays = 0, _delays(jitter)
        quick_deaths += 1
        if is_hopeless(code, quick_deaths=quick_deaths):
            raise WorkersFailed(f"worker {worker.index} cannot run; ending all", exit_code=worst((code,)) or 1)
        delay = next(delays)
        report(f"worker {worker.index} ended with exit code {code}; starting it again in {delay:.1f} s")
        await asyncio.sleep(delay)
        last.pop(worker.index, None)


def _delays(jitter: Callable[[], float]) -> Iterator[float]:
    return backoff.delays(base=FIRST_DELAY_SECONDS, factor=2, cap=LONGEST_DELAY_SECONDS, jitter=jitter)


async def _live(worker: Worker, *, last: dict[int, int]) -> int:
    """Run the worker once and return its exit code; when cancelled, end it in good order first."""
    process = await asyncio.create_subprocess_exec(
        *worker.command,
        env=worker.environ,
        stdin=asyncio.subprocess.PIPE,
        # A Ctrl-C in the terminal is for us; the workers get one request to end, from us.
        start_new_session=True,
    )
    try:
        return await process.wait()
    finally:
        last[worker.index] = await _end(process)


async def _end(process: asyncio.subprocess.Process) -> int:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(GRACE_SECONDS):
            code = await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        code = await process.wait()
    # It was asked so early that nothing in it could answer yet: it did as it was told.
    return 0 if code == -signal.SIGTERM else code
