"""Define the interface between an agent and its transport: connect, receive spec events, publish status events.

A broken connection ends its iterator with `Disconnected`; the agent then connects again and resyncs.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from maestropy.wire.events import event

LogRecord = tuple[str, Mapping[str, object]]
"""A phrase and its fields."""


class Disconnected(Exception):
    """The server or broker cannot be reached, or the connection broke."""


class Misconfigured(Disconnected):
    """The broker works, but lacks a topic or a permission; only an operator can change that, and the text says how."""


class PublishRejected(Exception):
    """The server or broker received the event and will never accept it; a retry is pointless."""


class Busy(Exception):
    """The server did not accept this event now; it may accept it later, and other events now."""


class NotAccepted(Busy):
    """The server did not accept this event, and its answer does not tell whether it ever will.

    A Go server answers so to every failure: to a status that it cannot read, and while its database is away.
    """


class AgentConnection(Protocol):
    """An open subscription to spec events, and the means to publish status events."""

    def events(self) -> AsyncIterator[event.CloudEvent]:
        """Yield events until the connection ends; raise `Disconnected` when it breaks."""

    async def publish(self, sent: event.CloudEvent) -> None:
        """Send one event; return when the server has accepted it.

        With a message broker it returns when the broker has accepted the event for at least one subscriber. Otherwise
        it raises `Disconnected`, `PublishRejected` or `Busy`.
        """

    async def is_resync_answered(self, *, within: float) -> bool:
        """Wait up to `within` seconds until the server has answered the spec resync request; return whether it has.

        Only then can the agent conclude that the server does not have a work that it did not send.
        """


class Transport(Protocol):
    """A way to connect to the server."""

    @property
    def address(self) -> str:
        """The configured address; the identity of the agent is derived from it."""

    @property
    def subscribed_records(self) -> Sequence[LogRecord]:
        """The records that are logged when the agent has subscribed; operators search for them."""

    def connect(self) -> AbstractAsyncContextManager[AgentConnection]:
        """Open a connection that is subscribed when the context is entered."""
