"""The simulation itself: a share of schedules with every test run, planted bugs found and shrunk, runs repeated."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from simulation import memory_statements
from simulation.mutations import MUTATIONS, NO_QUESTION_IN_RETURN, Mutation
from simulation.play import play
from simulation.schedule import Schedule, Step, draw
from simulation.shrink import shrink

from maestropy.store import sql

# Processes of their own, on a machine that may be crowded.
pytestmark = pytest.mark.timeout(400)

SCHEDULES = 30
"""What a test run plays; `make soak` plays for as long as it is told."""


def simulate(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command as people do; its hash seed makes what it finds repeatable."""
    folder = Path(__file__).parent
    source = str(folder.parent.parent / "src")
    return subprocess.run(
        [sys.executable, str(folder), *arguments],
        capture_output=True,
        text=True,
        timeout=170,
        env={**os.environ, "PYTHONPATH": source, "PYTHONHASHSEED": "0"},
        check=False,
    )


def test_no_rule_is_broken() -> None:
    done = simulate("--schedules", str(SCHEDULES))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{SCHEDULES} schedules from seed 0")


# The first seed that finds each, so that a test run does not search for long.
FOUND_BY = {
    "no-spec-resync": 23,
    "no-status-resync": 9,
    "no-question-to-agents": 446,
    "status-undoes-deletion": 0,
    "any-end-counts": 11,
    "no-version-check": 0,
    "answers-before-commit": 0,
    "no-sweep": 34,
    "retries-pile-up": 0,
    "cancellation-is-lost": 8,
    "marked-before-sent": 13,
    "old-copy-is-written-back": 0,
    "end-is-told-early": 0,
    "nothing-is-pruned": 23,
    "own-statuses-only": 0,
    "own-wish-is-refused": 30,
}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_planted_bug_is_found(mutation: Mutation) -> None:
    with mutation.plant():
        found = (play(draw(seed)).violation for seed in range(FOUND_BY[mutation.name], 2000))
        violation = next(each for each in found if each is not None)
    assert violation.rule in mutation.found_as, violation


def test_what_was_lost_with_a_killed_server_is_asked_for_when_the_agent_returns() -> None:
    """A report is at the broker when its only reader dies; when that asks again, the agent is away."""
    schedule = Schedule(
        seed=1097,
        servers=("server-0",),
        consumers=("c0",),
        sources=("source-0", "source-1"),
        bundles=(("b2", "source-1", "c0"),),
        steps=(
            Step(at=0.803, kind="create", who="b2", number=2),
            Step(at=4.502, kind="kill server", who="server-0", number=2),
            Step(at=5.596, kind="cut off", who="agent-c0", number=6),
        ),
        uses_mqtt=True,
    )
    assert play(schedule).violation is None
    with NO_QUESTION_IN_RETURN.plant():
        violation = play(schedule).violation
    assert violation is not None
    assert violation.rule in NO_QUESTION_IN_RETURN.found_as


def test_a_failing_schedule_shrinks_to_what_it_needs() -> None:
    mutation = next(each for each in MUTATIONS if each.name == "status-undoes-deletion")
    steps = (
        Step(at=0.5, kind="create", who="b0", number=4),
        Step(at=1.0, kind="create", who="b1", number=1),
        Step(at=2.0, kind="kill server", who="server-0", number=1),
        Step(at=3.0, kind="update", who="b0", number=2),
        Step(at=4.0, kind="drift", who="c0", number=1),
        Step(at=5.0, kind="delete", who="b0"),
        Step(at=6.0, kind="hang up", who="agent-c0"),
        Step(at=7.0, kind="update", who="b1", number=2),
    )
    schedule = Schedule(
        seed=1,
        servers=("server-0", "server-1"),
        consumers=("c0",),
        sources=("source-0",),
        bundles=(("b0", "source-0", "c0"), ("b1", "source-0", "c0")),
        steps=steps,
    )

    def still_fails(candidate: Schedule) -> bool:
        violation = play(candidate).violation
        return violation is not None and violation.rule == "deletion-stays"

    with mutation.plant():
        assert still_fails(schedule)
        smallest = shrink(schedule, still_fails=still_fails)
        assert still_fails(smallest)
    assert [step.kind for step in smallest.steps] == ["create", "delete"]
    assert (smallest.servers, len(smallest.bundles), smallest.is_rough) == (("server-0",), 1, False)
    assert not still_fails(smallest), "without the planted bug nothing is wrong with it"


def test_the_command_tells_the_shrunk_schedule() -> None:
    one = simulate("--seed", "0", "--plant", "answers-before-commit")
    assert one.returncode == 1, one.stderr
    assert "BROKEN acknowledged-is-stored" in one.stdout
    assert "to 1 steps:\n" in one.stdout


def test_a_seed_is_played_the_same_way_in_every_process() -> None:
    one, other = (simulate("--seed", "6", "--follow") for _ in range(2))
    assert one.returncode == 0, one.stdout[-2000:] + one.stderr
    assert one.stdout == other.stdout


def test_every_statement_of_the_stages_is_played() -> None:
    left_out = {"consumers": {"get", "set_labels", "delete", "count", "page"}}
    for family in memory_statements.FAMILIES:
        for name, text in sql.load(family).items():
            assert (text in memory_statements._BY_TEXT) != (name in left_out.get(family, ())), (family, name)
