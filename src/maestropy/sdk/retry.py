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
from maestropy.sdk.errors import ConfigError, MaestroError, Unauthorized

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

    def __post_init__(self) -> None:
        """Raise ConfigError for numbers that no policy can have."""
        if not isinstance(self.attempts, int) or isinstance(self.attempts, bool) or self.attempts < 1:
            raise ConfigError(f"attempts of RetryPolicy is {self.attempts!r}", advice="use 1 or more")
        for name in ("base_seconds", "cap_seconds", "deadline_seconds"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise ConfigError(f"{name} of RetryPolicy is {value!r}", advice="use 0 seconds or more")


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
        """Return the result of `call`, after as many attempts as the policy allows.

        A cancellation has the last error as its cause: who sets a time limit can say why there were retries.
        """
        failed: list[MaestroError] = []
        try:
            return await self._attempts(call, is_idempotent=is_idempotent, failed=failed)
        except asyncio.CancelledError as cancelled:
            cancelled.__cause__ = failed[-1] if failed else cancelled.__cause__
            raise

    async def _attempts(
        self, call: Callable[[], Awaitable[Result]], *, is_idempotent: bool, failed: list[MaestroError]
    ) -> Result:
        started = self.monotonic()
        pauses = backoff.delays(
            base=self.policy.base_seconds, factor=2, cap=self.policy.cap_seconds, jitter=self.jitter
        )
        while True:
            token = self.current_token()
            try:
                return await call()
            except MaestroError as error:
                error.hide(token)
                failed.append(error)
                attempt = Attempt(
                    number=len(failed),
                    elapsed=self.monotonic() - started,
                    pause=next(pauses),
                    is_idempotent=is_idempotent,
                    token_has_changed=self.current_token() != token,
                )
                pause = pause_before_next(error, attempt, policy=self.policy)
                if pause is None:
                    raise
                if attempt.number == 1:
                    _log.info("%s; trying again for up to %g seconds", error, self.policy.deadline_seconds)
            await asyncio.sleep(pause)
