"""When to try again."""

import asyncio
from dataclasses import replace

import pytest

from maestropy.sdk import errors
from maestropy.sdk.retry import Attempt, Retrier, RetryPolicy, pause_before_next

POLICY = RetryPolicy(attempts=3, deadline_seconds=10)
FIRST = Attempt(number=1, elapsed=0.0, pause=0.5)


def never_sent() -> errors.MaestroError:
    error = errors.Unavailable("refused")
    error.was_sent = False
    return error


def later(seconds: float) -> errors.MaestroError:
    error = errors.Unavailable("busy")
    error.retry_after = seconds
    return error


@pytest.mark.parametrize(
    ("error", "attempt", "pause"),
    [
        pytest.param(errors.Unavailable("x"), FIRST, 0.5, id="nobody-answers"),
        pytest.param(errors.Timeout("x"), FIRST, 0.5, id="late"),
        pytest.param(errors.Unavailable("x"), replace(FIRST, number=3), None, id="often-enough"),
        pytest.param(errors.Unavailable("x"), replace(FIRST, elapsed=9.8), None, id="too-late-to-wait"),
        pytest.param(later(4), FIRST, 4, id="the-server-says-when"),
        pytest.param(errors.Unavailable("x"), replace(FIRST, is_idempotent=False), None, id="may-have-been-done"),
        pytest.param(never_sent(), replace(FIRST, is_idempotent=False), 0.5, id="cannot-have-been-done"),
        pytest.param(errors.Unauthorized("x"), FIRST, None, id="same-token-again"),
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
def test_decision(error: errors.MaestroError, attempt: Attempt, pause: float | None) -> None:
    assert pause_before_next(error, attempt, policy=POLICY) == pause


def test_the_driver_tries_as_often_as_allowed() -> None:
    tries = 0

    async def call() -> str:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise errors.Unavailable("not yet")
        return "done"

    retrier = Retrier(policy=RetryPolicy(attempts=3, base_seconds=0.001), chance=lambda: 0.0)
    assert asyncio.run(retrier.run(call)) == "done"
    tries = -5
    with pytest.raises(errors.Unavailable):
        asyncio.run(retrier.run(call))
    assert tries == -2
