"""How can a test make this API misbehave? Answers that fail, answers that are late, a history that is gone."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from maestropy.sandbox.kubeapi.paths import Call
from maestropy.sandbox.kubeapi.problems import Problem

_REASONS = {429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout", 403: "Forbidden"}


@dataclass(slots=True)
class _Failure:
    left: int
    status: int
    retry_after: int | None
    where: Callable[[Call], bool]


def _everywhere(_call: Call) -> bool:
    return True


class Faults:
    """Knobs of one cluster; calls about objects only, discovery is never touched."""

    def __init__(self, forget: Callable[[], None]) -> None:
        self._failures: list[_Failure] = []
        self._delay = 0.0
        self._forget = forget

    def fail_next(
        self,
        count: int = 1,
        *,
        status: int = 500,
        retry_after: int | None = None,
        where: Callable[[Call], bool] = _everywhere,
    ) -> None:
        """Let the next `count` calls that fit `where` fail with `status`."""
        self._failures.append(_Failure(left=count, status=status, retry_after=retry_after, where=where))

    def delay(self, seconds: float) -> None:
        """Let every call wait this long before it is served; 0 ends it."""
        self._delay = seconds

    def expire_history(self) -> None:
        """Forget all events and open lists: every watch and continue token from before is answered with 410."""
        self._forget()

    def clear(self) -> None:
        """Serve everything properly again."""
        self._failures.clear()
        self._delay = 0.0

    async def meet(self, call: Call) -> None:
        """Do to a call what was asked for; raises the failure it gets."""
        if self._delay:
            await asyncio.sleep(self._delay)
        for failure in self._failures:
            if failure.left > 0 and failure.where(call):
                failure.left -= 1
                self._failures = [each for each in self._failures if each.left > 0]
                raise _problem(failure)


def _problem(failure: _Failure) -> Problem:
    details = {"retryAfterSeconds": failure.retry_after} if failure.retry_after is not None else None
    reason = _REASONS.get(failure.status, "InternalError")
    return Problem(failure.status, reason, "the sandbox was told to fail this request", details=details)
