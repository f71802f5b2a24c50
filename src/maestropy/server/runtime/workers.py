"""Supervise several server processes on one host.

Each worker is an instance with its own index. A worker that exits is started again with growing delays. If a worker
exits at once several times, all are stopped: a restart would not help. Workers hold the other end of a pipe to the
supervisor, so that they stop if it is killed.
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

# A worker that ran this long had started well; its exit counts as the first one.
HEALTHY_SECONDS = 30.0
MAX_QUICK_EXITS = 5
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


def is_permanent_failure(exit_code: int, *, quick_exits: int) -> bool:
    """Return whether another start of the worker is useless."""
    return exit_code == USAGE_EXIT_CODE or quick_exits >= MAX_QUICK_EXITS


def worst(exit_codes: Sequence[int]) -> int:
    """Return the highest exit code; a signal counts as 128 plus its number, as in the shell."""
    return max((128 - code if code < 0 else code for code in exit_codes), default=0)


async def supervise(
    workers: Sequence[Worker],
    *,
    until: Coroutine[Any, Any, None],
    report: Callable[[str], None],
    jitter: Callable[[], float],
) -> int:
    """Keep `workers` running until `until` returns; stop them gracefully and return the highest exit code."""
    last: dict[int, int] = {}
    failed_codes: list[int] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(
                    _keep_running(worker, last=last, report=report, jitter=jitter), name=f"worker {worker.index}"
                )
                for worker in workers
            ]
            await until
            for task in tasks:
                task.cancel()
    except* WorkersFailed as failures:
        for error in failures.exceptions:
            report(str(error))
            failed_codes.append(error.exit_code if isinstance(error, WorkersFailed) else 1)
    return worst((*failed_codes, *last.values()))


async def _keep_running(
    worker: Worker, *, last: dict[int, int], report: Callable[[str], None], jitter: Callable[[], float]
) -> None:
    clock = asyncio.get_running_loop().time
    delays = _delays(jitter)
    quick_exits = 0
    while True:
        started_at = clock()
        code = await _run_once(worker, last=last)
        if clock() - started_at >= HEALTHY_SECONDS:
            quick_exits, delays = 0, _delays(jitter)
        quick_exits += 1
        if is_permanent_failure(code, quick_exits=quick_exits):
            raise WorkersFailed(f"worker {worker.index} cannot run; ending all", exit_code=worst((code,)) or 1)
        delay = next(delays)
        report(f"worker {worker.index} ended with exit code {code}; starting it again in {delay:.1f} s")
        await asyncio.sleep(delay)
        last.pop(worker.index, None)


def _delays(jitter: Callable[[], float]) -> Iterator[float]:
    return backoff.delays(base=FIRST_DELAY_SECONDS, factor=2, cap=LONGEST_DELAY_SECONDS, jitter=jitter)


async def _run_once(worker: Worker, *, last: dict[int, int]) -> int:
    """Run the worker once and return its exit code; when cancelled, stop it gracefully first."""
    # Shielded: asyncio kills a process whose start is cancelled, and its exit code is lost.
    start = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *worker.command,
            env=worker.environ,
            stdin=asyncio.subprocess.PIPE,
            # Ctrl-C in the terminal reaches only the supervisor, which then stops the workers.
            start_new_session=True,
        )
    )
    try:
        return await (await asyncio.shield(start)).wait()
    finally:
        last[worker.index] = await _stop(await start)


async def _stop(process: asyncio.subprocess.Process) -> int:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(GRACE_SECONDS):
            code = await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        code = await process.wait()
    # SIGTERM arrived before the worker had a handler: that is a graceful stop too.
    return 0 if code == -signal.SIGTERM else code
