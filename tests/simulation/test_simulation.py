"""The simulation itself: a share of schedules with every test run, planted bugs found and shrunk, runs repeated."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from maestropy.store import sql
from tests.simulation import campaign, memory_statements
from tests.simulation.mutations import MUTATIONS, NO_STATUS_REQUEST_IN_RETURN, UNANSWERED_RECORD_IS_NOT_READ, Mutation
from tests.simulation.play import play
from tests.simulation.schedule import Schedule, Step, draw
from tests.simulation.shrink import shrink

# Processes of their own, on a machine that may be crowded.
pytestmark = pytest.mark.timeout(400)

SCHEDULES = 30
"""What a test run plays, the same in every run; CI and `make simulate` play fresh seeds."""


PROJECT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PROJECT / "src"), "PYTHONHASHSEED": "0"}
"""The hash seed makes what the command finds repeatable."""


def simulate(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command as people do."""
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=170,
        env=ENVIRONMENT,
        check=False,
    )


@pytest.mark.long
def test_no_rule_is_broken() -> None:
    done = simulate("--schedules", str(SCHEDULES))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{SCHEDULES} schedules from seed 0")


def test_fresh_seeds_are_printed_with_the_command_that_plays_them_again(tmp_path: Path) -> None:
    done = simulate("--fresh", "--schedules", "2", "--result", str(tmp_path / "result.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    again = re.search(r"python -m tests.simulation --seed (\d+) --schedules 2 --jobs 1", done.stdout)
    assert again is not None
    result = campaign.read(tmp_path / "result.json")
    assert (result.first, result.played, result.failures) == (int(again[1]), 2, [])
    assert result.commit


@pytest.mark.long
def test_interrupted_campaign_writes_what_it_played(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    command = [sys.executable, "-m", "tests.simulation", "--fresh", "--schedules", "100000", "--jobs", "2"]
    with subprocess.Popen(
        [*command, "--result", str(path)], cwd=PROJECT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert "fresh seeds from" in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        rest = running.stdout.read()
    assert running.returncode == 130, rest
    assert "interrupted" in rest
    assert campaign.read(path).is_interrupted


def test_result_replaces_the_published_one(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- result: begin -->\nold\n<!-- result: end -->\nafter\n")
    failure = campaign.Failure(seed=7, violation="deletion-stays: b0")
    result = campaign.Result(commit="abc", first=5, planned=10, played=10, failures=[failure], ended_at="now")
    for _ in range(2):
        campaign.publish(result, page)
    text = page.read_text()
    assert text.startswith("before\n<!-- result: begin -->\n")
    assert text.endswith("<!-- result: end -->\nafter\n")
    assert text.count("| commit | `abc` |") == 1
    assert "- seed 7: deletion-stays: b0" in text
    assert "old" not in text


# A seed that finds each, so that a test run does not search for long.
FOUND_BY = {
    "no-spec-resync": 11,
    "no-status-resync": 9,
    "no-status-request": 90,
    "status-undoes-deletion": 0,
    "any-deleted-status-counts": 56,
    "no-version-check": 0,
    "answers-before-commit": 0,
    "no-rescan": 25,
    "retries-pile-up": 0,
    "cancellation-is-lost": 2,
    "reconciled-before-sent": 0,
    "old-copy-is-written-back": 139,
    "deleted-status-is-sent-early": 0,
    "nothing-is-pruned": 1,
    "own-statuses-only": 0,
    "own-request-is-rejected": 2,
    "deletion-without-history": 0,
    "orphans-are-deleted": 42,
    "any-database-decides": 22,
}


@pytest.mark.long
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_planted_bug_is_found(mutation: Mutation) -> None:
    if mutation.is_harmless:
        pytest.skip(f"not a bug on Python {sys.version_info.major}.{sys.version_info.minor}")
    with mutation.plant():
        first = FOUND_BY[mutation.name]
        found = (play(draw(seed)).violation for seed in range(first, first + 500))
        violation = next(each for each in found if each is not None)
    assert violation.rule in mutation.found_as, violation


def test_status_lost_with_a_killed_server_is_requested_when_the_agent_resyncs() -> None:
    """A status update is at the broker when its only receiver is killed; when that requests it, the agent is away."""

    def schedule(kill_at: float) -> Schedule:
        return Schedule(
            seed=4,
            servers=("server-0",),
            consumers=("c0",),
            sources=("source-0", "source-1"),
            resources=(("b2", "source-1", "c0"),),
            steps=(
                Step(at=0.803, kind="create", who="b2", number=2),
                Step(at=kill_at, kind="kill server", who="server-0", number=2),
                Step(at=kill_at + 1, kind="cut off", who="agent-c0", number=6),
            ),
            uses_mqtt=True,
        )

    lines: list[str] = []
    with NO_STATUS_REQUEST_IN_RETURN.plant():
        # When the update is on its way depends on every message before it: a run without the kill tells.
        play(schedule(5.0), log_line=lines.append)
        received, *_ = (float(line.split()[0]) for line in lines if "received status update for resource" in line)
        stored, *_ = (float(line.split()[0]) for line in lines if "database: b2 v1 -> v1 status of 1" in line)
        killed_between = schedule(round((received + stored) / 2, 3))
        violation = play(killed_between).violation
    assert play(killed_between).violation is None
    assert violation is not None
    assert violation.rule in NO_STATUS_REQUEST_IN_RETURN.found_as


@pytest.mark.long
def test_spec_whose_record_got_no_answer_is_not_replaced_by_an_older_one() -> None:
    """An agent records a version; the answer is lost, and a backup without that version is restored."""

    def schedule(lost_at: float) -> Schedule:
        return Schedule(
            seed=11,
            servers=("server-0",),
            consumers=("c0",),
            sources=("source-0",),
            resources=(("b0", "source-0", "c0"),),
            steps=(
                Step(at=0.5, kind="create", who="b0", number=1),
                Step(at=2.0, kind="update", who="b0", number=2),
                Step(at=lost_at, kind="lose cluster", who="c0", number=2),
                Step(at=lost_at, kind="restore backup", who="database", number=2),
            ),
            is_rough=True,
        )

    lines: list[str] = []
    play(schedule(9.0), log_line=lines.append)
    applied, *_ = (float(line.split()[0]) for line in lines if "cluster c0: b0-0 changed token=b0.2" in line)
    # The record is written some milliseconds after the object; which one depends on every message before it.
    schedules = [schedule(round(applied + milliseconds / 1000, 3)) for milliseconds in range(4, 21, 2)]
    with UNANSWERED_RECORD_IS_NOT_READ.plant():
        rules = {violation.rule for each in schedules if (violation := play(each).violation) is not None}
    assert rules == set(UNANSWERED_RECORD_IS_NOT_READ.found_as)
    assert [play(each).violation for each in schedules] == [None] * len(schedules)


def test_failing_schedule_shrinks_to_the_steps_it_needs() -> None:
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
        resources=(("b0", "source-0", "c0"), ("b1", "source-0", "c0")),
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
    assert (smallest.servers, len(smallest.resources), smallest.is_rough) == (("server-0",), 1, False)
    assert not still_fails(smallest), "without the planted bug nothing is wrong with it"


@pytest.mark.long
def test_command_prints_the_shrunk_schedule() -> None:
    one = simulate("--seed", "0", "--plant", "answers-before-commit")
    assert one.returncode == 1, one.stderr
    assert "BROKEN acknowledged-is-stored" in one.stdout
    assert "to 1 steps:\n" in one.stdout


@pytest.mark.long
def test_seed_is_played_the_same_way_in_every_process() -> None:
    one, other = (simulate("--seed", "6", "--follow") for _ in range(2))
    assert one.returncode == 0, one.stdout[-2000:] + one.stderr
    assert one.stdout == other.stdout


def test_every_statement_of_the_controllers_is_simulated() -> None:
    left_out = {
        "consumers": {"get", "set_labels", "delete", "count", "page"},
        "data_safety": {"holds", "hold_of", "adopt", "holds_of_sources"},
        # What the double never needs: it has one partition for all time, and the simulation does not speak REST.
        "history": {"page", "consumer_name", "size", "lock", "default_has_rows"},
        "actions": {
            *("consumer_facts", "works_of_consumer", "work", "lock_works", "versions_of_works", "request_resync"),
            *("pauses", "remove_consumer", "mark_released", "orphans", "agent_side"),
            *("remove_orphan_holds", "remove_orphan_pauses", "remove_orphan_agents"),
            *("remove_orphan_events", "remove_orphan_status_events"),
        },
    }
    for family in memory_statements.FAMILIES:
        for name, text in sql.load(family).items():
            assert (text in memory_statements._BY_TEXT) != (name in left_out.get(family, ())), (family, name)
