"""Fights slow down, and end."""

from maestropy.agent.repairs import Repairs


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_first_repairs_come_at_once_and_then_ever_slower() -> None:
    time = Time()
    repairs = Repairs(monotonic=time, longest_seconds=10)
    waits = []
    for _ in range(8):
        waits.append(repairs.seconds_to_wait("key"))
        time.now += waits[-1]
        repairs.note("key")
    assert waits == [0, 0, 0, 1, 2, 4, 8, 10]
    assert repairs.seconds_to_wait("another") == 0


def test_quiet_time_ends_a_fight() -> None:
    time = Time()
    repairs = Repairs(monotonic=time, longest_seconds=10)
    for _ in range(6):
        repairs.note("key")
    time.now += 100
    assert repairs.seconds_to_wait("key") == 0
    repairs.note("key")
    assert repairs.seconds_to_wait("key") == 0


def test_object_that_is_no_longer_ours() -> None:
    repairs = Repairs(monotonic=Time(), longest_seconds=10)
    for _ in range(6):
        repairs.note("key")
    repairs.forget("key")
    assert repairs.seconds_to_wait("key") == 0
