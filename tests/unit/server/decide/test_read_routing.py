"""When a read replica may answer a list."""

from dataclasses import replace

import pytest

from maestropy.server.decide.read_routing import Freshness, Reason, Replica, identity_problem, lag_problem
from maestropy.wire.positions import Position

PRIMARY = Position(system=1, timeline=3, lsn=100)
REPLICA = Replica(is_standby=True, system=1, timeline=3, replayed=100, database_id="a")


@pytest.mark.parametrize(
    ("replica", "reason"),
    [
        pytest.param(REPLICA, None, id="standby"),
        pytest.param(replace(REPLICA, system=2), Reason.OTHER_DATABASE, id="restored-dump"),
        pytest.param(replace(REPLICA, database_id="b"), Reason.OTHER_DATABASE, id="other-identity"),
        pytest.param(replace(REPLICA, database_id=""), Reason.OTHER_DATABASE, id="no-identity"),
        pytest.param(replace(REPLICA, is_standby=False), Reason.NOT_A_STANDBY, id="primary"),
        pytest.param(replace(REPLICA, is_standby=False, timeline=4), Reason.NOT_A_STANDBY, id="promoted"),
        pytest.param(replace(REPLICA, timeline=2), Reason.OTHER_TIMELINE, id="not-yet-after-a-promotion"),
        pytest.param(replace(REPLICA, timeline=4), Reason.OTHER_TIMELINE, id="of-another-primary"),
    ],
)
def test_replica_is_one_of_this_database(replica: Replica, reason: Reason | None) -> None:
    problem = identity_problem(replica, primary=PRIMARY, database_id="a")
    assert (problem and problem.reason) == reason


def test_age_is_that_of_the_newest_position_that_was_replayed() -> None:
    freshness = Freshness()
    assert freshness.age(0, replayed=100) is None
    for time, lsn in ((10.0, 100), (11.0, 200), (12.0, 300)):
        freshness.note(time, replace(PRIMARY, lsn=lsn))
    assert freshness.age(12.5, replayed=99) is None
    assert freshness.age(12.5, replayed=100) == 2.5
    assert freshness.age(12.5, replayed=299) == 1.5
    assert freshness.age(12.5, replayed=400) == 0.5


def test_primary_without_writes_does_not_make_its_replica_old() -> None:
    freshness = Freshness()
    for time in range(100):
        freshness.note(time, PRIMARY)
    assert freshness.age(99.5, replayed=100) == 0.5


def test_position_of_another_timeline_proves_nothing() -> None:
    freshness = Freshness()
    freshness.note(1, PRIMARY)
    freshness.note(2, replace(PRIMARY, timeline=4, lsn=150))
    assert freshness.age(2, replayed=140) is None


def test_replica_that_stopped_for_long_is_never_taken_for_younger() -> None:
    freshness = Freshness()
    for time in range(10_000):
        freshness.note(time, replace(PRIMARY, lsn=time))
    assert freshness.age(10_000, replayed=5_000) is None
    assert freshness.age(10_000, replayed=9_990) == 10


@pytest.mark.parametrize(("age", "reason"), [(None, Reason.LAG), (5.1, Reason.LAG), (5.0, None), (0.0, None)], ids=str)
def test_age_is_limited(age: float | None, reason: Reason | None) -> None:
    problem = lag_problem(age, limit=5)
    assert (problem and problem.reason) == reason
