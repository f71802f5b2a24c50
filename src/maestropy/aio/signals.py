"""A wake-up that remembers what it was for: ids pile up until the sleeper looks."""

import asyncio
import time
from collections.abc import Callable


class Tickets:
    """Ids that somebody should look at. Bounded: beyond `limit` it only says that everything should be looked at."""

    def __init__(self, *, limit: int = 10_000, now: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._now = now
        self._since = 0.0
        self.waited = 0.0
        """How long, in seconds, the oldest of those last taken had waited."""
        self._ids: dict[str, None] = {}
        self._everything = False
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, ticket: str) -> None:
        """Leave one id."""
        if not self._ids:
            self._since = self._now()
        if len(self._ids) >= self._limit:
            self._everything = True
        else:
            self._ids[ticket] = None
        self._wake.set()

    def add_everything(self) -> None:
        """Ask for a look at everything: notifications may have been missed."""
        self._everything = True
        self._wake.set()

    async def take(self, *, at_most: int) -> tuple[list[str], bool]:
        """Wait for a wake-up; return some ids, and whether everything should be looked at."""
        await self._wake.wait()
        self.waited = self._now() - self._since if self._ids else 0.0
        ids = list(self._ids)[:at_most]
        for ticket in ids:
            del self._ids[ticket]
        everything, self._everything = self._everything, False
        if not self._ids:
            self._wake.clear()
        return ids, everything
