"""Receive status updates of agents: decode, check, log, and submit each to the status writer.

One path for all brokers. How an agent learns that its update was rejected or failed is for the caller:
`api.grpc.agents` answers the call, `agent_messages` acknowledges the message.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from maestropy.journal.fields import Logger, LogKey, Verbosity
from maestropy.journal.phrases import StatusWriterPhrase
from maestropy.server.context import Context
from maestropy.server.decide import admission, status_intake
from maestropy.server.telemetry import log_fields
from maestropy.store import rows
from maestropy.wire import errors, storable_json
from maestropy.wire.events import event


class StatusIntake:
    """The way from a broker to the status writer."""

    def __init__(
        self,
        context: Context,
        *,
        submit: Callable[[status_intake.StatusUpdate], Awaitable[status_intake.Verdict]],
        owns: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._context = context
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.SERVER})
        self._submit = submit
        self._owns = owns

    def log_received(self, received: event.CloudEvent) -> None:
        """Log an event of an agent: a status update or a spec resync."""
        if self._journal.is_enabled(Verbosity.BROKER):
            operation_id = admission.operation_id(received)
            fields: dict[str, object] = {LogKey.OP_ID: operation_id} if operation_id else {}
            fields |= log_fields.event_fields(self._journal, received, whole_from=Verbosity.BROKER_DETAIL)
            self._journal.info(StatusWriterPhrase.RECEIVED, fields, v=Verbosity.BROKER)

    def read(
        self,
        received: event.CloudEvent,
        kind: event.CloudEventType,
        *,
        requester: rows.Requester = rows.UNKNOWN_REQUESTER,
    ) -> status_intake.StatusUpdate:
        """Decode and check a status update; raises `WireError`."""
        if kind.subresource != event.Subresource.STATUS:
            raise errors.UnsupportedEvent(f"unsupported event type {received.type[:256]}: agents send statuses")
        storable_json.check_json(received.data or b"{}", label="event data")
        operation_id = admission.operation_id(received)
        return status_intake.read_status_update(
            received, source_id=self._context.source_id, operation_id=operation_id, requester=requester
        )

    async def store(self, update: status_intake.StatusUpdate) -> status_intake.Verdict | None:
        """Return the verdict on an update when it is durable; None: another instance owns the consumer.

        Raises `StoreError`, `Overloaded` or `Stopped` when the update is not stored and may be sent again.
        """
        if not self._owns(update.consumer):
            fields = log_fields.with_operation(update.operation_id, update.id)
            self._journal.info(StatusWriterPhrase.NOT_OWNED, fields, v=Verbosity.DETAIL)
            return None
        spans, clock = self._context.spans, self._context.clock
        if not spans.may_trace(update.operation_id):
            return await self._submit(update)
        arrival = spans.arrive(update.trace_parent, now=clock.epoch())
        verdict = await self._submit(replace(update, arrival_span=arrival.span_id))
        spans.status_received(arrival, update, verdict, now=clock.epoch())
        return verdict
