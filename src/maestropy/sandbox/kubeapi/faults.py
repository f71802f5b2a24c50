"""Inject faults into the API for tests: failing requests, slow requests, expired watch history."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from maestropy.sandbox.kubeapi.errors import StatusError
from maestropy.sandbox.kubeapi.request_paths import RequestInfo

_REASONS = {429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout", 403: "Forbidden"}


@dataclass(slots=True)
class _Failure:
    remaining: int
    status: int
    retry_after: int | None
    matches: Callable[[RequestInfo], bool]


def _any_request(_call: RequestInfo) -> bool:
    return True


class Faults:
    """The faults of one cluster. They affect requests for objects; discovery always works."""

    def __init__(self, expire_history: Callable[[], None]) -> None:
        self._failures: list[_Failure] = []
        self._delay = 0.0
        self._delays: Callable[[RequestInfo], bool] = _any_request
        self._expire_history = expire_history

    def fail_next(
        self,
        count: int = 1,
        *,
        status: int = 500,
        retry_after: int | None = None,
        matches: Callable[[RequestInfo], bool] = _any_request,
    ) -> None:
        """Fail the next `count` requests for which `matches` is true, with `status`."""
        self._failures.append(_Failure(remaining=count, status=status, retry_after=retry_after, matches=matches))

    def delay(self, seconds: float, *, matches: Callable[[RequestInfo], bool] = _any_request) -> None:
        """Delay every request for which `matches` is true by `seconds`; 0 turns the delay off."""
        self._delay, self._delays = seconds, matches

    def expire_history(self) -> None:
        """Compact all watch caches and expire all continue tokens: older versions are answered with 410."""
        self._expire_history()

    def clear(self) -> None:
        """Remove all faults."""
        self._failures.clear()
        self._delay = 0.0

    async def inject(self, info: RequestInfo) -> None:
        """Delay a request, or raise the failure that was set up for it."""
        if self._delay and self._delays(info):
            await asyncio.sleep(self._delay)
        for failure in self._failures:
            if failure.remaining > 0 and failure.matches(info):
                failure.remaining -= 1
                self._failures = [pending for pending in self._failures if pending.remaining > 0]
                raise _status_error(failure)


def _status_error(failure: _Failure) -> StatusError:
    details = {"retryAfterSeconds": failure.retry_after} if failure.retry_after is not None else None
    reason = _REASONS.get(failure.status, "InternalError")
    return StatusError(failure.status, reason, "a fault was injected into this request", details=details)
