"""Carry out operator actions: resend, resync, pause, resume, retire and sweep.

`decide.actions` plans; a dry run returns the plan and writes nothing. An action, its history entry and the events that
it queues are one transaction, so that it is done as a whole or not at all, also after a kill.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import RestPhrase
from maestropy.server.context import Context
from maestropy.server.decide.actions import delivery, retirement, sweep
from maestropy.server.decide.actions.plans import Plan, Refusal
from maestropy.server.decide.history import kinds
from maestropy.store import actions, errors, resources, rows, statuses
from maestropy.store.history import history_entries
from maestropy.store.postgres import pool

SHOWN_WORKS = 100
"""How many works a plan names."""

_Planner = Callable[[rows.ConsumerFacts, Sequence[rows.NamedWork]], Plan]
_Writer = Callable[[pool.Connection, rows.ConsumerFacts], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRequest:
    """Who asks for an action, why, and whether only its plan is wanted."""

    requester: rows.Requester
    by: str
    """The requester in one text, for other operators."""
    operation_id: str
    reason: str = ""
    requested_by: str = ""
    """Who the client says it is; proves nothing."""
    is_dry_run: bool = False


class OperatorActions:
    """Plans actions and carries them out."""

    def __init__(
        self,
        context: Context,
        *,
        keeps_history: bool,
        sees_agents: bool,
        connected: Callable[[], Collection[str] | None] = lambda: None,
    ) -> None:
        """Prepare; `sees_agents` says whether the broker knows which agents are connected, `connected` which are here.

        `connected` returns consumers, and None where that cannot be known.
        """
        self._connected = connected
        self._context = context
        self._sees_agents = sees_agents
        self._keeps_history = keeps_history
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.SERVER})

    async def resend(
        self, work_id: str, request: ActionRequest, *, sources: frozenset[str] | None = None
    ) -> Plan | None:
        """Send a work again; None if there is none, or if it belongs to none of `sources`."""
        now = self._context.now()
        async with self._context.database.transaction() as connection:
            found = await actions.work(connection, work_id, sources=sources)
            if found is None:
                return None
            work, is_waiting = found
            facts = await actions.consumer_facts(connection, work.consumer)
            plan = delivery.resend(work, is_waiting=is_waiting, pause=facts.pause if facts is not None else None)
            if request.is_dry_run:
                return plan
            # Also when its event waits: it is announced again, and a lost notification is made up for.
            await actions.queue_works(connection, work.consumer, work_id=work.id, now=now)
            entry = rows.HistoryEntry(
                kind=kinds.WORK_RESENT, at=now, subject_id=work.id, source=work.source, version=work.version
            )
            await self._record(connection, entry, plan, request, name=work.name)
        self._log(plan, request)
        return plan

    async def resync(self, key: str, request: ActionRequest) -> Plan | None:
        """Send all works of a consumer again and resync with its agents; None if there is no such consumer."""

        async def write(connection: pool.Connection, facts: rows.ConsumerFacts) -> bool:
            await actions.queue_works(connection, facts.name, now=self._context.now())
            await actions.request_resync(connection, facts.name)
            return True

        def plan(facts: rows.ConsumerFacts, works: Sequence[rows.NamedWork]) -> Plan:
            connected = self._connected()
            return delivery.resync(facts, works, is_connected=None if connected is None else facts.name in connected)

        return await self._on_consumer(key, request, plan=plan, write=write, kind=kinds.CONSUMER_RESYNCED)

    async def pause(self, key: str, request: ActionRequest) -> Plan | None:
        """Pause the delivery to a consumer; None if there is no such consumer."""

        async def write(connection: pool.Connection, facts: rows.ConsumerFacts) -> bool:
            pause = rows.Pause(facts.name, self._context.now(), request.by, request.reason)
            return await actions.pause(connection, pause)

        return await self._on_consumer(key, request, plan=delivery.pause, write=write, kind=kinds.CONSUMER_PAUSED)

    async def resume(self, key: str, request: ActionRequest) -> Plan | None:
        """Resume the delivery to a consumer and send all of its works; None if there is no such consumer."""

        async def write(connection: pool.Connection, facts: rows.ConsumerFacts) -> bool:
            if not await actions.resume(connection, facts.name):
                return False
            await actions.queue_works(connection, facts.name, now=self._context.now())
            return True

        return await self._on_consumer(key, request, plan=delivery.resume, write=write, kind=kinds.CONSUMER_RESUMED)

    async def retire(
        self, key: str, request: ActionRequest, *, fate: retirement.Fate, pin: str
    ) -> Plan | Refusal | None:
        """Release or delete the works of a dead consumer, as a plan that was shown says; None: no such consumer."""
        now = self._context.now()
        try:
            async with self._context.database.transaction() as connection:
                facts = await actions.consumer_facts(connection, key)
                if facts is None:
                    return None
                versions = await actions.versions(connection, facts.name, locks=not request.is_dry_run)
                works = await actions.works_of_consumer(connection, facts.name, limit=SHOWN_WORKS)
                plan = retirement.plan(facts, works, versions, fate=fate, now=now, sees_agents=self._sees_agents)
                if isinstance(plan, Refusal) or request.is_dry_run:
                    return plan
                if plan.pin != pin:
                    return _changed(plan.action)
                if fate == "release":
                    await self._release(connection, facts, versions, request)
                else:
                    await self._mark_deleting(connection, versions, request)
                entry = rows.HistoryEntry(kind=kinds.CONSUMER_RETIRED, at=now, subject_id=facts.id)
                await self._record(connection, entry, plan, request, fate=fate)
        except errors.ForeignKeyViolation:
            return _changed(f"retire --{fate}")  # a source has created a work meanwhile
        self._log(plan, request)
        return plan

    async def sweep(self, request: ActionRequest, *, classes: Collection[str], pin: str) -> Plan | Refusal:
        """Remove rows that belong to nothing, as a plan that was shown says."""
        now = self._context.now()
        async with self._context.database.transaction() as connection:
            orphans = await actions.orphans(connection, before=now - sweep.LEFT_BEHIND)
            present = sweep.of_present_agents(orphans, connected=self._connected() or (), now=now)
            plan = sweep.plan(orphans, await actions.agent_side(connection), classes=classes, present=present)
            if request.is_dry_run:
                return plan
            if plan.pin != pin:
                return _changed(plan.action)
            if plan.is_change:
                removed = sweep.subjects([one for one in orphans if one not in present], classes=classes)
                await actions.remove_orphans(connection, removed)
                entry = rows.HistoryEntry(kind=kinds.DATABASE_SWEPT, at=now)
                await self._record(connection, entry, plan, request, changes=_counts(removed))
        self._log(plan, request)
        return plan

    async def _on_consumer(
        self, key: str, request: ActionRequest, *, plan: _Planner, write: _Writer, kind: str
    ) -> Plan | None:
        async with self._context.database.transaction() as connection:
            facts = await actions.consumer_facts(connection, key)
            if facts is None:
                return None
            works = await actions.works_of_consumer(connection, facts.name, limit=SHOWN_WORKS)
            planned = plan(facts, works)
            if request.is_dry_run or not planned.is_change:
                return planned
            if not await write(connection, facts):
                # Another operator was quicker by a moment.
                return plan(await actions.consumer_facts(connection, key) or facts, works)
            entry = rows.HistoryEntry(kind=kind, at=self._context.now(), subject_id=facts.id)
            await self._record(connection, entry, planned, request)
        self._log(planned, request)
        return planned

    async def _release(
        self,
        connection: pool.Connection,
        facts: rows.ConsumerFacts,
        versions: Sequence[rows.WorkVersion],
        request: ActionRequest,
    ) -> None:
        ids, now = [version.id for version in versions], self._context.now()
        await actions.mark_released(connection, ids, now=now)
        stored = await statuses.read_for_status_update(connection, ids)
        final = [
            rows.NewStatus(
                id=status.id,
                source=status.source,
                document=retirement.release_status(status, event_id=self._context.new_id(), by=request.by, now=now),
                event_id=self._context.new_id(),
            )
            for status in stored.values()
        ]
        if final:
            await statuses.remove(connection, final, now=now)
        if self._keeps_history:
            entries = [
                rows.HistoryEntry(
                    kind=kinds.WORK_RELEASED,
                    at=now,
                    subject_id=status.id,
                    consumer=facts.name,
                    source=status.source,
                    version=status.version,
                    requester=request.requester,
                    operation_id=kinds.short(request.operation_id),
                    detail=kinds.detail(_asked(request)),
                )
                for status in stored.values()
            ]
            await history_entries.record(connection, entries)
        await actions.remove_consumer(connection, facts.name)

    async def _mark_deleting(
        self, connection: pool.Connection, versions: Sequence[rows.WorkVersion], request: ActionRequest
    ) -> None:
        ids = [version.id for version in versions if not version.is_deleting]
        # The history of a work names its source: the action says that it was not the source who asked.
        detail = kinds.detail({"action": "retire", **_asked(request)})
        record = rows.Record(request.requester, kinds.short(request.operation_id), detail)
        records = [record if self._keeps_history else None] * len(ids)
        event_ids = [self._context.new_id() for _ in ids]
        if ids:
            await resources.mark_deleting(
                connection, ids, event_ids=event_ids, now=self._context.now(), records=records
            )

    async def _record(
        self,
        connection: pool.Connection,
        subject: rows.HistoryEntry,
        plan: Plan,
        request: ActionRequest,
        **members: object,
    ) -> None:
        """Record an action in its own transaction."""
        if not self._keeps_history:
            return
        detail = {**_asked(request), "works": plan.work_count, **members}
        entry = rows.HistoryEntry(
            kind=subject.kind,
            at=subject.at,
            subject_id=subject.subject_id,
            consumer=plan.consumer,
            source=subject.source,
            version=subject.version,
            requester=request.requester,
            operation_id=kinds.short(request.operation_id),
            detail=kinds.detail(detail),
        )
        await history_entries.record(connection, [entry])

    def _log(self, plan: Plan, request: ActionRequest) -> None:
        fields = {
            LogKey.OP_ID: request.operation_id,
            LogKey.ACTION: plan.action,
            LogKey.CONSUMER: plan.consumer,
            LogKey.COUNT: plan.work_count,
            LogKey.REASON: f"by {request.by}{f': {request.reason}' if request.reason else ''}",
        }
        self._journal.warning(RestPhrase.ACTION, fields)


def _asked(request: ActionRequest) -> dict[str, object]:
    """Return what every entry of an action says about its request."""
    return {"reason": kinds.short(request.reason), "requested_by": kinds.short(request.requested_by)}


def _changed(action: str) -> Refusal:
    return Refusal(
        reason=f"The plan of {action} is not the one that was shown: works or rows have changed since. Review it again "
        "with a dry run, and carry out what it says now"
    )


def _counts(removed: dict[str, list[str]]) -> list[str]:
    return [f"- {len(subjects)} {kind}" for kind, subjects in removed.items()]
