"""Count the events that a transport sends and receives."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from maestropy.agent.telemetry.metrics import AgentMetrics, EventTypeLabels
from maestropy.transport import port
from maestropy.wire import errors
from maestropy.wire.events import event


class CountedTransport:
    """A transport whose events are counted."""

    def __init__(self, transport: port.Transport, metrics: AgentMetrics) -> None:
        self._transport = transport
        self._metrics = metrics

    @property
    def address(self) -> str:
        """The address as configured."""
        return self._transport.address

    @property
    def subscribed_records(self) -> Sequence[port.LogRecord]:
        """The log records for an established subscription."""
        return self._transport.subscribed_records

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[port.AgentConnection]:
        """Open a connection that counts events."""
        async with self._transport.connect() as connection:
            yield _Counted(connection, self._metrics)


class _Counted:
    def __init__(self, connection: port.AgentConnection, metrics: AgentMetrics) -> None:
        self._connection = connection
        self._metrics = metrics

    async def events(self) -> AsyncIterator[event.CloudEvent]:
        async for received in self._connection.events():
            kind = _kind(received)
            if kind is not None:
                self._metrics.event_received(received.source, kind)
            yield received

    async def publish(self, sent: event.CloudEvent) -> None:
        kind = _kind(sent)
        is_status = kind is not None and kind.subresource == event.Subresource.STATUS
        try:
            await self._connection.publish(sent)
        except (port.Disconnected, port.PublishRejected, port.Busy):
            if is_status:
                # The Go agent counts a status update as a patch of the work.
                self._metrics.work_processed("patch", code="PublishError")
            raise
        if is_status:
            self._metrics.work_processed("patch")
        if kind is not None:
            self._metrics.event_sent(sent.source, sent.optional_text(event.ORIGINAL_SOURCE), kind=kind)

    async def is_resync_answered(self, *, within: float) -> bool:
        return await self._connection.is_resync_answered(within=within)


def _kind(passing: event.CloudEvent) -> EventTypeLabels | None:
    try:
        parsed = event.parse_type(passing.type)
    except errors.WireError:
        return None
    return EventTypeLabels(parsed.data_type, parsed.subresource, parsed.action)
