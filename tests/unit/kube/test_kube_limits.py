"""The token bucket and the rule for trying again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.kube import errors, limits
from maestropy.kube.limits import Patience


def waits(times: list[float], *, qps: float, burst: int) -> list[float]:
    bucket = limits.full_bucket(qps=qps, burst=burst, now=times[0])
    found = []
    for now in times:
        bucket, wait = limits.take(bucket, now=now)
        found.append(round(wait, 6))
    return found


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param([0.0] * 5, [0, 0, 0.5, 1.0, 1.5], id="a-burst-then-in-step"),
        pytest.param([0.0, 0.0, 0.5, 1.0], [0, 0, 0, 0], id="at-the-pace"),
        pytest.param([0.0, 0.0, 100.0, 100.0, 100.0], [0, 0, 0, 0, 0.5], id="rest-fills-no-more-than-the-burst"),
        pytest.param([5.0, 4.0, 4.0], [0, 0, 0.5], id="a-clock-that-went-back-gives-nothing"),
    ],
)
def test_bucket(times: list[float], expected: list[float]) -> None:
    assert waits(times, qps=2, burst=2) == expected


def test_no_limit() -> None:
    assert waits([0.0] * 3, qps=0, burst=0) == [0, 0, 0]


@given(st.lists(st.floats(0, 3), min_size=1, max_size=60))
def test_never_more_than_burst_and_pace_allow(pauses: list[float]) -> None:
    now, sent = 0.0, []
    bucket = limits.full_bucket(qps=5, burst=3, now=now)
    for pause in pauses:
        now += pause
        bucket, wait = limits.take(bucket, now=now)
        sent.append(now + wait)
    for first in range(len(sent)):
        for last in range(first, len(sent)):
            assert last - first + 1 <= 3 + 5 * (sent[last] - sent[first]) + 1e-6


@pytest.mark.parametrize(
    ("error", "attempt", "expected"),
    [
        pytest.param(errors.TooManyRequests("x", retry_after=2), 1, 2, id="asked-to-wait"),
        pytest.param(errors.Unavailable("x", retry_after=1), 2, 1, id="unavailable-for-a-moment"),
        pytest.param(errors.TooManyRequests("x"), 1, None, id="no-invitation"),
        pytest.param(errors.TooManyRequests("x", retry_after=2), 3, None, id="often-enough"),
        pytest.param(errors.TooManyRequests("x", retry_after=60), 1, None, id="too-long"),
        pytest.param(errors.Conflict("x"), 1, None, id="for-the-caller"),
        pytest.param(errors.Timeout("x"), 1, None, id="nobody-knows"),
    ],
)
def test_retry(error: errors.KubeError, attempt: int, expected: float | None) -> None:
    assert limits.wait_before_retry(error, attempt=attempt, patience=Patience(attempts=3)) == expected
