"""Note when agents were connected or sent something, so that a consumer with a living agent is not retired.

An agent on a gRPC stream is there while its stream is open; behind a message broker it is there when it sends.
"""

from collections.abc import Callable, Collection
from datetime import timedelta

from maestropy.server.context import Context
from maestropy.store import actions, errors

EVERY = timedelta(seconds=60)


class AgentPresence:
    """The consumers whose agents this instance has seen since the last time they were written."""

    def __init__(self, context: Context, *, connected: Callable[[], Collection[str] | None]) -> None:
        """Prepare; `connected` are the consumers whose agents are connected here, None if that cannot be known."""
        self._context = context
        self._connected = connected
        self._heard: set[str] = set()

    def note(self, consumer: str) -> None:
        """Note a message of an agent, or the end of its stream."""
        self._heard.add(consumer)

    async def write(self) -> None:
        """Write who was seen."""
        heard, self._heard = self._heard, set()
        seen = heard.union(self._connected() or ())
        if not seen:
            return
        try:
            async with self._context.database.transaction(durable=False) as connection:
                await actions.note_seen(connection, seen, now=self._context.now())
        except errors.StoreError:
            self._heard |= heard
            raise
