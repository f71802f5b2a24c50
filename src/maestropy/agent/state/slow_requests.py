"""Measure which requests about objects the API server answers slowly, and hold back the works that need more of them.

A request counts as slow while it waits for longer than a second, and its lane for some seconds afterwards. Without a
slow request nothing is computed. `decide.slow_lanes` decides; the reconcile queue asks (`aio.keyed_queue.Gate`).
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from maestropy.agent.decide import slow_lanes
from maestropy.agent.decide.slow_lanes import Lane, Lanes

_SLOW_SECONDS = 1.0
"""Far more than a request takes on an API server that is busy, and less than its webhooks may take (10 s)."""
_REMEMBERED_SECONDS = 10.0
_MAX_SLOW_LANES = 256
"""Enough to recognise slow kinds and namespaces; each decision looks at all of them."""


class SlowRequests:
    """The requests of works that are being reconciled, and the slow lanes; keys are names of AppliedManifestWorks."""

    def __init__(self, *, lanes_of: Callable[[str], Lanes], monotonic: Callable[[], float]) -> None:
        self._lanes_of = lanes_of
        self._monotonic = monotonic
        self._requests: dict[asyncio.Task[object] | None, tuple[Lane, float]] = {}
        """What each task waits for, and since when."""
        self._running: dict[str, asyncio.Task[object] | None] = {}
        self._slow_until: dict[Lane, float] = {}
        self._needed: dict[str, Lanes] = {}
        """The lanes of works, as far as they were needed since the first lane is slow."""

    @contextmanager
    def during(self, lane: Lane) -> Iterator[None]:
        """Enter during a request about an object."""
        task, started = asyncio.current_task(), self._monotonic()
        self._requests[task] = lane, started
        try:
            yield
        finally:
            del self._requests[task]
            if self._monotonic() - started >= _SLOW_SECONDS:
                self._note_slow(lane)

    def slow_lanes(self) -> list[Lane]:
        """Return the lanes that are slow now."""
        if not self._slow_until:
            return []
        now = self._monotonic()
        self._slow_until = {lane: until for lane, until in self._slow_until.items() if until > now}
        if not self._slow_until:
            self._needed.clear()
        return list(self._slow_until)

    def may_start(self, key: str) -> bool:
        """Return whether a work may be reconciled now."""
        slow = self.slow_lanes()
        if not slow:
            return True
        running = (self._lanes(other) for other in self._running if other != key)
        return slow_lanes.may_start(self._lanes(key), slow=slow, running=running)

    def started(self, key: str) -> None:
        """Note that the current task reconciles a work."""
        self._running[key] = asyncio.current_task()

    def is_stuck(self, key: str) -> bool:
        """Return whether the reconcile of a work waits for a slow request."""
        request = self._requests.get(self._running.get(key))
        if request is None or self._monotonic() - request[1] < _SLOW_SECONDS:
            return False
        self._note_slow(request[0])
        return True

    def ended(self, key: str) -> bool:
        """Note that the reconcile of a work ended; return whether it needed a slow lane, which has room now."""
        self._running.pop(key, None)
        slow = self.slow_lanes()
        if not slow:
            return True
        lanes = self._lanes(key)
        # The next spec of the work may need others.
        self._needed.pop(key, None)
        return any(slow_lanes.is_slow(lane, slow) for lane in lanes)

    def _note_slow(self, lane: Lane) -> None:
        if lane in self._slow_until or len(self._slow_until) < _MAX_SLOW_LANES:
            self._slow_until[lane] = self._monotonic() + _REMEMBERED_SECONDS

    def _lanes(self, key: str) -> Lanes:
        lanes = self._needed.get(key)
        if lanes is None:
            lanes = self._needed[key] = self._lanes_of(key)
        return lanes
