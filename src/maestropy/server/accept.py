"""Stage: wishes of sources become rows.

What arrived while the last transaction ran is the next transaction. Row, event and wake-up are one commit, and only
then does the caller hear "OK".
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from maestropy.aio import batches
from maestropy.journal.fields import Key
from maestropy.server import describe
from maestropy.server.decide import admission, refusal
from maestropy.server.locked import locked
from maestropy.server.world import World
from maestropy.store import errors as store_errors
from maestropy.store import pool, resources, rows
from maestropy.wire import event, record

Outcome = admission.Verdict | store_errors.StoreError


class _Carry(Protocol):
    """Carries out a group of wishes in one transaction; one that is not patient does not wait for locks."""

    async def __call__(self, wishes: Sequence[admission.Wish], *, patient: bool) -> dict[str, Outcome]: ...


class Accept:
    """Takes wishes, one at a time from its callers' view, many at a time from the database's."""

    def __init__(self, world: World, *, cannot_carry: Callable[[record.Parts], str] = lambda _: "") -> None:
        self._world = world
        self._cannot_carry = cannot_carry
        self._batcher: batches.Batcher[admission.Wish, admission.Verdict] = batches.Batcher(self._handle)

    async def submit(self, wish: admission.Wish) -> admission.Verdict:
        """Return what became of `wish`; when this returns a change, it is durable."""
        if wish.action != event.Action.DELETE_REQUEST and not wish.problem:
            problem = self._cannot_carry(wish.parts)
            wish = replace(wish, problem=problem) if problem else wish
        return await self._batcher.submit(wish, key=wish.id, size=wish.size)

    async def mark_deleting(self, resource_id: str, operation_id: str) -> None:
        """Mark a bundle for deletion on behalf of an operator, whoever its source is; absent is as good as marked."""
        nothing = record.Parts(envelope=b"{}", metadata=b"", data=b"")
        wish = admission.Wish(
            action=event.Action.DELETE_REQUEST,
            id=resource_id,
            source="",
            consumer="",
            version=0,
            event_id="",
            operation_id=operation_id,
            parts=nothing,
            by_operator=True,
        )
        await self.submit(wish)

    async def run(self) -> None:
        """Handle wishes until `stop`, and then those that had been taken."""
        await self._batcher.run()

    def stop(self) -> None:
        """Take no new wishes."""
        self._batcher.stop()

    async def _handle(self, wishes: Sequence[admission.Wish]) -> Sequence[Outcome]:
        new = [wish for wish in wishes if wish.action == event.Action.CREATE_REQUEST]
        changes = [wish for wish in wishes if wish.action != event.Action.CREATE_REQUEST]
        outcomes: dict[str, Outcome] = {}
        if new:
            outcomes |= await self._isolate(self._create, new)
        if changes:
            outcomes |= await self._isolate(self._change, changes)
        for wish in wishes:
            self._tell(wish, outcomes[wish.id])
        return [outcomes[wish.id] for wish in wishes]

    async def _isolate(
        self, carry: _Carry, wishes: Sequence[admission.Wish], *, patient: bool = True
    ) -> dict[str, Outcome]:
        """Carry out a group; if one wish spoils it, carry them out one by one, so that only that one suffers."""
        try:
            return await carry(wishes, patient=patient)
        except store_errors.Locked as error:
            if len(wishes) == 1:
                return {wishes[0].id: error}
        except (store_errors.BadValue, store_errors.Dangling) as error:
            if len(wishes) == 1:
                return {wishes[0].id: _refuse(wishes[0], error)}
        except store_errors.StoreError as error:
            return dict.fromkeys((wish.id for wish in wishes), error)
        outcomes: dict[str, Outcome] = {}
        for wish in wishes:
            outcomes |= await self._isolate(carry, [wish], patient=False)
        return outcomes

    async def _create(self, wishes: Sequence[admission.Wish], *, patient: bool) -> dict[str, Outcome]:
        del patient  # a new row is nobody's yet; only the same id at the same moment is waited for
        outcomes: dict[str, Outcome] = {wish.id: admission.judge_new(wish) for wish in wishes}
        wanted = [self._new_spec(wish, outcomes[wish.id]) for wish in wishes]
        specs = [spec for spec in wanted if spec is not None]
        if not specs:
            return outcomes
        async with self._world.database.connection() as connection:
            inserted = await resources.insert_new(connection, specs, now=self._world.now())
            left_out = [spec.id for spec in specs if spec.id not in inserted]
            held = await resources.read_for_change(connection, left_out) if left_out else {}
            # Either there is no such consumer, or what held the id has gone this very moment.
            free = [spec for spec in specs if spec.id in left_out and spec.id not in held]
            if free:
                inserted |= await resources.insert_new(connection, free, now=self._world.now())
        by_id = {wish.id: wish for wish in wishes}
        for each in set(left_out) - inserted:
            outcomes[each] = admission.judge_collision(by_id[each], held.get(each))
        return outcomes

    async def _change(self, wishes: Sequence[admission.Wish], *, patient: bool) -> dict[str, Outcome]:
        ids = [wish.id for wish in wishes]
        async with locked(self._world, ids, kind="resources", patient=patient) as connection:
            held = await resources.read_for_change(connection, ids)
            outcomes: dict[str, Outcome] = {wish.id: admission.judge_change(wish, held.get(wish.id)) for wish in wishes}
            await self._write(connection, wishes, outcomes)
        return outcomes

    async def _write(
        self, connection: pool.Connection, wishes: Sequence[admission.Wish], outcomes: dict[str, Outcome]
    ) -> None:
        now = self._world.now()
        wanted = [self._new_spec(wish, outcomes[wish.id]) for wish in wishes]
        specs = [spec for spec in wanted if spec is not None]
        if specs:
            await resources.write_updates(connection, specs, now=now)
        leaving = [wish.id for wish in wishes if isinstance(outcomes[wish.id], admission.MarkDeleting)]
        if leaving:
            event_ids = [self._world.new_id() for _ in leaving]
            await resources.mark_deleting(connection, leaving, event_ids=event_ids, now=now)

    def _new_spec(self, wish: admission.Wish, outcome: Outcome) -> rows.NewSpec | None:
        if not isinstance(outcome, admission.Create | admission.Update):
            return None
        return rows.NewSpec(
            id=wish.id,
            source=wish.source,
            consumer=wish.consumer,
            version=outcome.version,
            parts=wish.parts,
            event_id=self._world.new_id(),
        )

    def _tell(self, wish: admission.Wish, outcome: Outcome) -> None:
        fields = describe.with_operation(wish.operation_id, wish.id)
        match outcome:
            case refusal.Refusal():
                self._world.journal.warning(
                    "request refused", {**fields, Key.EVENT_SOURCE: wish.source, Key.REASON: str(outcome)}
                )
            case store_errors.StoreError():
                self._world.journal.error("request failed", {**fields, Key.EVENT_SOURCE: wish.source}, err=outcome)
            case admission.Nothing(reason):
                self._world.journal.info("request changes nothing", {**fields, Key.REASON: reason}, v=2)


def _refuse(wish: admission.Wish, error: store_errors.BadValue | store_errors.Dangling) -> refusal.Refusal:
    if isinstance(error, store_errors.Dangling):
        return refusal.unknown_consumer(wish.consumer)
    verb: refusal.Verb = "create" if wish.action == event.Action.CREATE_REQUEST else "update"
    return refusal.invalid(f"the database cannot hold a value of the event: {error}", verb=verb)
