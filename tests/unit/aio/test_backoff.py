"""Backoff delays grow exponentially, are spread by jitter and never exceed the cap."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from maestropy.aio import backoff


def test_delays_without_jitter_double_up_to_the_cap() -> None:
    delays = backoff.delays(base=0.5, factor=2, cap=3, jitter=lambda: 0.0)
    assert list(islice(delays, 5)) == [0.5, 1, 2, 3, 3]


def test_full_jitter_doubles_each_delay_up_to_the_cap() -> None:
    delays = backoff.delays(base=0.5, factor=2, cap=3, jitter=lambda: 1.0)
    assert list(islice(delays, 4)) == [1, 2, 3, 3]


@given(
    base=st.floats(0.001, 10),
    factor=st.floats(1, 10),
    cap=st.floats(0.001, 100),
    jitter=st.lists(st.floats(0, 1), min_size=20),
)
def test_delays_are_positive_and_at_most_the_cap(base: float, factor: float, cap: float, jitter: list[float]) -> None:
    randoms = iter(jitter)
    delays = backoff.delays(base=base, factor=factor, cap=cap, jitter=lambda: next(randoms))
    assert all(0 < delay <= cap for delay in islice(delays, 20))
