"""Report work statuses to the server, each only when it has changed."""

from collections.abc import Callable, Iterable

from maestropy.agent.controllers.connection import ServerConnection, StatusMessage
from maestropy.agent.decide.status import work_status
from maestropy.agent.state.sequence_ids import SequenceIds
from maestropy.agent.state.work_cache import CachedWork, StatusKey
from maestropy.agent.telemetry.work_spans import WorkSpans
from maestropy.aio import clock as clocks
from maestropy.telemetry import tracing
from maestropy.wire import codec, timestamps
from maestropy.wire.events import event
from maestropy.wire.works import work


class StatusReporter:
    """Passes statuses to the connection; only the newest status of a work is on_sent."""

    def __init__(
        self,
        connection: ServerConnection,
        *,
        client_id: str,
        clock: clocks.Clock,
        new_id: Callable[[], str],
        on_deleted: Callable[[CachedWork], None],
        spans: WorkSpans,
    ) -> None:
        self._connection = connection
        self._client_id = client_id
        self._clock = clock
        self._new_id = new_id
        self._on_deleted = on_deleted
        self._spans = spans
        self._sequence_ids = SequenceIds(clock)

    def report(self, cached: CachedWork) -> None:
        """Report the status unless the server has it or it is on its way."""
        if cached.status.body and cached.status_key not in (cached.reported, cached.pending):
            self._enqueue(cached, event.EventAction.UPDATE_REQUEST)

    def note_stored(self, sequence_ids: Iterable[str], *, database_ms: int) -> int:
        """Send later statuses with sequence IDs above the stored ones; return how far this host's clock is ahead."""
        return self._sequence_ids.note(sequence_ids, database_ms=database_ms)

    async def wait_for_capacity(self) -> None:
        """Wait while many status updates are in flight."""
        await self._connection.wait_for_capacity()

    def report_again(self, cached: CachedWork, on_reported: Callable[[], None]) -> None:
        """Report a status that the server requested.

        `on_reported` is called when the server has it, unless a newer status replaced it meanwhile.
        """
        self._enqueue(cached, event.EventAction.RESYNC_RESPONSE, on_reported=on_reported)

    def _enqueue(
        self, cached: CachedWork, action: event.EventAction, *, on_reported: Callable[[], None] = lambda: None
    ) -> None:
        encoded: StatusKey | None = None
        span: tracing.Span | None = None

        def encode_event() -> event.CloudEvent:
            nonlocal encoded, span
            encoded = cached.status_key
            # Of two incarnations of one second, only this says which of them is deleted.
            created_at = cached.created if cached.status.is_deleted else ""
            status = self._event(cached.with_status(), action, status_hash=cached.status.hash(), created_at=created_at)
            if self._spans.is_on:
                status, span = self._spans.send(status, now=self._clock.epoch())
            return status

        def encode_without_feedback() -> event.CloudEvent | None:
            nonlocal encoded
            encoded = None
            shortened = work_status.without_feedback_values(
                cached.status, now=timestamps.from_datetime(self._clock.now())
            )
            return self._event(cached.manifest_work.with_status(shortened), action) if shortened is not None else None

        cached.pending = cached.status_key

        def on_sent(_outgoing: event.CloudEvent) -> None:
            if span is not None:
                self._spans.sent(span, now=self._clock.epoch())
            cached.reported = encoded
            if cached.pending == cached.reported:
                cached.pending = None
            on_reported()
            if cached.status.is_deleted and cached.status_key == cached.reported:
                self._on_deleted(cached)

        self._connection.enqueue(
            cached.id,
            StatusMessage(encode=encode_event, encode_without_feedback=encode_without_feedback, on_sent=on_sent),
        )

    def _event(
        self, reported: work.ManifestWork, action: event.EventAction, *, status_hash: str = "", created_at: str = ""
    ) -> event.CloudEvent:
        now = timestamps.from_datetime(self._clock.now())
        attributes = codec.ContextAttributes(id=self._new_id(), source=self._client_id, time=now)
        return codec.status_event(
            reported,
            action=action,
            sequence_id=self._sequence_ids.next(),
            attributes=attributes,
            status_hash=status_hash,
            created_at=created_at,
        )
