"""Collect wake-ups by ID until a task takes them."""

import asyncio
import time
from collections.abc import Callable


class WakeUps:
    """IDs of events to process. Bounded: beyond `limit` IDs it only remembers that a full rescan is due."""

    def __init__(self, *, limit: int = 10_000, now: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._now = now
        self._since = 0.0
        self.waited = 0.0
        """How long, in seconds, the oldest of the IDs last taken had waited."""
        self._ids: dict[str, None] = {}
        self._rescan = False
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, event_id: str) -> None:
        """Add one ID and wake the task."""
        if not self._ids:
            self._since = self._now()
        if len(self._ids) >= self._limit:
            self._rescan = True
        else:
            self._ids[event_id] = None
        self._wake.set()

    def request_rescan(self) -> None:
        """Wake the task for a full rescan: notifications may have been missed."""
        self._rescan = True
        self._wake.set()

    async def take(self, *, at_most: int) -> tuple[list[str], bool]:
        """Wait for a wake-up; return at most `at_most` IDs, and whether a full rescan is due."""
        await self._wake.wait()
        self.waited = self._now() - self._since if self._ids else 0.0
        ids = list(self._ids)[:at_most]
        for event_id in ids:
            del self._ids[event_id]
        is_rescan_due, self._rescan = self._rescan, False
        if not self._ids:
            self._wake.clear()
        return ids, is_rescan_due
