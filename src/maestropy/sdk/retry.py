"""Retry failed requests: a pure decision, and the loop that carries it out.

A request is retried if the server did not respond, was overloaded or shutting down, or failed itself. An
unauthenticated request is retried once if the token file has changed. A rejected request is never retried.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from maestropy.aio import backoff, clock
from maestropy.sdk.errors import MaestroError, Unauthorized

Result = TypeVar("Result")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long a request is retried."""

    attempts: int = 6
    """The number of attempts; 1 means no retry."""
    base_seconds: float = 0.2
    """The first pause. It doubles with every attempt, and jitter up to its length keeps clients apart."""
    cap_seconds: float = 5.0
    deadline_seconds: float = 30.0
    """No retry starts after this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A failed attempt."""

    number: int
    """1 for the first."""
    elapsed: float
    """Seconds since the first attempt started."""
    pause: float
    """The next pause in seconds."""
    is_idempotent: bool = True
    """Whether the request may be carried out twice."""
    token_has_changed: bool = False
    """Whether the token file holds another token than the rejected one."""


def pause_before_next(error: MaestroError, attempt: Attempt, *, policy: RetryPolicy) -> float | None:
    """Return the seconds to wait before the next attempt, or None to give up."""
    if isinstance(error, Unauthorized):
        return 0.0 if attempt.number == 1 and attempt.token_has_changed else None
    if not error.is_retryable or attempt.number >= policy.attempts:
        return None
    if error.was_sent and not attempt.is_idempotent:
        return None
    pause = max(attempt.pause, error.retry_after or 0.0)
    return pause if attempt.elapsed + pause <= policy.deadline_seconds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrier:
    """Runs a call with the retries of a policy."""

    policy: RetryPolicy = field(default_factory=RetryPolicy)
    jitter: Callable[[], float] = backoff.jitter
    monotonic: Callable[[], float] = clock.Clock().monotonic
    current_token: Callable[[], str] = str
    """Returns the current token; empty without one."""

    async def run(self, call: Callable[[], Awaitable[Result]], *, is_idempotent: bool = True) -> Result:
        """Return the result of `call`, after as many attempts as the policy allows."""
        started = self.monotonic()
        pauses = backoff.delays(
            base=self.policy.base_seconds, factor=2, cap=self.policy.cap_seconds, jitter=self.jitter
        )
        number = 0
        while True:
            number += 1
            token = self.current_token()
            try:
                return await call()
            except MaestroError as error:
                attempt = Attempt(
                    number=number,
                    elapsed=self.monotonic() - started,
                    pause=next(pauses),
                    is_idempotent=is_idempotent,
                    token_has_changed=self.current_token() != token,
                )
                pause = pause_before_next(error, attempt, policy=self.policy)
                if pause is None:
                    raise
                if number == 1:
                    _log.info("%s; trying again for up to %g seconds", error, self.policy.deadline_seconds)
            await asyncio.sleep(pause)
