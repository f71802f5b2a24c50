"""Play many seeds on several cores, show the progress, and write the result with the commit it ran on.

Ctrl-C ends a campaign after the shares that are being played; what was played until then is the result. `publish`
writes a result into docs/simulation.md.
"""

import gc
import itertools
import json
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tests.simulation.play import play
from tests.simulation.schedule import draw

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs" / "simulation.md"
_BEGIN, _END = "<!-- result: begin -->", "<!-- result: end -->"
_SHARE = 10
"""How many seeds a process plays before it says what it found."""
_POLL_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A seed that breaks a rule."""

    seed: int
    violation: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to play."""

    first: int
    seeds: int
    jobs: int = 1
    keeps_going: bool = False
    """Whether to go on after a broken rule."""
    seconds: float | None = None
    """When to stop, however many seeds were played."""
    opening: str = ""
    """The first line of the output."""


@dataclass(kw_only=True)
class Result:
    """What was played."""

    commit: str
    first: int
    planned: int
    played: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    """The longest way back to the desired state, in simulated seconds."""
    failures: list[Failure] = field(default_factory=list)
    is_interrupted: bool = False
    jobs: int = 1
    python: str = platform.python_version()
    ended_at: str = ""

    @property
    def per_minute(self) -> float:
        """How many seeds were played in a minute."""
        return 60 * self.played / max(self.seconds, 0.001)

    def __str__(self) -> str:
        ending = "; interrupted" if self.is_interrupted else ""
        speed = (
            f"{self.played} schedules from seed {self.first} in {self.seconds:.1f} s ({self.per_minute:.0f} a minute)"
        )
        lines = [f"{speed}; everything converged at most {self.slowest:g} s after the last fault{ending}"]
        lines += [
            f"BROKEN seed {failure.seed}: {failure.violation}\n"
            f"  again, and shrunk: python -m tests.simulation --seed {failure.seed}"
            for failure in self.failures
        ]
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class _Share:
    """What a process found in some seeds."""

    played: int
    slowest: float
    failures: list[Failure]


def run(plan: Plan) -> Result:
    """Play the seeds of a plan."""
    result = Result(commit=_commit(), first=plan.first, planned=plan.seeds, jobs=plan.jobs)
    began = time.perf_counter()

    def interrupt(*_: object) -> None:
        # No exception: it could be raised within the pool, which does not end then.
        result.is_interrupted = True

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        if plan.opening:
            print(plan.opening, flush=True)
        _run(plan, result)
    finally:
        signal.signal(signal.SIGINT, before)
    result.seconds = time.perf_counter() - began
    result.ended_at = datetime.now(UTC).isoformat(timespec="seconds")
    return result


def _run(plan: Plan, result: Result) -> None:
    began, console = time.perf_counter(), Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("simulation", total=plan.seeds)
        for share in _shares(plan, is_over=lambda: result.is_interrupted):
            result.played += share.played
            result.slowest = max(result.slowest, share.slowest)
            result.failures += share.failures
            for failure in share.failures:
                progress.console.print(f"BROKEN seed {failure.seed}: {failure.violation}", markup=False, soft_wrap=True)
            progress.update(bar, advance=share.played)
            is_late = plan.seconds is not None and time.perf_counter() - began > plan.seconds
            if is_late or (result.failures and not plan.keeps_going):
                break


def write(result: Result, path: Path) -> None:
    """Write a result as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(result), indent=2) + "\n")


def read(path: Path) -> Result:
    """Read a result."""
    members: dict[str, Any] = json.loads(path.read_text())
    return Result(**{**members, "failures": [Failure(**failure) for failure in members["failures"]]})


def publish(result: Result, page: Path = PAGE) -> None:
    """Write a result into the page, in place of the one before."""
    before, _, rest = page.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    page.write_text(f"{before}{_BEGIN}\n{_table(result)}{_END}{after}")


def _table(result: Result) -> str:
    rows = {
        "commit": f"`{result.commit}`",
        "seeds": f"{result.first:,} to {result.first + result.played - 1:,}",
        "schedules": f"{result.played:,}" + (f" of {result.planned:,}, interrupted" if result.is_interrupted else ""),
        "broken rules": f"{len(result.failures)}",
        "duration": f"{result.seconds / 60:.0f} min on {result.jobs} cores, Python {result.python}",
        "longest way back to the desired state": f"{result.slowest:g} simulated seconds",
        "ended": result.ended_at,
    }
    lines = ["", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items()), ""]
    lines += [f"- seed {failure.seed}: {failure.violation}" for failure in result.failures]
    return "\n".join([*lines, *([""] if result.failures else [])])


def _shares(plan: Plan, *, is_over: Callable[[], bool]) -> Iterator[_Share]:
    """Play the seeds in shares; those that have begun are played to their end."""
    ranges = (
        range(start, min(plan.first + plan.seeds, start + _SHARE))
        for start in range(plan.first, plan.first + plan.seeds, _SHARE)
    )
    if plan.jobs == 1:
        yield from map(_play, itertools.takewhile(lambda _: not is_over(), ranges))
        return
    pool = ProcessPoolExecutor(plan.jobs, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))
    waiting = {pool.submit(_play, seeds) for seeds in itertools.islice(ranges, 2 * plan.jobs)}
    try:
        while waiting and not is_over():
            done, waiting = wait(waiting, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            waiting |= {pool.submit(_play, seeds) for seeds in itertools.islice(ranges, len(done))}
            yield from (future.result() for future in done)
        yield from (future.result() for future in waiting if not future.cancel())
    finally:
        pool.shutdown(cancel_futures=True)


def _play(seeds: range) -> _Share:
    slowest, failures = 0.0, []
    gc.collect()
    gc.disable()  # schedules leave little behind, and it goes with the next share
    try:
        for seed in seeds:
            outcome = play(draw(seed))
            slowest = max(slowest, outcome.seconds)
            if outcome.violation is not None:
                failures.append(Failure(seed=seed, violation=str(outcome.violation)))
    finally:
        gc.enable()
    return _Share(played=len(seeds), slowest=slowest, failures=failures)


def _commit() -> str:
    """Return the commit of the code that is played, with a mark if files differ from it."""
    command = ["git", "-C", str(PROJECT), "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]
    described = subprocess.run(command, capture_output=True, text=True, check=False)
    return described.stdout.strip() or f"unknown ({Path(sys.executable).name})"
