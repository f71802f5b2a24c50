"""Play schedules: `python -m tests.simulation --schedules 1000`, or one again: `--seed 57`; see docs/simulation.md."""

import argparse
import contextlib
import gc
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from simulation.mutations import MUTATIONS
from simulation.play import Outcome, play
from simulation.schedule import Schedule, draw
from simulation.shrink import shrink

_HASH_SEED = "0"
_SHARE = 50


def main() -> int:
    """Play, and return 1 when a rule was broken."""
    options = _options()
    if os.environ.get("PYTHONHASHSEED") != _HASH_SEED:
        # Sets of strings are walked in another order in every process otherwise, and no run could be repeated.
        os.execve(
            sys.executable,
            [sys.executable, str(Path(__file__)), *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": _HASH_SEED},
        )
    planted = next((each for each in MUTATIONS if each.name == options.plant), None)
    with planted.plant() if planted else contextlib.nullcontext():
        if options.seed is not None and options.schedules == 1 and options.seconds is None:
            return _one(draw(options.seed), follow=options.follow)
        return _many(options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="the first seed; alone: play this one and tell everything")
    parser.add_argument("--schedules", type=int, help="how many seeds to play (default: 1 with --seed, else 500)")
    parser.add_argument("--seconds", type=float, help="play for so long instead")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--follow", action="store_true", help="with --seed: tell all that happens")
    parser.add_argument("--plant", choices=[each.name for each in MUTATIONS], help="plant a bug, to see it found")
    options = parser.parse_args()
    if options.schedules is None:
        options.schedules = 1 if options.seed is not None else 500
    return options


def _one(schedule: Schedule, *, follow: bool) -> int:
    outcome = play(schedule, told=print if follow else None)
    print(schedule)
    print(_said(outcome))
    if outcome.violation is None:
        return 0
    rule = outcome.violation.rule

    def still_fails(candidate: Schedule) -> bool:
        found = play(candidate).violation
        return found is not None and found.rule == rule

    smallest = shrink(schedule, still_fails=still_fails)
    print(f"\nshrunk from {len(schedule.steps)} to {len(smallest.steps)} steps:\n{smallest}")
    print(_said(play(smallest)))
    return 1


def _said(outcome: Outcome) -> str:
    if outcome.violation is not None:
        return f"BROKEN {outcome.violation}"
    return f"all rules hold; everything came together {outcome.seconds:g} s after the last trouble"


def _many(options: argparse.Namespace) -> int:
    began, first = time.perf_counter(), options.seed or 0
    deadline = began + options.seconds if options.seconds else None
    last = sys.maxsize if deadline else first + options.schedules
    played, slowest, broken = 0, 0.0, []
    with ProcessPoolExecutor(options.jobs) if options.jobs > 1 else contextlib.nullcontext() as pool:
        for start in range(first, last, _SHARE * options.jobs):
            if deadline and time.perf_counter() > deadline:
                break
            stop = min(last, start + _SHARE * options.jobs)
            shares = [range(at, min(stop, at + _SHARE)) for at in range(start, stop, _SHARE)]
            for count, longest, failed in pool.map(_share, shares) if pool else map(_share, shares):
                played, slowest = played + count, max(slowest, longest)
                broken += failed
            if broken:
                break
    seconds = time.perf_counter() - began
    print(
        f"{played} schedules from seed {first} in {seconds:.1f} s ({60 * played / seconds:.0f} a minute); "
        f"everything came together at most {slowest:g} s after the last trouble"
    )
    for seed, text in broken:
        print(f"BROKEN seed {seed}: {text}\n  again, and shrunk: python -m tests.simulation --seed {seed}")
    return 1 if broken else 0


def _share(seeds: range) -> tuple[int, float, list[tuple[int, str]]]:
    """Play some seeds; returns how many, the longest way back, and what was broken."""
    longest, broken = 0.0, []
    gc.collect()
    gc.disable()  # schedules leave little behind, and it goes with the next share
    try:
        for seed in seeds:
            outcome = play(draw(seed))
            longest = max(longest, outcome.seconds)
            if outcome.violation is not None:
                broken.append((seed, str(outcome.violation)))
    finally:
        gc.enable()
    return len(seeds), longest, broken


if __name__ == "__main__":
    sys.exit(main())
