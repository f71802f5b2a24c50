"""Bugs planted into the real code, each of a kind that real systems have had: the simulation must find every one.

A mutation replaces one function while its context lasts. `found_as` names the rules that may be broken by it.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from maestropy.agent.controllers import finalizer, inbox, reconciler
from maestropy.agent.decide import data_safety, ownership
from maestropy.agent.state import applied_manifest_works, work_cache
from maestropy.aio import tasks
from maestropy.server.controllers.agents import agent_messages, resync_queue
from maestropy.server.controllers.spec import spec_dispatcher, spec_writer
from maestropy.server.controllers.status import status_dispatcher
from maestropy.server.decide import admission, status_intake
from maestropy.server.runtime import wiring
from maestropy.store import events, resources, sql, statuses
from maestropy.wire import resync
from tests.simulation import memory_history, memory_rows, memory_statements


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """One planted bug."""

    name: str
    found_as: tuple[str, ...]
    plant: Callable[[], contextlib.AbstractContextManager[Any]]
    harmless_since: tuple[int, int] | None = None
    """The first version of Python in which the planted code is no bug any more."""

    @property
    def is_harmless(self) -> bool:
        """Say whether this Python has nothing to find."""
        return self.harmless_since is not None and sys.version_info >= self.harmless_since


def _no_spec_resync() -> Any:
    """An agent that comes back is sent nothing it missed."""
    return mock.patch.object(
        resync, "spec_resync_response", return_value=resync.SpecResyncResponse(send=(), orphans={})
    )


@contextlib.contextmanager
def _no_status_resync() -> Iterator[None]:
    """A source that reconnects gets no missed status, and lost wake-ups are not made up for."""
    with (
        mock.patch.object(status_dispatcher.StatusDispatcher, "answer_resync", _nothing),
        mock.patch.object(status_dispatcher.StatusDispatcher, "_missed", _no_ids),
    ):
        yield


def _status_undoes_deletion() -> Any:
    """A report brings a bundle back that is being deleted: one writer for two facts, and the later one wins."""
    original = statuses.write_statuses

    async def write(connection: Any, new: Any, *, now: Any) -> None:
        await original(connection, new, now=now)
        for each in new:
            row = connection._transaction.get("resources", each.id)
            await connection._transaction.put("resources", each.id, {**row, "deleted_at": None})

    return mock.patch.object(statuses, "write_statuses", write)


def _no_status_request() -> Any:
    """An instance that gains a consumer, or its broker back, does not request the statuses it misses."""
    return mock.patch.object(resync_queue.ResyncQueue, "request_statuses", return_value=None)


def _no_status_request_in_return() -> Any:
    """The spec resync of an agent is answered, and the statuses that were lost while it was away are not requested."""

    def answer(self: Any, received: Any, acknowledge: Any) -> None:
        self._handlers.answer_resync(received, acknowledge)

    return mock.patch.object(agent_messages.AgentMessages, "_answer_resync", answer)


def _any_deleted_status_counts() -> Any:
    """A late word about an earlier bundle of the same id ends its successor."""
    original = status_intake.decide

    def decide(held: Any, report: Any, **known: Any) -> Any:
        return status_intake.Remove() if held is not None and report.is_deleted else original(held, report, **known)

    return mock.patch.object(status_intake, "decide", decide)


def _no_version_check() -> Any:
    """Whoever writes last wins."""
    original = admission.decide_change
    return mock.patch.object(
        admission, "decide_change", lambda request, held: original(replace(request, version=0), held)
    )


def _answers_before_commit() -> Any:
    """A source gets the answer before its request is stored."""
    original = spec_writer.SpecWriter.submit

    async def submit(self: Any, request: Any) -> Any:
        asyncio.get_running_loop().create_task(original(self, request))
        return admission.Create(1)

    return mock.patch.object(spec_writer.SpecWriter, "submit", submit)


def _no_rescan() -> Any:
    """A lost wake-up stays lost."""
    return mock.patch.object(wiring.Controllers, "rescan", return_value=None)


@contextlib.contextmanager
def _retries_pile_up() -> Iterator[None]:
    """Every repeated deletion queues another event."""
    original = admission._decide_deletion

    def judge(request: Any, held: Any) -> Any:
        found = original(request, held)
        return admission.MarkDeleting() if held is not None and isinstance(found, admission.Unchanged) else found

    async def mark(tx: Any, ids: Any, event_ids: Any, now: Any, *records: Any) -> list[Any]:
        for id_, event_id, record in zip(ids, event_ids, zip(*records, strict=True), strict=True):
            row = tx.get("resources", id_)
            if row["deleted_at"] is None:
                await memory_history.record_change(tx, "work.deletion-requested", row, record, now)
            await tx.put("resources", id_, {**row, "deleted_at": row["deleted_at"] or now})
            await memory_rows.announce(tx, event_id, id_, "Delete", now)
        return []

    statement = sql.load("resources")["mark_deleting"]
    with (
        mock.patch.object(admission, "_decide_deletion", judge),
        mock.patch.dict(memory_statements._BY_TEXT, {statement: mark}),
    ):
        yield


def _cancellation_is_lost() -> Any:
    """An agent that is told to end while its connection breaks goes on.

    Since Python 3.13 a task group that fails keeps the cancellation of its task, so `run_isolated` is not needed there.
    """

    async def together(work: Any) -> None:
        await work

    return mock.patch.object(tasks, "run_isolated", together)


def _reconciled_before_sent() -> Any:
    """An event is reconciled before its resource was read and sent."""
    original = spec_dispatcher.SpecDispatcher._send

    async def send(self: Any, batch: Any) -> Any:
        done = [pending.id for group in batch.values() for pending in group]
        async with self._context.database.connection() as connection:
            await events.reconcile(connection, done, now=self._context.now())
            specs = await resources.read_specs(connection, batch.keys())
        if len(specs) != len(batch) or self._context.clock.monotonic() % 1 < 0.5:
            return 0
        return await original(self, batch)

    return mock.patch.object(spec_dispatcher.SpecDispatcher, "_send", send)


def _old_copy_is_written_back() -> Any:
    """An agent keeps the copy of a work that it began with: what was asked for meanwhile is forgotten."""
    original = reconciler.Reconciler._carry_out

    async def carry_out(self: Any, key: str, cached: Any, planned: Any, *, manifest_work: Any, **options: Any) -> Any:
        try:
            return await original(self, key, cached, planned, manifest_work=manifest_work, **options)
        finally:
            cached.manifest_work = manifest_work

    return mock.patch.object(reconciler.Reconciler, "_carry_out", carry_out)


def _deleted_status_is_sent_early() -> Any:
    """An agent says that a work is gone when it has asked for the end of its objects."""
    original = finalizer.Finalizer._report_deleting

    def report(self: Any, cached: Any, *, blockers: Any = ()) -> None:
        original(self, cached, blockers=blockers)
        if cached is not None and cached.is_deleting and blockers:
            self._report_deleted(cached)

    return mock.patch.object(finalizer.Finalizer, "_report_deleting", report)


def _nothing_is_pruned() -> Any:
    """What a newer version of a bundle no longer has stays on the cluster."""
    return mock.patch.object(ownership, "untracked", return_value=())


def _own_statuses_only() -> Any:
    """With several instances a source gets only the statuses that its own instance has stored."""
    original = status_dispatcher.StatusDispatcher._broadcast

    async def broadcast(self: Any, ids: Any) -> None:
        await original(self, [each for each in ids if each.startswith(f"{self._context.instance_id}-")])

    return mock.patch.object(status_dispatcher.StatusDispatcher, "_broadcast", broadcast)


def _own_request_is_rejected() -> Any:
    """A source that repeats a request, because the answer was lost, is rejected as if another one had been first."""
    return mock.patch.object(admission, "_is_same_event", return_value=False)


def _orphans_are_deleted() -> Any:
    """An agent deletes at once what the server does not have, as if a source had asked for that."""
    return mock.patch.object(inbox, "_is_orphan_deletion", return_value=False)


@contextlib.contextmanager
def _any_database_decides() -> Iterator[None]:
    """An agent applies and deletes whatever it is sent, from any database and of any age."""
    with (
        mock.patch.object(data_safety, "spec_verdict", return_value=data_safety.Proceed()),
        mock.patch.object(data_safety, "deletion_verdict", return_value=data_safety.Proceed()),
    ):
        yield


def _late_events_are_applied() -> Any:
    """An agent behind a broker takes what a server sent before it was stopped for the newest state."""
    return mock.patch.object(work_cache.WorkCache, "is_late", return_value=False)


def _unanswered_record_is_not_read() -> Any:
    """An agent that got no answer when it recorded a newer spec goes on with the record that it knew."""
    return mock.patch.object(applied_manifest_works.AppliedWorks, "refresh", _nothing)


async def _nothing(*_: Any) -> None:
    return None


async def _no_ids(*_: Any) -> list[str]:
    return []


def _deletion_without_history() -> Any:
    """A deletion is stored, and the history does not say who asked for it."""
    original = resources.mark_deleting

    async def mark(connection: Any, ids: Any, *, event_ids: Any, now: Any, records: Any) -> None:
        await original(connection, ids, event_ids=event_ids, now=now, records=[None] * len(records))

    return mock.patch.object(resources, "mark_deleting", mark)


NO_STATUS_REQUEST_IN_RETURN = Mutation(
    name="no-status-request-in-return", found_as=("convergence",), plant=_no_status_request_in_return
)
"""Rare by chance: found by a schedule of its own."""

UNANSWERED_RECORD_IS_NOT_READ = Mutation(
    name="unanswered-record-is-not-read", found_as=("applied-grows",), plant=_unanswered_record_is_not_read
)
"""Rare by chance: found by a schedule of its own."""

LATE_EVENTS_ARE_APPLIED = Mutation(
    name="late-events-are-applied", found_as=("applied-grows", "deleted-stays-away"), plant=_late_events_are_applied
)
"""Rare by chance, 1 of some thousand schedules."""

MUTATIONS = (
    Mutation(name="no-spec-resync", found_as=("convergence",), plant=_no_spec_resync),
    Mutation(name="no-status-resync", found_as=("convergence",), plant=_no_status_resync),
    Mutation(name="no-status-request", found_as=("convergence",), plant=_no_status_request),
    Mutation(name="status-undoes-deletion", found_as=("deletion-stays",), plant=_status_undoes_deletion),
    Mutation(
        name="any-deleted-status-counts", found_as=("gone-only-after-deletion",), plant=_any_deleted_status_counts
    ),
    Mutation(name="no-version-check", found_as=("one-winner",), plant=_no_version_check),
    Mutation(name="answers-before-commit", found_as=("acknowledged-is-stored",), plant=_answers_before_commit),
    Mutation(name="no-rescan", found_as=("convergence",), plant=_no_rescan),
    Mutation(name="retries-pile-up", found_as=("bounded-queue",), plant=_retries_pile_up),
    Mutation(
        name="cancellation-is-lost",
        found_as=("no-task-ends",),
        plant=_cancellation_is_lost,
        harmless_since=(3, 13),
    ),
    Mutation(name="reconciled-before-sent", found_as=("convergence",), plant=_reconciled_before_sent),
    Mutation(
        name="old-copy-is-written-back",
        found_as=("convergence", "deleted-stays-away", "applied-grows"),
        plant=_old_copy_is_written_back,
    ),
    Mutation(
        name="deleted-status-is-sent-early", found_as=("gone-only-after-deletion",), plant=_deleted_status_is_sent_early
    ),
    Mutation(name="nothing-is-pruned", found_as=("convergence",), plant=_nothing_is_pruned),
    Mutation(name="own-statuses-only", found_as=("convergence",), plant=_own_statuses_only),
    Mutation(name="own-request-is-rejected", found_as=("rejected-is-not-stored",), plant=_own_request_is_rejected),
    Mutation(name="deletion-without-history", found_as=("history-of-changes",), plant=_deletion_without_history),
    Mutation(name="orphans-are-deleted", found_as=("kept-on-ignorance",), plant=_orphans_are_deleted),
    Mutation(
        name="any-database-decides",
        found_as=("kept-on-ignorance", "applied-grows"),
        plant=_any_database_decides,
    ),
)
