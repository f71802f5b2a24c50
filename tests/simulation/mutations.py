"""Bugs planted into the real code, each of a kind that real systems have had: the simulation must find every one.

A mutation replaces one function while its context lasts. `found_as` names the rules that may be broken by it.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from simulation import memory_rows, memory_statements

from maestropy.agent import departure, link, reconcile
from maestropy.agent.decide import ownership
from maestropy.server import accept, broker_mqtt, deliver, fanout, resyncs, stages
from maestropy.server.decide import admission, intake
from maestropy.store import events, resources, sql, statuses
from maestropy.wire import event, resync


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """One planted bug."""

    name: str
    found_as: tuple[str, ...]
    plant: Callable[[], contextlib.AbstractContextManager[Any]]


def _no_spec_resync() -> Any:
    """An agent that comes back is sent nothing it missed."""
    return mock.patch.object(resync, "spec_answer", return_value=resync.SpecAnswer(send=(), orphans={}))


@contextlib.contextmanager
def _no_status_resync() -> Iterator[None]:
    """A source that comes back is told nothing it missed, and nobody looks for lost wake-ups."""
    with (
        mock.patch.object(fanout.Fanout, "answer_resync", _nothing),
        mock.patch.object(fanout.Fanout, "_missed", _no_ids),
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


def _no_question_to_agents() -> Any:
    """An instance that gains a consumer, or its broker back, does not ask which statuses it lacks."""
    return mock.patch.object(resyncs.Resyncs, "ask", return_value=None)


def _no_question_in_return() -> Any:
    """An agent that comes back is answered, and not asked what was lost while it was away."""

    def answer(self: Any, received: Any, acknowledge: Any) -> None:
        question = resyncs.Question(source=received.source, body=received.data, answered=acknowledge)
        self._stages.resyncs.answer(received.text(event.CLUSTER_NAME), question)

    return mock.patch.object(broker_mqtt.MqttBroker, "_answer", answer)


def _any_end_counts() -> Any:
    """A late word about an earlier bundle of the same id ends its successor."""
    original = intake.judge

    def judge(held: Any, report: Any, **known: Any) -> Any:
        return intake.Finish() if held is not None and report.deleted else original(held, report, **known)

    return mock.patch.object(intake, "judge", judge)


def _no_version_check() -> Any:
    """Whoever writes last wins."""
    original = admission.judge_change
    return mock.patch.object(admission, "judge_change", lambda wish, held: original(replace(wish, version=0), held))


def _answers_before_commit() -> Any:
    """A source hears OK before its wish is stored."""
    original = accept.Accept.submit

    async def submit(self: Any, wish: Any) -> Any:
        asyncio.get_running_loop().create_task(original(self, wish))
        return admission.Create(1)

    return mock.patch.object(accept.Accept, "submit", submit)


def _no_sweep() -> Any:
    """A lost wake-up stays lost."""
    return mock.patch.object(stages.Stages, "look_again", return_value=None)


@contextlib.contextmanager
def _retries_pile_up() -> Iterator[None]:
    """Every repeated deletion queues another event."""
    original = admission._judge_deletion

    def judge(wish: Any, held: Any) -> Any:
        found = original(wish, held)
        return admission.MarkDeleting() if held is not None and isinstance(found, admission.Nothing) else found

    async def mark(tx: Any, ids: Any, event_ids: Any, now: Any) -> list[Any]:
        for id_, event_id in zip(ids, event_ids, strict=True):
            row = tx.get("resources", id_)
            await tx.put("resources", id_, {**row, "deleted_at": row["deleted_at"] or now})
            await memory_rows.announce(tx, event_id, id_, "Delete", now)
        return []

    statement = sql.load("resources")["mark_deleting"]
    with (
        mock.patch.object(admission, "_judge_deletion", judge),
        mock.patch.dict(memory_statements._BY_TEXT, {statement: mark}),
    ):
        yield


def _cancellation_is_lost() -> Any:
    """An agent that is told to end while its connection breaks goes on."""

    async def together(work: Any) -> None:
        await work

    return mock.patch.object(link.tasks, "apart", together)


def _marked_before_sent() -> Any:
    """An event counts as delivered before its bundle was read and sent."""
    original = deliver.Deliver._send

    async def send(self: Any, batch: Any) -> Any:
        done = [pending.id for group in batch.values() for pending in group]
        async with self._world.database.connection() as connection:
            await events.reconcile(connection, done, now=self._world.now())
            specs = await resources.read_specs(connection, batch.keys())
        if len(specs) != len(batch) or self._world.clock.monotonic() % 1 < 0.5:
            return 0
        return await original(self, batch)

    return mock.patch.object(deliver.Deliver, "_send", send)


def _old_copy_is_written_back() -> Any:
    """An agent keeps the copy of a work that it began with: what was asked for meanwhile is forgotten."""
    original = reconcile.Reconciler._carry_out

    async def carry_out(self: Any, key: str, held: Any, planned: Any, *, wanted: Any) -> Any:
        try:
            return await original(self, key, held, planned, wanted=wanted)
        finally:
            held.wanted = wanted

    return mock.patch.object(reconcile.Reconciler, "_carry_out", carry_out)


def _end_is_told_early() -> Any:
    """An agent says that a work is gone when it has asked for the end of its objects."""
    original = departure.Departure._say_deleting

    def say(self: Any, held: Any, *, blockers: Any = ()) -> None:
        original(self, held, blockers=blockers)
        if held is not None and held.is_leaving and blockers:
            self._say_deleted(held)

    return mock.patch.object(departure.Departure, "_say_deleting", say)


def _nothing_is_pruned() -> Any:
    """What a newer version of a bundle no longer has stays on the cluster."""
    return mock.patch.object(ownership, "untracked", return_value=())


def _own_statuses_only() -> Any:
    """With several instances a source hears only what its own instance was told by agents."""
    original = fanout.Fanout._broadcast

    async def broadcast(self: Any, ids: Any) -> None:
        await original(self, [each for each in ids if each.startswith(f"{self._world.instance_id}-")])

    return mock.patch.object(fanout.Fanout, "_broadcast", broadcast)


def _own_wish_is_refused() -> Any:
    """A source that repeats a wish, since it has not heard the answer, is told that somebody else was quicker."""
    return mock.patch.object(admission, "_is_same_event", return_value=False)


async def _nothing(*_: Any) -> None:
    return None


async def _no_ids(*_: Any) -> list[str]:
    return []


NO_QUESTION_IN_RETURN = Mutation(name="no-question-in-return", found_as=("convergence",), plant=_no_question_in_return)
"""Rare by chance: found by a schedule of its own."""

MUTATIONS = (
    Mutation(name="no-spec-resync", found_as=("convergence",), plant=_no_spec_resync),
    Mutation(name="no-status-resync", found_as=("convergence",), plant=_no_status_resync),
    Mutation(name="no-question-to-agents", found_as=("convergence",), plant=_no_question_to_agents),
    Mutation(name="status-undoes-deletion", found_as=("deletion-stays",), plant=_status_undoes_deletion),
    Mutation(name="any-end-counts", found_as=("gone-only-after-deletion",), plant=_any_end_counts),
    Mutation(name="no-version-check", found_as=("one-winner",), plant=_no_version_check),
    Mutation(name="answers-before-commit", found_as=("acknowledged-is-stored",), plant=_answers_before_commit),
    Mutation(name="no-sweep", found_as=("convergence",), plant=_no_sweep),
    Mutation(name="retries-pile-up", found_as=("bounded-queue",), plant=_retries_pile_up),
    Mutation(name="cancellation-is-lost", found_as=("nobody-falls",), plant=_cancellation_is_lost),
    Mutation(name="marked-before-sent", found_as=("convergence",), plant=_marked_before_sent),
    Mutation(
        name="old-copy-is-written-back",
        found_as=("convergence", "deleted-stays-away", "applied-grows"),
        plant=_old_copy_is_written_back,
    ),
    Mutation(name="end-is-told-early", found_as=("gone-only-after-deletion",), plant=_end_is_told_early),
    Mutation(name="nothing-is-pruned", found_as=("convergence",), plant=_nothing_is_pruned),
    Mutation(name="own-statuses-only", found_as=("convergence",), plant=_own_statuses_only),
    Mutation(name="own-wish-is-refused", found_as=("refused-is-not-stored",), plant=_own_wish_is_refused),
)
