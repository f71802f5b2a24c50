"""Try again, where that can help: a decision that reads no clock, and the loop that carries it out.

Repeated are requests that nobody answered, that came too early (overload, shutdown) or that failed on the server's
side; and once, if the token file has changed meanwhile, those the server did not want to know us for. Nothing else: a
refusal is an answer.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from maestropy.aio import backoff, clock
from maestropy.sdk.errors import MaestroError, Unauthorized

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long to go on."""

    attempts: int = 6
    """Tries in all; 1 means never again."""
    base_seconds: float = 0.2
    """The first pause; it doubles, and chance stretches each by up to its own length so that clients do not march."""
    cap_seconds: float = 5.0
    deadline_seconds: float = 30.0
    """No pause begins after this long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A try that failed."""

    number: int
    """1 for the first."""
    elapsed: float
    """Seconds since the first began."""
    pause: float
    """How long the next pause would be."""
    is_idempotent: bool = True
    """Whether doing it twice is the same as doing it once."""
    token_has_changed: bool = False
    """Whether the token file now holds another token than the one just refused."""


def pause_before_next(error: MaestroError, attempt: Attempt, *, policy: RetryPolicy) -> float | None:
    """Return the seconds to wait before trying again, or None to give up."""
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
    """Carries the policy out."""

    policy: RetryPolicy = field(default_factory=RetryPolicy)
    chance: Callable[[], float] = random.random
    monotonic: Callable[[], float] = clock.Clock().monotonic
    current_token: Callable[[], str] = str
    """What the token file holds now; empty without one."""

    async def run(self, call: Callable[[], Awaitable[Result]], *, is_idempotent: bool = True) -> Result:
        """Return what `call` returns, after as many tries as the policy allows."""
        started = self.monotonic()
        pauses = backoff.delays(
            base=self.policy.base_seconds, factor=2, cap=self.policy.cap_seconds, jitter=self.chance
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
            await asyncio.sleep(pause)
