"""When a request is retried."""

from dataclasses import replace
from typing import Any

import pytest

from maestropy.sdk import errors
from maestropy.sdk.retry import Attempt, Retrier, RetryPolicy, pause_before_next

POLICY = RetryPolicy(attempts=3, deadline_seconds=10)
FIRST = Attempt(number=1, elapsed=0.0, pause=0.5)


def never_sent() -> errors.MaestroError:
    error = errors.Unavailable("refused")
    error.was_sent = False
    return error


def retry_after(seconds: float) -> errors.MaestroError:
    error = errors.Unavailable("busy")
    error.retry_after = seconds
    return error


@pytest.mark.parametrize(
    ("error", "attempt", "pause"),
    [
        pytest.param(errors.Unavailable("x"), FIRST, 0.5, id="unavailable"),
        pytest.param(errors.Timeout("x"), FIRST, 0.5, id="timeout"),
        pytest.param(errors.Unavailable("x"), replace(FIRST, number=3), None, id="last-attempt"),
        pytest.param(errors.Unavailable("x"), replace(FIRST, elapsed=9.8), None, id="after-the-deadline"),
        pytest.param(retry_after(4), FIRST, 4, id="retry-after"),
        pytest.param(errors.Unavailable("x"), replace(FIRST, is_idempotent=False), None, id="not-idempotent"),
        pytest.param(never_sent(), replace(FIRST, is_idempotent=False), 0.5, id="never-sent"),
        pytest.param(errors.Unauthorized("x"), FIRST, None, id="same-token"),
        pytest.param(errors.Unauthorized("x"), replace(FIRST, token_has_changed=True), 0.0, id="rotated-token"),
        pytest.param(
            errors.Unauthorized("x"), replace(FIRST, number=2, token_has_changed=True), None, id="rotated-token-twice"
        ),
        *[
            pytest.param(kind("x"), FIRST, None, id=kind.__name__)
            for kind in (
                errors.NotFound,
                errors.AlreadyExists,
                errors.Conflict,
                errors.Invalid,
                errors.Forbidden,
                errors.ServerError,
                errors.ConfigError,
            )
        ],
    ],
)
def test_pause_before_next_attempt(error: errors.MaestroError, attempt: Attempt, pause: float | None) -> None:
    assert pause_before_next(error, attempt, policy=POLICY) == pause


async def test_retrier_stops_after_the_last_attempt() -> None:
    attempts = 0

    async def call() -> str:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            raise errors.Unavailable("not yet")
        return "done"

    retrier = Retrier(policy=RetryPolicy(attempts=3, base_seconds=0.001), jitter=lambda: 0.0)
    assert await retrier.run(call) == "done"
    attempts = -5
    with pytest.raises(errors.Unavailable):
        await retrier.run(call)
    assert attempts == -2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("attempts", 0),
        ("attempts", -1),
        ("attempts", 1.5),
        ("attempts", True),
        ("base_seconds", -1),
        ("cap_seconds", float("inf")),
        ("deadline_seconds", float("nan")),
        ("deadline_seconds", "30"),
    ],
)
def test_policy_with_an_impossible_number_is_rejected(field: str, value: Any) -> None:
    with pytest.raises(errors.ConfigError, match=rf"{field} of RetryPolicy is {value!r}"):
        RetryPolicy(**{field: value})
