"""Hand the events of a broker to the adapter service, and end without losing one.

What a broker delivers is bounded by its own limits (prefetch, outstanding messages). An event that is not settled is
delivered again by the broker, so a stopped adapter loses none.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from maestropy.adapter.service import Delivery, Settlement

RETRY_SECONDS = 5.0
"""How long an event is held back before the broker delivers it again: a dependency is away."""


class BrokerInbox:
    """An event inbox that a broker's connection fills."""

    def __init__(self, is_connected: Callable[[], bool] = lambda: True) -> None:
        self.is_connected = is_connected
        """Whether the broker can be reached now; for the readiness probe."""
        self._waiting: asyncio.Queue[Delivery] = asyncio.Queue()
        self._unsettled = 0
        self._settled = asyncio.Condition()
        self._closed = asyncio.Event()

    async def next(self) -> Delivery:
        """Wait for the next event; after `close` no event comes any more."""
        delivery = await self._waiting.get()
        if self._closed.is_set():
            await asyncio.Event().wait()  # the worker is cancelled here; the broker delivers this event again
        self._unsettled += 1
        return delivery

    def put(self, body: bytes, *, headers: Mapping[str, str], settle: Callable[[Settlement], Awaitable[None]]) -> None:
        """Add an event; `settle` tells the broker what became of it."""

        async def settled(settlement: Settlement) -> None:
            try:
                await settle(settlement)
            finally:
                self._unsettled -= 1
                async with self._settled:
                    self._settled.notify_all()

        self._waiting.put_nowait(Delivery(body=body, headers=headers, settle=settled))

    async def hold_back(self) -> None:
        """Wait before an event is delivered again, but not while the service ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(RETRY_SECONDS):
                await self._closed.wait()

    async def close(self, *, seconds: float) -> None:
        """Begin no event any more, and wait until those in progress are settled, at most for so long."""
        self._closed.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._settled:
                await self._settled.wait_for(lambda: self._unsettled == 0)
