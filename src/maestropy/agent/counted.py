"""Count the events that pass a medium, without either side knowing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from maestropy.agent.metrics import EventKind, Metrics
from maestropy.transport import base
from maestropy.wire import errors, event


class CountedMedium:
    """A medium whose traffic is counted."""

    def __init__(self, medium: base.Medium, metrics: Metrics) -> None:
        self._medium = medium
        self._metrics = metrics

    @property
    def address(self) -> str:
        """The address as it was configured."""
        return self._medium.address

    @property
    def subscribed(self) -> str:
        """What the log says when a subscription stands."""
        return self._medium.subscribed

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[base.Connection]:
        """Open a connection that counts."""
        async with self._medium.connect() as connection:
            yield _Counted(connection, self._metrics)


class _Counted:
    def __init__(self, connection: base.Connection, metrics: Metrics) -> None:
        self._connection = connection
        self._metrics = metrics

    async def events(self) -> AsyncIterator[event.Event]:
        async for received in self._connection.events():
            kind = _kind(received)
            if kind is not None:
                self._metrics.event_received(received.source, kind)
            yield received

    async def publish(self, sent: event.Event) -> None:
        kind = _kind(sent)
        is_status = kind is not None and kind.subresource == event.Subresource.STATUS
        try:
            await self._connection.publish(sent)
        except (base.Disconnected, base.Rejected, base.Busy):
            if is_status:
                # The words of the Go agent, for which a status is a patch of a work.
                self._metrics.work_processed("patch", code="PublishError")
            raise
        if is_status:
            self._metrics.work_processed("patch")
        if kind is not None:
            self._metrics.event_sent(sent.source, sent.optional_text(event.ORIGINAL_SOURCE), kind=kind)

    async def is_answered(self, *, within: float) -> bool:
        return await self._connection.is_answered(within=within)


def _kind(passing: event.Event) -> EventKind | None:
    try:
        found = event.parse_type(passing.type)
    except errors.WireError:
        return None
    return EventKind(found.data_type, found.subresource, found.action)
