"""Make a failing schedule small: leave out whatever the failure does not need.

Steps are left out in halves, then quarters, and at last one by one, as long as the same rule is still broken; then a
calm network and fewer servers are tried. Every try is a run, and runs are cheap.
"""

from collections.abc import Callable
from dataclasses import replace

from tests.simulation.schedule import Schedule

MOST_TRIES = 300


def shrink(schedule: Schedule, *, still_fails: Callable[[Schedule], bool]) -> Schedule:
    """Return the smallest schedule found that still fails."""
    tries = 0

    def fails(candidate: Schedule) -> bool:
        nonlocal tries
        tries += 1
        return tries <= MOST_TRIES and still_fails(candidate)

    smallest = _fewer_steps(schedule, fails)
    for simpler in (
        replace(smallest, is_rough=False),
        _on_one_server(smallest),
        replace(_on_one_server(smallest), is_rough=False),
    ):
        if simpler != smallest and fails(simpler):
            smallest = simpler
    smallest = _fewer_steps(smallest, fails)
    wanted = {step.who for step in smallest.steps}
    alone = replace(smallest, resources=tuple(resource for resource in smallest.resources if resource[0] in wanted))
    return alone if alone != smallest and fails(alone) else smallest


def _on_one_server(schedule: Schedule) -> Schedule:
    """Leave out the other servers, and the steps that speak of them."""
    others = set(schedule.servers[1:])
    steps = tuple(step for step in schedule.steps if step.who not in others)
    return replace(schedule, servers=schedule.servers[:1], steps=steps)


def _fewer_steps(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Schedule:
    size = max(1, len(schedule.steps) // 2)
    while True:
        start = 0
        while start < len(schedule.steps):
            candidate = schedule.without(schedule.steps[start : start + size])
            if fails(candidate):
                schedule = candidate
            else:
                start += size
        if size == 1:
            return schedule
        size = max(1, size // 2)
