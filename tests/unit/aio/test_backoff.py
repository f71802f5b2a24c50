"""Delays grow, spread and end at their cap."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from maestropy.aio import backoff


def test_without_chance_they_double_up_to_the_cap() -> None:
    found = backoff.delays(base=0.5, factor=2, cap=3, jitter=lambda: 0.0)
    assert list(islice(found, 5)) == [0.5, 1, 2, 3, 3]


def test_with_the_most_chance_each_is_twice_as_long_but_never_above_the_cap() -> None:
    found = backoff.delays(base=0.5, factor=2, cap=3, jitter=lambda: 1.0)
    assert list(islice(found, 4)) == [1, 2, 3, 3]


@given(
    base=st.floats(0.001, 10),
    factor=st.floats(1, 10),
    cap=st.floats(0.001, 100),
    jitter=st.lists(st.floats(0, 1), min_size=20),
)
def test_none_is_negative_or_above_the_cap(base: float, factor: float, cap: float, jitter: list[float]) -> None:
    chance = iter(jitter)
    found = backoff.delays(base=base, factor=factor, cap=cap, jitter=lambda: next(chance))
    assert all(0 < delay <= cap for delay in islice(found, 20))
