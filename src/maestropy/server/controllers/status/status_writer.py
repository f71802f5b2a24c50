"""Write status updates of agents to the database, many in one transaction.

A caller gets the verdict only when it is durable, so an agent can rely on it. `decide.status_intake` decides, on rows
that are locked with the same locks that a Go server takes. Sources are notified by the status dispatcher.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from maestropy.aio import batches
from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import StatusWriterPhrase
from maestropy.server.context import Context
from maestropy.server.decide import status_intake, status_order
from maestropy.server.decide.history import kinds, spec_changes
from maestropy.server.resource_locks import locked
from maestropy.server.status_transitions import FoundTransition, StatusTransitions
from maestropy.server.telemetry import log_fields
from maestropy.server.unordered_updates import UnorderedUpdates
from maestropy.store import errors as store_errors
from maestropy.store import rows, statuses
from maestropy.store.postgres import pool
from maestropy.wire.events import stored_event

Outcome = status_intake.Verdict | store_errors.StoreError
Decided = tuple[rows.StoredStatus | None, status_intake.StatusUpdate, status_intake.Verdict]


class StatusWriter:
    """Stores status updates in batches."""

    def __init__(
        self,
        context: Context,
        *,
        agents_get_errors: bool = True,
        reaches: Callable[[str], bool] = lambda _consumer: True,
        recheck: Callable[[str, str], None] = lambda _consumer, _resource_id: None,
        keeps_history: bool = False,
    ) -> None:
        """Prepare the writer; `recheck` asks the agent of a consumer, if it `reaches` one, for a status."""
        self._context = context
        self._agents_get_errors = agents_get_errors
        self._reaches = reaches
        self._recheck = recheck
        self._transitions = StatusTransitions(monotonic=context.clock.monotonic) if keeps_history else None
        self._unordered = UnorderedUpdates(monotonic=context.clock.monotonic)
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.SERVER})
        self._batcher: batches.Batcher[status_intake.StatusUpdate, status_intake.Verdict] = batches.Batcher(
            self._handle
        )

    async def submit(self, update: status_intake.StatusUpdate) -> status_intake.Verdict:
        """Return the verdict on `update`; a change is durable when this returns."""
        fields = log_fields.with_operation(update.operation_id, update.id)
        self._journal.info(StatusWriterPhrase.STATUS_RECEIVED, fields)
        return await self._batcher.submit(update, key=update.id, size=update.size)

    async def run(self) -> None:
        """Store updates until `stop`, and then those that were accepted before."""
        await self._batcher.run()

    def stop(self) -> None:
        """Accept no new updates."""
        self._batcher.stop()

    async def _handle(self, updates: Sequence[status_intake.StatusUpdate]) -> Sequence[Outcome]:
        return await self._isolate(updates, waits_for_locks=True)

    async def _isolate(
        self, updates: Sequence[status_intake.StatusUpdate], *, waits_for_locks: bool
    ) -> Sequence[Outcome]:
        """Store a batch; if one update makes it fail, store them one by one, so that only that one fails."""
        try:
            return await self._store(updates, waits_for_locks=waits_for_locks)
        except (store_errors.InvalidValue, store_errors.RowLocked) as error:
            if len(updates) > 1:
                return [(await self._isolate([update], waits_for_locks=False))[0] for update in updates]
            if isinstance(error, store_errors.InvalidValue):
                return [status_intake.Reject(f"the database cannot hold a value of the status: {error}")]
            return self._failed(updates, error)
        except store_errors.StoreError as error:
            return self._failed(updates, error)

    def _failed(
        self, updates: Sequence[status_intake.StatusUpdate], error: store_errors.StoreError
    ) -> Sequence[Outcome]:
        for update in updates:
            fields = log_fields.with_operation(update.operation_id, update.id)
            self._journal.error(StatusWriterPhrase.HANDLE_FAILED, fields, err=error)
        return [error] * len(updates)

    async def _store(
        self, updates: Sequence[status_intake.StatusUpdate], *, waits_for_locks: bool
    ) -> Sequence[Outcome]:
        ids = [update.id for update in updates]
        now = self._context.now()
        spans, clock = self._context.spans, self._context.clock
        started = clock.epoch() if spans.is_on else 0.0
        async with locked(self._context, ids, kind="resource_status", waits_for_locks=waits_for_locks) as connection:
            current = await statuses.read_for_status_update(connection, ids)
            unclear = [
                update.id
                for update in updates
                if status_intake.needs_previous_sequence_id(current.get(update.id), update)
            ]
            previous = await statuses.last_sequence_ids(connection, unclear) if unclear else {}
            verdicts = [
                status_intake.decide(
                    current.get(update.id),
                    update,
                    order=self._order_facts(update, now=now),
                    previous_sequence_id=previous.get(update.id, ""),
                )
                for update in updates
            ]
            decided = [
                (current.get(update.id), update, verdict) for update, verdict in zip(updates, verdicts, strict=True)
            ]
            transitions = await self._find_transitions(connection, decided)
            await self._write(connection, decided, transitions, now=now)
        if spans.is_on:
            spans.statuses_committed(zip(updates, verdicts, strict=True), start=started, now=clock.epoch())
        if self._transitions is not None:
            self._transitions.note(transitions.values())
        for before, update, verdict in decided:
            self._log(before, update, verdict, now=now)
            self._note_order(update, verdict)
        return verdicts

    def _order_facts(self, update: status_intake.StatusUpdate, *, now: datetime) -> status_order.OrderFacts:
        return status_order.OrderFacts(
            now_ms=int(now.timestamp() * 1000),
            unordered_sequence_id=self._unordered.sequence_id(update.id),
            agents_get_errors=self._agents_get_errors,
            can_ask=self._reaches(update.consumer),
        )

    def _note_order(self, update: status_intake.StatusUpdate, verdict: status_intake.Verdict) -> None:
        match verdict:
            case status_intake.Unordered(problem):
                self._unordered.add(update.id, update.sequence_id)
                self._context.metrics.status_unordered(problem.cause)
                self._recheck(update.consumer, update.id)
            case status_intake.Store(sequence_id):
                self._unordered.discard(update.id)
                if sequence_id:
                    # The update may have been late after all; if so, the agent sends its status once more.
                    self._recheck(update.consumer, update.id)
            case status_intake.Remove() | status_intake.Redeliver():
                self._unordered.discard(update.id)

    async def _write(
        self,
        connection: pool.Connection,
        decided: Sequence[Decided],
        transitions: Mapping[str, FoundTransition],
        *,
        now: datetime,
    ) -> None:
        stored: list[rows.NewStatus] = []
        removed: list[rows.NewStatus] = []
        redelivered: list[str] = []
        for current, update, verdict in decided:
            if current is None:
                continue
            match verdict:
                case status_intake.Store(sequence_id):
                    record = transitions[update.id].record if update.id in transitions else None
                    stored.append(self._new_status(current, update, sequence_id=sequence_id, record=record))
                case status_intake.Remove(sequence_id):
                    record = self._record_of_removal(current, update)
                    removed.append(self._new_status(current, update, sequence_id=sequence_id, record=record))
                case status_intake.Redeliver():
                    redelivered.append(update.id)
        if stored:
            await statuses.write_statuses(connection, stored, now=now)
            self._context.metrics.resources_processed(len(stored))
        if removed:
            await statuses.remove(connection, removed, now=now)
        if redelivered:
            event_ids = [self._context.new_id() for _ in redelivered]
            await statuses.redeliver(connection, redelivered, event_ids=event_ids, now=now)

    async def _find_transitions(
        self, connection: pool.Connection, decided: Sequence[Decided]
    ) -> Mapping[str, FoundTransition]:
        """Return what the history records of the statuses that are stored, by resource ID."""
        if self._transitions is None:
            return {}
        stored = [
            (current, update)
            for current, update, verdict in decided
            if current is not None and isinstance(verdict, status_intake.Store)
        ]
        unknown = [current.id for current, _ in stored if self._transitions.needs_status_of(current)]
        read = await statuses.read_status_data(connection, unknown) if unknown else {}
        return {
            current.id: self._transitions.find(current, update, stored_data=read.get(current.id))
            for current, update in stored
        }

    def _record_of_removal(self, current: rows.StoredStatus, update: status_intake.StatusUpdate) -> rows.Record | None:
        if self._transitions is None:
            return None
        self._transitions.forget(update.id)
        name = spec_changes.deletion(stored_event.StoredParts(envelope=b"", metadata=current.metadata, data=b""))
        return rows.Record(update.requester, kinds.short(update.operation_id), name)

    def _new_status(
        self,
        current: rows.StoredStatus,
        update: status_intake.StatusUpdate,
        *,
        sequence_id: str,
        record: rows.Record | None,
    ) -> rows.NewStatus:
        return rows.NewStatus(
            id=update.id,
            source=current.source,
            document=status_intake.status_document(current, update, sequence_id=sequence_id),
            event_id=self._context.new_id(),
            history=record,
        )

    def _log(
        self,
        current: rows.StoredStatus | None,
        update: status_intake.StatusUpdate,
        verdict: status_intake.Verdict,
        *,
        now: datetime,
    ) -> None:
        journal = self._journal
        fields = log_fields.with_operation(update.operation_id, update.id)
        match verdict:
            case status_intake.Store():
                journal.info(StatusWriterPhrase.HANDLING, fields)
                journal.info(
                    StatusWriterPhrase.UPDATING, {**fields, **log_fields.event_fields(journal, update.received)}
                )
                journal.info(StatusWriterPhrase.UPDATE_SENT, fields)
                if current is not None and not current.sequence_id:
                    journal.info(StatusWriterPhrase.FIRST_STATUS, fields, v=4)
                    self._context.metrics.first_status(current.consumer, current.source, now - current.created_at)
            case status_intake.Remove():
                journal.info(StatusWriterPhrase.HANDLING, fields)
                journal.info(StatusWriterPhrase.DELETE_SENT, fields)
            case status_intake.Redeliver():
                journal.warning(StatusWriterPhrase.REDELIVERED, fields)
            case status_intake.Reject(reason):
                journal.error(
                    StatusWriterPhrase.HANDLE_FAILED, {**fields, LogKey.EVENT_TYPE: update.received.type}, err=reason
                )
            case status_intake.Unordered(problem):
                sequence_ids = {
                    LogKey.FOUND_SEQUENCE_ID: (current.sequence_id if current is not None else "") or "none",
                    LogKey.WANT_SEQUENCE_ID: update.sequence_id,
                }
                journal.warning(StatusWriterPhrase.UNORDERED, {**fields, **sequence_ids, LogKey.REASON: problem.text})
            case status_intake.Ignore(reason, is_stale) if is_stale and current is not None:
                versions = {LogKey.FOUND_VERSION: current.version, LogKey.WANT_VERSION: update.version}
                journal.info(StatusWriterPhrase.STALE, {**fields, **versions})
            case status_intake.Ignore(reason):
                journal.info(StatusWriterPhrase.UNCHANGED, {**fields, LogKey.REASON: reason})
