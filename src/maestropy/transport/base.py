"""What an agent needs of a medium, whatever carries the events: open a connection, receive, send.

A connection that breaks ends its iterator with `Disconnected`; whoever owns it opens another one and resyncs.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from maestropy.wire import event


class Disconnected(Exception):
    """The other end cannot be reached, or the connection broke."""


class Rejected(Exception):
    """The other end got the event and will never take it; sending it again is pointless."""


class Busy(Exception):
    """The other end is there and did not take this one event; it may take it later, and others now."""


class Connection(Protocol):
    """An open subscription and the way back."""

    def events(self) -> AsyncIterator[event.Event]:
        """Yield events until the connection ends; raises `Disconnected` when it breaks."""

    async def publish(self, sent: event.Event) -> None:
        """Send one event; returns when the other end has it, raises `Disconnected`, `Rejected` or `Busy` otherwise.

        Where a broker stands between, it is the broker that has it, for somebody who listens.
        """

    async def is_answered(self, *, within: float) -> bool:
        """Whether the server itself has answered a resync request of this connection; waits up to `within` seconds.

        Only then does it mean anything that the server did not send a work.
        """


class Medium(Protocol):
    """A way to the server."""

    @property
    def address(self) -> str:
        """The address as it was configured; an agent's identity is derived from it."""

    @property
    def subscribed(self) -> str:
        """What the log says when a subscription stands: people search for these words."""

    def connect(self) -> AbstractAsyncContextManager[Connection]:
        """Open a connection whose subscription stands when the context is entered."""
