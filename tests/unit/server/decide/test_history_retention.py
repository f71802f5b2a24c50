"""Which partitions of the history are created, dropped and emptied."""

from datetime import UTC, datetime, timedelta

import pytest

from maestropy.server.decide.history import retention
from maestropy.store.rows import Period

MB = 2**20
LIMITS = retention.Limits(age=timedelta(days=3), bytes=80 * MB)
NOW = datetime(2026, 11, 17, 12, 30, tzinfo=UTC)
DAY = timedelta(days=1)
DEFAULT = retention.Stored("default", 0, None)


def midnight(day: int) -> datetime:
    return datetime(2026, 11, day, tzinfo=UTC)


def of_day(day: int, *, megabytes: float = 1) -> retention.Stored:
    return retention.Stored(f"p{day}", int(megabytes * MB), Period(midnight(day), midnight(day + 1)))


def plan(*partitions: retention.Stored, now: datetime = NOW) -> retention.Plan:
    return retention.plan([DEFAULT, *partitions], now=now, limits=LIMITS)


def test_first_partition_is_of_today() -> None:
    assert plan().create == (Period(midnight(17), midnight(18)),)


def test_partition_of_tomorrow_is_created_two_hours_ahead() -> None:
    assert plan(of_day(17), now=midnight(18) - timedelta(hours=3)).create == ()
    assert plan(of_day(17), now=midnight(18) - timedelta(hours=2)).create == (Period(midnight(18), midnight(19)),)


def test_fast_growth_makes_shorter_partitions() -> None:
    late = midnight(18) - timedelta(hours=1)
    six_hours = plan(of_day(17, megabytes=20), now=late).create
    assert six_hours == (Period(midnight(18), midnight(18) + timedelta(hours=6)),)
    hours = plan(of_day(17, megabytes=70), now=late).create
    assert hours[0] == Period(midnight(18), midnight(18) + timedelta(hours=1))


def test_new_partition_fills_the_gap_between_neighbours() -> None:
    before = retention.Stored("a", MB, Period(midnight(17), midnight(17) + timedelta(hours=5)))
    after = retention.Stored("b", 0, Period(midnight(17) + timedelta(hours=20), midnight(18)))
    assert plan(before, after).create == (
        Period(midnight(17) + timedelta(hours=5), midnight(17) + timedelta(hours=20)),
    )


def test_old_partitions_are_dropped_by_age() -> None:
    assert plan(of_day(12), of_day(13), of_day(14), of_day(17)).drop == (("p12", "age"), ("p13", "age"))


def test_oldest_partitions_are_dropped_by_size() -> None:
    found = plan(of_day(15, megabytes=30), of_day(16, megabytes=40), of_day(17, megabytes=30))
    assert (found.drop, found.empty) == ((("p15", "size"),), "")


def test_partition_in_use_is_emptied_at_twice_the_limit_only() -> None:
    assert plan(of_day(16, megabytes=10), of_day(17, megabytes=150)).empty == ""
    found = plan(of_day(16, megabytes=10), of_day(17, megabytes=170))
    assert (found.drop, found.empty) == ((("p16", "size"),), "p17")
    full_default = retention.Stored("default", 170 * MB, None)
    assert retention.plan([full_default], now=NOW, limits=LIMITS).empty == "default"


def test_future_partitions_are_never_dropped() -> None:
    assert plan(of_day(17, megabytes=90), of_day(18)).drop == ()


@pytest.mark.parametrize("hour", range(24))
def test_there_is_always_a_partition_for_now_and_two_hours(hour: int) -> None:
    now = midnight(17) + timedelta(hours=hour, minutes=59)
    periods = [*plan(now=now).create]
    for moment in (now, now + retention.AHEAD):
        assert any(period.start <= moment < period.end for period in periods)
