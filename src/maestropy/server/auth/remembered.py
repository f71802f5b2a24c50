"""Remember an outside verdict for a short while, and ask for it once at a time.

Answers: is there a fresh verdict for this key, and if not, is someone fetching it already? Failures
are shared with those who wait for the same answer but never remembered, and nothing is ever allowed
because of one.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

Clock = Callable[[], float]
"""Monotonic seconds."""

POSITIVE_SECONDS: Final = 10.0
"""How long a grant outlives its revocation at most."""

NEGATIVE_SECONDS: Final = 2.0
"""Short, because somebody is often waiting for the permission that was just granted."""

_Verdict = TypeVar("_Verdict")


@dataclass(slots=True)
class _UnderWay(Generic[_Verdict]):
    """One question being asked; `verdict` and `failure` both stay empty when the asker was cancelled."""

    done: asyncio.Event = field(default_factory=asyncio.Event)
    verdict: _Verdict | None = None
    failure: Exception | None = None


class Remembered(Generic[_Verdict]):
    """A bounded memory of verdicts: true-like ones are positive, none may be None. For one event loop."""

    def __init__(self, *, clock: Clock, capacity: int = 4096) -> None:
        self._clock = clock
        self._capacity = capacity
        self._known: OrderedDict[Hashable, tuple[float, _Verdict]] = OrderedDict()
        self._under_way: dict[Hashable, _UnderWay[_Verdict]] = {}

    def __len__(self) -> int:
        return len(self._known)

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[_Verdict]]) -> _Verdict:
        """Return the fresh verdict for `key`, asking only when nobody else is."""
        while True:
            known = self._known.get(key)
            if known is not None and self._clock() < known[0]:
                self._known.move_to_end(key)
                return known[1]
            asked = self._under_way.get(key)
            if asked is None:
                return await self._ask(key, ask)
            await asked.done.wait()
            if asked.failure is not None:
                raise asked.failure
            if asked.verdict is not None:
                return asked.verdict
            # The asker's client went away before the answer came: somebody else asks now.

    async def _ask(self, key: Hashable, ask: Callable[[], Awaitable[_Verdict]]) -> _Verdict:
        asked = self._under_way[key] = _UnderWay[_Verdict]()
        try:
            asked.verdict = verdict = await ask()
        except Exception as error:
            asked.failure = error
            raise
        finally:
            del self._under_way[key]
            asked.done.set()
        self._keep(key, verdict)
        return verdict

    def _keep(self, key: Hashable, verdict: _Verdict) -> None:
        seconds = POSITIVE_SECONDS if verdict else NEGATIVE_SECONDS
        self._known[key] = (self._clock() + seconds, verdict)
        self._known.move_to_end(key)
        if len(self._known) > self._capacity:
            self._known.popitem(last=False)
