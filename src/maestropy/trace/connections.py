"""Pair the connects and disconnects of an agent in a history: is it connected, and since when? Pure.

The last entry alone does not tell. An agent that reconnects may begin a new connection before the server notices the
end of the old one. A server that was killed wrote no end at all: another one writes it when no server has seen the
agent for minutes, and says when it was seen last.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

CONNECTED: Final = "agent.connected"
DISCONNECTED: Final = "agent.disconnected"
KINDS: Final = frozenset({CONNECTED, DISCONNECTED})
"""Only servers that agents connect to, with the gRPC broker, write these."""
OVERLAP_SECONDS: Final = 60.0
"""Within so long after an agent began another connection, a server notices by its pings that the old one ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """The connections of the agent of one consumer, after some entries of the history."""

    begun: tuple[float, ...] = ()
    """When the open ones began, the oldest first."""
    ended: float = 0.0
    """When the last one ended; 0 if no end is known."""

    @property
    def is_connected(self) -> bool:
        return bool(self.begun)

    @property
    def since(self) -> float:
        """When the agent connected last, or when it left."""
        return self.begun[-1] if self.begun else self.ended

    def after(self, kind: str, at: float, *, seen: float = 0.0) -> "Connections":
        """Return the connections after an entry; entries come in the order of their times, or a moment late.

        `seen` is what `last_seen` returns of its detail.
        """
        if kind == CONNECTED:
            return self._begin(at)
        if kind != DISCONNECTED:
            return self
        return self._lose(seen) if seen else self._end(at)

    def _begin(self, at: float) -> "Connections":
        if at < self.since:
            return self
        # What was open long before the last one began has ended without an entry.
        kept = self.begun[-1:] if self.begun and at - self.begun[-1] > OVERLAP_SECONDS else self.begun
        return Connections(begun=(*kept, at), ended=self.ended)

    def _end(self, at: float) -> "Connections":
        if not self.begun:
            # The entries may begin in the middle: an end without a begin is that of an earlier connection.
            return Connections(ended=max(at, self.ended))
        if at < self.begun[0]:
            return self
        ended = max(at, self.ended)
        if at - self.begun[-1] > OVERLAP_SECONDS:
            # It is the end of the newest: a server that was killed did not write that of the others.
            return Connections(ended=ended)
        return Connections(begun=self.begun[1:], ended=ended)

    def _lose(self, seen: float) -> "Connections":
        """Return what is left when an agent was last seen at this time: connections that began later."""
        return Connections(begun=tuple(at for at in self.begun if at > seen), ended=max(seen, self.ended))


def last_seen(detail: object) -> float:
    """Return when the agent was last seen, of the detail of an end that another server wrote; 0 of other entries."""
    try:
        # A dump of the database has the JSON of the detail as a text.
        members = json.loads(detail) if isinstance(detail, str) else detail
        text = members.get("last_seen") if isinstance(members, Mapping) else None
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() if at else 0.0
    except (ValueError, OverflowError, RecursionError):
        return 0.0
