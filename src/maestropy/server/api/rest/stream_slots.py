"""Share the slots for long lists between clients, so that slow readers of one client do not stop the others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

_SHARE: Final = 4
"""A client has at most this fraction of the slots: others find room, and their lists finish."""
WAIT_SECONDS: Final = 60.0
"""As long as a few searches that no index serves may take, one after the other."""


class NoSlot(Exception):
    """No slot was free in time."""


@dataclass(slots=True, kw_only=True)
class _Share:
    slots: asyncio.Semaphore
    users: int = 0


class StreamSlots:
    """The slots for long lists; each holds a database connection."""

    def __init__(self, count: int, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self._wait_seconds = wait_seconds
        self._all = asyncio.Semaphore(count)
        self._share = max(1, count // _SHARE)
        self._clients: dict[str, _Share] = {}

    def is_free(self, client: str) -> bool:
        """Return whether a client gets a slot without waiting."""
        share = self._clients.get(client)
        return not self._all.locked() and (share is None or not share.slots.locked())

    @asynccontextmanager
    async def held(self, client: str) -> AsyncIterator[None]:
        """Hold a slot for a client; wait for one of its share first, and then for one of all; raises `NoSlot`."""
        share = self._clients.setdefault(client, _Share(slots=asyncio.Semaphore(self._share)))
        share.users += 1
        try:
            async with AsyncExitStack() as slots:
                try:
                    async with asyncio.timeout(self._wait_seconds):
                        await slots.enter_async_context(share.slots)
                        await slots.enter_async_context(self._all)
                except TimeoutError:
                    raise NoSlot from None
                yield
        finally:
            share.users -= 1
            if not share.users:
                del self._clients[client]
