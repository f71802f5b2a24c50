"""The token bucket and retries after throttling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.kube import errors, rate_limit
from maestropy.kube.rate_limit import RetryLimits


def waits(times: list[float], *, qps: float, burst: int) -> list[float]:
    bucket = rate_limit.full_bucket(qps=qps, burst=burst, now=times[0])
    waits = []
    for now in times:
        bucket, wait = rate_limit.take(bucket, now=now)
        waits.append(round(wait, 6))
    return waits


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param([0.0] * 5, [0, 0, 0.5, 1.0, 1.5], id="burst-then-qps"),
        pytest.param([0.0, 0.0, 0.5, 1.0], [0, 0, 0, 0], id="at-qps"),
        pytest.param([0.0, 0.0, 100.0, 100.0, 100.0], [0, 0, 0, 0, 0.5], id="idle-time-fills-up-to-the-burst"),
        pytest.param([5.0, 4.0, 4.0], [0, 0, 0.5], id="clock-went-back"),
    ],
)
def test_bucket(times: list[float], expected: list[float]) -> None:
    assert waits(times, qps=2, burst=2) == expected


def test_no_limit() -> None:
    assert waits([0.0] * 3, qps=0, burst=0) == [0, 0, 0]


@given(st.lists(st.floats(0, 3), min_size=1, max_size=60))
def test_never_more_than_burst_and_qps_allow(pauses: list[float]) -> None:
    now, sent = 0.0, []
    bucket = rate_limit.full_bucket(qps=5, burst=3, now=now)
    for pause in pauses:
        now += pause
        bucket, wait = rate_limit.take(bucket, now=now)
        sent.append(now + wait)
    for first in range(len(sent)):
        for last in range(first, len(sent)):
            assert last - first + 1 <= 3 + 5 * (sent[last] - sent[first]) + 1e-6


@pytest.mark.parametrize(
    ("error", "attempt", "expected"),
    [
        pytest.param(errors.TooManyRequests("x", retry_after=2), 1, 2, id="retry-after"),
        pytest.param(errors.Unavailable("x", retry_after=1), 2, 1, id="unavailable-with-retry-after"),
        pytest.param(errors.TooManyRequests("x"), 1, None, id="no-retry-after"),
        pytest.param(errors.TooManyRequests("x", retry_after=2), 3, None, id="attempts-exhausted"),
        pytest.param(errors.TooManyRequests("x", retry_after=60), 1, None, id="retry-after-too-long"),
        pytest.param(errors.Conflict("x"), 1, None, id="not-retryable"),
        pytest.param(errors.Timeout("x"), 1, None, id="timeout"),
    ],
)
def test_retry(error: errors.KubeError, attempt: int, expected: float | None) -> None:
    assert rate_limit.wait_before_retry(error, attempt=attempt, retries=RetryLimits(attempts=3)) == expected
