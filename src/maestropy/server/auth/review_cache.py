"""Cache the verdicts of Kubernetes reviews for a short time.

Concurrent callers with the same key share one review. They also share its failure, but a failure is never cached and
never allows anything.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

Clock = Callable[[], float]
"""Monotonic seconds."""

POSITIVE_SECONDS: Final = 10.0
"""How long a revoked permission can stay in effect."""

NEGATIVE_SECONDS: Final = 2.0
"""Short, because a client often waits for a permission that was just granted."""

_Verdict = TypeVar("_Verdict")


@dataclass(slots=True)
class _PendingReview(Generic[_Verdict]):
    """A review in progress; `verdict` and `failure` both stay None if its caller was cancelled."""

    done: asyncio.Event = field(default_factory=asyncio.Event)
    verdict: _Verdict | None = None
    failure: Exception | None = None


class VerdictCache(Generic[_Verdict]):
    """A bounded cache of verdicts: truthy ones are positive, None is not allowed. For one event loop."""

    def __init__(self, *, clock: Clock, capacity: int = 4096) -> None:
        self._clock = clock
        self._capacity = capacity
        self._verdicts: OrderedDict[Hashable, tuple[float, _Verdict]] = OrderedDict()
        self._pending: dict[Hashable, _PendingReview[_Verdict]] = {}

    def __len__(self) -> int:
        return len(self._verdicts)

    async def get(self, key: Hashable, review: Callable[[], Awaitable[_Verdict]]) -> _Verdict:
        """Return the cached verdict for `key`, or wait for one review of it."""
        while True:
            cached = self._verdicts.get(key)
            if cached is not None and self._clock() < cached[0]:
                self._verdicts.move_to_end(key)
                return cached[1]
            pending = self._pending.get(key)
            if pending is None:
                return await self._review(key, review)
            await pending.done.wait()
            if pending.failure is not None:
                raise pending.failure
            if pending.verdict is not None:
                return pending.verdict
            # The caller of the review was cancelled: the next one starts a review.

    async def _review(self, key: Hashable, review: Callable[[], Awaitable[_Verdict]]) -> _Verdict:
        pending = self._pending[key] = _PendingReview[_Verdict]()
        try:
            pending.verdict = verdict = await review()
        except Exception as error:
            pending.failure = error
            raise
        finally:
            del self._pending[key]
            pending.done.set()
        self._store(key, verdict)
        return verdict

    def _store(self, key: Hashable, verdict: _Verdict) -> None:
        seconds = POSITIVE_SECONDS if verdict else NEGATIVE_SECONDS
        self._verdicts[key] = (self._clock() + seconds, verdict)
        self._verdicts.move_to_end(key)
        if len(self._verdicts) > self._capacity:
            self._verdicts.popitem(last=False)
