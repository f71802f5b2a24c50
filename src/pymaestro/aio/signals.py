"""A wake-up that remembers what it was for: ids pile up until the sleeper looks."""

import asyncio


class Tickets:
    """Ids that somebody should look at. Bounded: beyond `limit` it only says that everything should be looked at."""

    def __init__(self, *, limit: int = 10_000) -> None:
        self._limit = limit
        self._ids: dict[str, None] = {}
        self._everything = False
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, ticket: str) -> None:
        """Leave one id."""
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
        ids = list(self._ids)[:at_most]
        for ticket in ids:
            del self._ids[ticket]
        everything, self._everything = self._everything, False
        if not self._ids:
            self._wake.clear()
        return ids, everything
