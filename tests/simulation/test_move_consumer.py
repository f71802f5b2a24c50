"""Move a consumer to another cell while sources write, with a kill at every point; planted mistakes are found."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from tests.simulation import moves
from tests.simulation.memory_postgres import Engine
from tests.simulation.moves import VICTIMS, Move, Point
from tests.simulation.play import play
from tests.simulation.schedule import Schedule, Step

pytestmark = pytest.mark.timeout(400)


def schedule(point: Point, victim: str, *, seed: int = 1, at: float = 2.0) -> Schedule:
    """Return a move under load: creations, updates and deletions before, while and after it runs."""
    return Schedule(
        seed=seed,
        servers=("server-0", "server-1"),
        consumers=("c0",),
        sources=("source-0",),
        resources=tuple((f"b{number}", "source-0", "c0") for number in range(4)),
        steps=(
            Step(at=0.2, kind="create", who="b0", number=2),
            Step(at=0.3, kind="create", who="b1", number=1),
            Step(at=0.4, kind="create", who="b2", number=2),
            Step(at=1.5, kind="update", who="b0", number=1),
            Step(at=at - 0.02, kind="delete", who="b2", number=0),
            Step(at=at - 0.01, kind="update", who="b1", number=2),
            Step(at=at, kind="move consumer", who="c0", number=moves.plan(point, victim)),
            Step(at=at + 0.005, kind="update", who="b0", number=2),
            Step(at=at + 0.05, kind="create", who="b3", number=2),
            Step(at=at + 1.0, kind="race", who="b1", number=1),
            Step(at=at + 4.0, kind="delete", who="b0", number=0),
            Step(at=at + 5.0, kind="create again", who="b0", number=1),
        ),
    )


@pytest.mark.long
def test_nothing_is_lost_or_deleted_by_a_move() -> None:
    for point in Point:
        victim = VICTIMS[point % len(VICTIMS)]
        outcome = play(schedule(point, victim))
        assert outcome.violation is None, f"{victim} killed before {point.name}: {outcome.violation}"


@pytest.mark.long
def test_drawn_schedules_with_a_move() -> None:
    for seed in range(60):
        outcome = play(moves.draw_move(seed))
        assert outcome.violation is None, f"seed {seed}: {outcome.violation}"


@pytest.mark.long
@pytest.mark.parametrize("victim", VICTIMS)
def test_nothing_is_lost_or_deleted_whoever_is_killed_at_any_point(victim: str) -> None:
    for point in Point:
        outcome = play(schedule(point, victim))
        assert outcome.violation is None, f"{victim} killed before {point.name}: {outcome.violation}"


def _copy_is_not_checked() -> Any:
    """What is there is taken for complete: a copy that was interrupted."""
    return mock.patch.object(Move, "is_copied", lambda self: bool(self._rows(self.new)) or _ORIGINAL_CHECK(self))


def _writers_are_not_waited_for() -> Any:
    """A transaction that began before the freeze commits after the copy."""

    async def at_once(_self: Move) -> None:
        return None

    return mock.patch.object(Move, "wait_for_writers", at_once)


_ORIGINAL_CHECK = Move.is_copied


def _nothing_is_frozen() -> Any:
    """Sources write to the old cell while it is copied."""
    return mock.patch.object(Engine, "frozen", property(lambda _: set(), lambda *_: None), create=True)


def _rows_get_new_times() -> Any:
    """The copy does not keep the creation times, so that the works are new incarnations."""

    async def copy(self: Move) -> None:
        await _ORIGINAL_COPY(self)
        for row in self._rows(self.new).values():
            row["created_at"] = self.run.loop.clock().now()

    return mock.patch.multiple(Move, copy=copy, is_copied=lambda self: bool(self._rows(self.new)))


_ORIGINAL_COPY = Move.copy


@pytest.mark.parametrize(
    ("plant", "rules"),
    [
        pytest.param(_copy_is_not_checked, {"acknowledged-is-stored"}, id="copy-is-not-checked"),
        pytest.param(
            _writers_are_not_waited_for,
            {"acknowledged-is-stored", "one-cell-decides"},
            id="no-wait",
            marks=pytest.mark.long,
        ),
        pytest.param(
            _nothing_is_frozen,
            {"acknowledged-is-stored", "one-cell-decides"},
            id="nothing-is-frozen",
            marks=pytest.mark.long,
        ),
        pytest.param(_rows_get_new_times, {"acknowledged-is-stored"}, id="new-creation-times"),
    ],
)
def test_planted_mistake_of_the_mover_is_found(plant: Callable[[], Any], rules: set[str]) -> None:
    with plant():
        for seed in range(40):
            for point in (Point.MIDDLE_OF_COPY, Point.COPY, Point.FREEZE):
                violation = play(schedule(point, "mover", seed=seed)).violation
                if violation is not None:
                    assert violation.rule in rules, violation
                    return
    pytest.fail("the mistake was not found")
