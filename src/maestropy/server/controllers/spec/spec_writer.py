"""Write spec requests of sources to the database, many in one transaction.

Requests that arrive while a transaction runs share the next one. Row, event and notification are one commit, and the
caller gets the verdict after it. `decide.admission` decides; the spec dispatcher sends.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from maestropy.aio import batches
from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import SpecWriterPhrase
from maestropy.server.context import Context
from maestropy.server.decide import admission, rejection
from maestropy.server.decide.history import kinds, spec_changes
from maestropy.server.resource_locks import locked
from maestropy.server.telemetry import log_fields
from maestropy.store import errors as store_errors
from maestropy.store import resources, rows
from maestropy.store.postgres import pool
from maestropy.wire.events import event, stored_event

Outcome = admission.Verdict | store_errors.StoreError


class _Execute(Protocol):
    """Carries out a batch of requests in one transaction; without `waits_for_locks` it gives up soon."""

    async def __call__(
        self, requests: Sequence[admission.SpecRequest], *, waits_for_locks: bool
    ) -> dict[str, Outcome]: ...


class SpecWriter:
    """Stores spec requests in batches."""

    def __init__(
        self,
        context: Context,
        *,
        problem_with: Callable[[stored_event.StoredParts], str] = lambda _: "",
        keeps_history: bool = False,
    ) -> None:
        self._context = context
        self._keeps_history = keeps_history
        self._problem_with = problem_with
        self._batcher: batches.Batcher[admission.SpecRequest, admission.Verdict] = batches.Batcher(self._handle)

    async def submit(self, request: admission.SpecRequest) -> admission.Verdict:
        """Return the verdict on `request`; a change is durable when this returns."""
        if request.action != event.EventAction.DELETE_REQUEST and not request.problem:
            problem = self._problem_with(request.parts)
            request = replace(request, problem=problem) if problem else request
        return await self._batcher.submit(request, key=request.id, size=request.size)

    async def mark_deleting(
        self,
        resource_id: str,
        operation_id: str,
        *,
        sources: frozenset[str] | None = None,
        requester: rows.Requester = rows.UNKNOWN_REQUESTER,
    ) -> rejection.Rejection | None:
        """Mark a resource for deletion on behalf of an operator; does nothing if there is none.

        Returns a rejection if the resource belongs to none of `sources`; None allows every source.
        """
        no_parts = stored_event.StoredParts(envelope=b"{}", metadata=b"", data=b"")
        request = admission.SpecRequest(
            action=event.EventAction.DELETE_REQUEST,
            id=resource_id,
            source="",
            consumer="",
            version=0,
            event_id="",
            operation_id=operation_id,
            parts=no_parts,
            is_from_operator=True,
            operator_sources=sources,
            requester=requester,
        )
        verdict = await self.submit(request)
        return verdict if isinstance(verdict, rejection.Rejection) else None

    async def run(self) -> None:
        """Store requests until `stop`, and then those that were accepted before."""
        await self._batcher.run()

    def stop(self) -> None:
        """Accept no new requests."""
        self._batcher.stop()

    async def _handle(self, requests: Sequence[admission.SpecRequest]) -> Sequence[Outcome]:
        creations = [request for request in requests if request.action == event.EventAction.CREATE_REQUEST]
        changes = [request for request in requests if request.action != event.EventAction.CREATE_REQUEST]
        outcomes: dict[str, Outcome] = {}
        spans, clock = self._context.spans, self._context.clock
        started = clock.epoch() if spans.is_on else 0.0
        if creations:
            outcomes |= await self._isolate(self._create, creations)
        if changes:
            outcomes |= await self._isolate(self._change, changes)
        if spans.is_on:
            spans.specs_committed(requests, outcomes, start=started, now=clock.epoch())
        updates = sum(isinstance(outcome, admission.Update) for outcome in outcomes.values())
        if updates:
            self._context.metrics.resources_processed(updates)
        for request in requests:
            self._log(request, outcomes[request.id])
        # A server that is killed right after its answer must not take along that it received the request: the tracer
        # would not know of it. One write for the whole batch.
        self._context.journal.flush()
        return [outcomes[request.id] for request in requests]

    async def _isolate(
        self, execute: _Execute, requests: Sequence[admission.SpecRequest], *, waits_for_locks: bool = True
    ) -> dict[str, Outcome]:
        """Carry out a batch; if one request makes it fail, carry them out one by one, so that only that one fails."""
        try:
            return await execute(requests, waits_for_locks=waits_for_locks)
        except store_errors.RowLocked as error:
            if len(requests) == 1:
                return {requests[0].id: error}
        except (store_errors.InvalidValue, store_errors.ForeignKeyViolation) as error:
            if len(requests) == 1:
                return {requests[0].id: _reject(requests[0], error)}
        except store_errors.StoreError as error:
            return dict.fromkeys((request.id for request in requests), error)
        outcomes: dict[str, Outcome] = {}
        for request in requests:
            outcomes |= await self._isolate(execute, [request], waits_for_locks=False)
        return outcomes

    async def _create(self, requests: Sequence[admission.SpecRequest], *, waits_for_locks: bool) -> dict[str, Outcome]:
        del waits_for_locks  # no other transaction holds a new row, except one that inserts the same ID at this moment
        outcomes: dict[str, Outcome] = {request.id: admission.decide_create(request) for request in requests}
        candidates = [self._new_spec(request, outcomes[request.id]) for request in requests]
        specs = [spec for spec in candidates if spec is not None]
        if not specs:
            return outcomes
        async with self._context.database.connection() as connection:
            inserted = await resources.insert_new(connection, specs, now=self._context.now())
            skipped = [spec.id for spec in specs if spec.id not in inserted]
            stored = await resources.read_for_change(connection, skipped) if skipped else {}
            # There is no such consumer, or the resource with this ID has been removed: at this moment, or before and
            # this is a late copy of the event that created it.
            retries = [spec for spec in specs if spec.id in skipped and spec.id not in stored]
            removed: set[str] = set()
            if retries:
                inserted |= await resources.insert_new(connection, retries, now=self._context.now())
                removed = await resources.removed_creations(connection, retries)
        by_id = {request.id: request for request in requests}
        for resource_id in set(skipped) - inserted:
            outcomes[resource_id] = admission.decide_failed_create(
                by_id[resource_id], stored.get(resource_id), is_removed=resource_id in removed
            )
        return outcomes

    async def _change(self, requests: Sequence[admission.SpecRequest], *, waits_for_locks: bool) -> dict[str, Outcome]:
        ids = [request.id for request in requests]
        async with locked(self._context, ids, kind="resources", waits_for_locks=waits_for_locks) as connection:
            stored = await resources.read_for_change(connection, ids)
            outcomes: dict[str, Outcome] = {
                request.id: admission.decide_change(request, stored.get(request.id)) for request in requests
            }
            await self._write(connection, requests, outcomes, stored=stored)
        return outcomes

    async def _write(
        self,
        connection: pool.Connection,
        requests: Sequence[admission.SpecRequest],
        outcomes: dict[str, Outcome],
        *,
        stored: Mapping[str, rows.StoredSpec],
    ) -> None:
        now = self._context.now()
        candidates = [
            self._new_spec(request, outcomes[request.id], before=stored.get(request.id)) for request in requests
        ]
        specs = [spec for spec in candidates if spec is not None]
        if specs:
            await resources.write_updates(connection, specs, now=now)
        deleting = [request for request in requests if isinstance(outcomes[request.id], admission.MarkDeleting)]
        if deleting:
            event_ids = [self._context.new_id() for _ in deleting]
            records = [
                self._record(
                    request,
                    spec_changes.deletion(stored[request.id].parts, is_from_operator=request.is_from_operator),
                )
                for request in deleting
            ]
            ids = [request.id for request in deleting]
            await resources.mark_deleting(connection, ids, event_ids=event_ids, now=now, records=records)

    def _record(self, request: admission.SpecRequest, detail: str) -> rows.Record | None:
        if not self._keeps_history:
            return None
        return rows.Record(request.requester, kinds.short(request.operation_id), detail)

    def _history_of(self, request: admission.SpecRequest, before: rows.StoredSpec | None) -> rows.Record | None:
        if not self._keeps_history:
            return None
        if before is None:
            return self._record(request, spec_changes.created(request.parts))
        return self._record(request, spec_changes.updated(before.parts, request.parts))

    def _new_spec(
        self, request: admission.SpecRequest, outcome: Outcome, *, before: rows.StoredSpec | None = None
    ) -> rows.NewSpec | None:
        if not isinstance(outcome, admission.Create | admission.Update):
            return None
        return rows.NewSpec(
            id=request.id,
            source=request.source,
            consumer=request.consumer,
            version=outcome.version,
            parts=request.parts,
            event_id=self._context.new_id(),
            created_by=request.event_id,
            history=self._history_of(request, before),
        )

    def _log(self, request: admission.SpecRequest, outcome: Outcome) -> None:
        fields = log_fields.with_operation(request.operation_id, request.id)
        match outcome:
            case rejection.Rejection():
                self._context.journal.warning(
                    SpecWriterPhrase.REJECTED,
                    {**fields, LogKey.EVENT_SOURCE: request.source, LogKey.REASON: str(outcome)},
                )
            case store_errors.StoreError():
                self._context.journal.error(
                    SpecWriterPhrase.FAILED, {**fields, LogKey.EVENT_SOURCE: request.source}, err=outcome
                )
            case admission.Unchanged(reason):
                self._context.journal.info(SpecWriterPhrase.UNCHANGED, {**fields, LogKey.REASON: reason}, v=2)


def _reject(
    request: admission.SpecRequest, error: store_errors.InvalidValue | store_errors.ForeignKeyViolation
) -> rejection.Rejection:
    if isinstance(error, store_errors.ForeignKeyViolation):
        return rejection.unknown_consumer(request.consumer)
    verb: rejection.Verb = "create" if request.action == event.EventAction.CREATE_REQUEST else "update"
    return rejection.invalid(f"the database cannot hold a value of the event: {error}", verb=verb)
