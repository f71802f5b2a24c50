"""Play schedules: `python -m tests.simulation --schedules 1000`, or one again: `--seed 57`; see docs/simulation.md."""

import argparse
import contextlib
import os
import sys
import time
from pathlib import Path

from tests.simulation import campaign
from tests.simulation.mutations import LATE_EVENTS_ARE_APPLIED, MUTATIONS
from tests.simulation.play import Outcome, play
from tests.simulation.schedule import Schedule, draw
from tests.simulation.shrink import shrink

_HASH_SEED = "0"
_ENDLESS = 10**9


def main() -> int:
    """Play, and return 1 when a rule was broken."""
    options = _options()
    if os.environ.get("PYTHONHASHSEED") != _HASH_SEED:
        # Sets of strings are walked in another order in every process otherwise, and no run could be repeated.
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.simulation", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": _HASH_SEED},
        )
    planted = next((each for each in (*MUTATIONS, LATE_EVENTS_ARE_APPLIED) if each.name == options.plant), None)
    with planted.plant() if planted else contextlib.nullcontext():
        if options.publish:
            campaign.publish(campaign.read(options.publish))
            return 0
        if options.seed is not None and options.schedules == 1 and options.seconds is None:
            return _one(draw(options.seed), follow=options.follow)
        return _many(options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="the first seed; alone: play this one and tell everything")
    parser.add_argument("--schedules", type=int, help="how many seeds to play (default: 1 with --seed, else 500)")
    parser.add_argument("--seconds", type=float, help="play for so long instead")
    parser.add_argument("--fresh", action="store_true", help="begin with a seed that nobody has played; it is printed")
    parser.add_argument("--keep-going", action="store_true", help="play on after a broken rule")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--result", type=Path, help="write the result as JSON, with the commit it ran on")
    parser.add_argument("--publish", type=Path, metavar="RESULT", help="write a result into docs/simulation.md")
    parser.add_argument("--follow", action="store_true", help="with --seed: tell all that happens")
    parser.add_argument(
        "--plant",
        choices=[each.name for each in (*MUTATIONS, LATE_EVENTS_ARE_APPLIED)],
        help="plant a bug, to see it found",
    )
    options = parser.parse_args()
    if options.schedules is None:
        options.schedules = _ENDLESS if options.seconds else 1 if options.seed is not None else 500
    return options


def _one(schedule: Schedule, *, follow: bool) -> int:
    outcome = play(schedule, log_line=print if follow else None)
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
    return f"all rules hold; everything converged {outcome.seconds:g} s after the last fault"


def _many(options: argparse.Namespace) -> int:
    first, opening = options.seed or 0, ""
    if options.fresh:
        first = int(time.time()) * 1000
        again = f"python -m tests.simulation --seed {first} --schedules {options.schedules} --jobs {options.jobs}"
        opening = f"fresh seeds from {first}; the same again: {again}"
    plan = campaign.Plan(
        first=first,
        seeds=options.schedules,
        jobs=options.jobs,
        keeps_going=options.keep_going,
        seconds=options.seconds,
        opening=opening,
    )
    result = campaign.run(plan)
    print(result)
    if options.result:
        campaign.write(result, options.result)
        print(f"result: {options.result}")
    return 130 if result.is_interrupted else 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main())
