"""Share the slots for long lists between clients, so that slow readers of one client do not stop the others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

_SHARE: Final = 4
"""A client has at most this fraction of the slots: others find room, and their lists finish."""


@dataclass(slots=True, kw_only=True)
class _Share:
    slots: asyncio.Semaphore
    users: int = 0


class StreamSlots:
    """The slots for long lists; each holds a database connection."""

    def __init__(self, count: int) -> None:
        self._all = asyncio.Semaphore(count)
        self._share = max(1, count // _SHARE)
        self._clients: dict[str, _Share] = {}

    def is_free(self, client: str) -> bool:
        """Return whether a client gets a slot without waiting."""
        share = self._clients.get(client)
        return not self._all.locked() and (share is None or not share.slots.locked())

    @asynccontextmanager
    async def held(self, client: str) -> AsyncIterator[None]:
        """Hold a slot for a client; wait for one of its share first, and then for one of all."""
        share = self._clients.setdefault(client, _Share(slots=asyncio.Semaphore(self._share)))
        share.users += 1
        try:
            async with share.slots, self._all:
                yield
        finally:
            share.users -= 1
            if not share.users:
                del self._clients[client]
