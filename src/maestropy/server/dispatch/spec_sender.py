"""Read specs and send them to agents in the order in which they were read.

An agent must never get an older state of a resource after a newer one. So rows are read and sent under one lock: a lock
of this process where only this instance reaches the agents, an advisory lock of the database where every instance does.
The spec dispatcher and the resync send through here. Marking events as reconciled is for the dispatcher.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import SpecDispatcherPhrase
from maestropy.server.brokers import port
from maestropy.server.brokers.port import Outcome
from maestropy.server.context import Context
from maestropy.server.decide import delete_recovery, delivery
from maestropy.server.telemetry import log_fields, request_spans
from maestropy.store import actions, data_safety, resources, rows
from maestropy.store.postgres import locks, pool
from maestropy.wire import codec, errors, resync
from maestropy.wire.events import event

RESOURCES_AT_ONCE = 64
"""How many resources are read and sent under the lock at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncEnd:
    """The end of the answer to a spec resync."""

    consumer: str
    marker: str
    extensions: Mapping[str, event.Attribute]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Absent:
    """Works that the agents of a consumer have and the server does not."""

    consumer: str
    versions: Sequence[resync.StoredVersion]
    build: Callable[..., event.CloudEvent]
    honours_pause: bool


class SpecSender:
    """Sends specs in order."""

    def __init__(
        self,
        context: Context,
        broker: port.Broker,
        *,
        recovery: delete_recovery.RecoveryPolicy | None = None,
    ) -> None:
        self._context = context
        self._broker = broker
        self._first_delay = (recovery or delete_recovery.RecoveryPolicy()).initial
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.CONTROLLERS})
        self._lock = asyncio.Lock()

    async def send(
        self, ids: Collection[str], *, can_wait: bool = True, resync_ids: Mapping[str, str] | None = None
    ) -> dict[str, port.SendResult]:
        """Send resources as they are now; those that do not exist any more are missing in the result.

        With `can_wait`, a resource whose consumer has no room is not sent. `resync_ids` names the spec resync request
        that each of them answers.
        """
        async with self._in_order(ids) as connection:
            specs = await resources.read_specs(connection, ids)
            return await self._send_specs(specs, {}, can_wait=can_wait, resync_ids=resync_ids)

    async def send_pending(self, pending: Mapping[str, Sequence[rows.PendingEvent]]) -> dict[str, port.SendResult]:
        """Send resources for which events are pending, with the action of the newest event."""
        async with self._lock, self._context.database.connection() as connection:
            return await self.send_claimed(connection, pending)

    async def send_claimed(
        self, connection: pool.Connection, pending: Mapping[str, Sequence[rows.PendingEvent]]
    ) -> dict[str, port.SendResult]:
        """Send resources whose events, and so their order, this instance has claimed in the transaction."""
        specs = await resources.read_specs(connection, pending.keys())
        return await self._send_specs(specs, {id_: events[-1] for id_, events in pending.items()}, can_wait=True)

    async def delete_orphans(self, consumer: str, orphans: Sequence[resync.StoredVersion]) -> set[Outcome]:
        """Tell the agents of `consumer` that the server does not have these works."""
        absent = _Absent(consumer=consumer, versions=orphans, build=delivery.orphan_deletion, honours_pause=True)
        return (await self._delete([absent]))[0]

    async def delete_removed(self, consumer: str, removed: Sequence[resync.StoredVersion]) -> set[Outcome]:
        """Tell the agents of `consumer` to delete resources that have been deleted and confirmed elsewhere.

        Also while it is paused: another agent of the consumer was sent the same before the pause.
        """
        absent = _Absent(consumer=consumer, versions=removed, build=delivery.removal, honours_pause=False)
        return (await self._delete([absent]))[0]

    async def end_resyncs(self, ends: Sequence[ResyncEnd]) -> list[set[Outcome]]:
        """Tell agents that their spec resyncs are answered, and by which database.

        Not while the consumer is paused: the agent would take works that it has not received for works that the server
        lacks.
        """
        return await self._delete(
            [
                _Absent(
                    consumer=end.consumer,
                    versions=[resync.StoredVersion(end.marker, 0, is_deleting=True)],
                    build=functools.partial(delivery.orphan_deletion, extensions=end.extensions),
                    honours_pause=True,
                )
                for end in ends
            ]
        )

    async def _delete(self, absences: Sequence[_Absent]) -> list[set[Outcome]]:
        """Send deletions for several consumers, whose pauses and resources are read at once."""
        ids = [version.id for absent in absences for version in absent.versions]
        async with self._in_order(ids) as connection:
            held_back = [absent.consumer for absent in absences if absent.honours_pause]
            paused = await actions.paused_among(connection, held_back) if held_back else frozenset()
            # A resource that was created meanwhile is not absent any more.
            existing = {spec.id for spec in await resources.read_specs(connection, ids)}
            database_id = await data_safety.identity(connection)
            return [
                {Outcome.PAUSED}
                if absent.honours_pause and absent.consumer in paused
                else await self._send_absent(absent, existing=existing, database_id=database_id)
                for absent in absences
            ]

    async def _send_absent(self, absent: _Absent, *, existing: Collection[str], database_id: str) -> set[Outcome]:
        results = await self._all(
            self._broker.send(
                absent.build(version, attributes=self._attributes(), consumer=absent.consumer, database_id=database_id),
                port.Address(consumer=absent.consumer, key=version.id),
            )
            for version in absent.versions
            if version.id not in existing
        )
        return {result.outcome for result in results}

    @asynccontextmanager
    async def _in_order(self, ids: Collection[str]) -> AsyncIterator[pool.Connection]:
        if self._broker.capabilities.needs_claims:
            async with self._context.database.transaction(durable=False) as connection:
                await resources.lock(connection, ids, kind=locks.SENDING)
                yield connection
        else:
            async with self._lock, self._context.database.connection() as connection:
                yield connection

    async def _send_specs(
        self,
        specs: Sequence[rows.ResourceSpec],
        events: Mapping[str, rows.PendingEvent],
        *,
        can_wait: bool,
        resync_ids: Mapping[str, str] | None = None,
    ) -> dict[str, port.SendResult]:
        answered = resync_ids or {}
        # Those that answer no request get another ID: the agent must not take them for an answer to its last one.
        unasked = self._context.new_id()
        results = await self._all(
            self._send_spec(spec, events.get(spec.id), can_wait=can_wait, resync_id=answered.get(spec.id) or unasked)
            for spec in specs
        )
        return {spec.id: result for spec, result in zip(specs, results, strict=True)}

    async def _all(self, sends: Iterable[Coroutine[Any, Any, port.SendResult]]) -> list[port.SendResult]:
        """Send one after the other, or at the same time where each send waits for the broker."""
        if self._broker.capabilities.waits_for_acknowledgement:
            return await asyncio.gather(*sends)
        return [await send for send in sends]

    async def _send_spec(
        self, spec: rows.ResourceSpec, pending: rows.PendingEvent | None, *, can_wait: bool, resync_id: str
    ) -> port.SendResult:
        if spec.is_paused:
            return port.SendResult(Outcome.PAUSED)
        # Asked for every resource: a few large ones fill the queue of a consumer.
        if can_wait and not self._broker.has_room(spec.consumer):
            return port.SendResult(Outcome.NO_ROOM)
        event_id = pending.id if pending else ""
        action = event.EventAction.RESYNC_RESPONSE
        if pending is not None:
            action = delivery.action_for(pending.event_type, is_deleting=spec.deleted_at is not None)
        try:
            outgoing = self._spec_event(spec, pending, action=action, resync_id=resync_id)
        except errors.WireError as error:
            # A row that cannot be encoded must not stop the dispatch of the others.
            result = port.SendResult(Outcome.NEVER, str(error))
        else:
            log_fields.log_dispatch(self._journal, outgoing, action=action, event_id=event_id)
            result = await self._send_event(outgoing, spec, is_resync=pending is None)
        if result.outcome not in port.DELIVERED:
            self._log_failure(spec, event_id, result)
        return result

    async def _send_event(
        self, outgoing: event.CloudEvent, spec: rows.ResourceSpec, *, is_resync: bool
    ) -> port.SendResult:
        address = port.Address(consumer=spec.consumer, key=spec.id)
        spans, clock = self._context.spans, self._context.clock
        sending = spans.dispatch(outgoing, is_resync=is_resync, now=clock.epoch()) if spans.is_on else None
        if sending is None:
            return await self._broker.send(outgoing, address)
        result = await self._broker.send(request_spans.with_parent(outgoing, sending), address)
        problem = "" if result.outcome in port.DELIVERED else result.reason or result.outcome.name
        spans.dispatched(sending, problem=problem, now=clock.epoch())
        return result

    def _log_failure(self, spec: rows.ResourceSpec, event_id: str, result: port.SendResult) -> None:
        fields = {LogKey.EVENT: event_id, LogKey.RESOURCE_ID: spec.id}
        match result.outcome:
            case Outcome.NEVER:
                self._journal.error(SpecDispatcherPhrase.PUBLISH_FAILED, fields, err=result.reason)
            case Outcome.OFFLINE | Outcome.REJECTED:
                self._journal.info(SpecDispatcherPhrase.PUBLISH_FAILED, {**fields, LogKey.REASON: result.reason}, v=2)

    def _spec_event(
        self, spec: rows.ResourceSpec, pending: rows.PendingEvent | None, *, action: event.EventAction, resync_id: str
    ) -> event.CloudEvent:
        outgoing = delivery.spec_event(
            spec,
            action=action,
            attributes=self._attributes,
            source_id=self._context.source_id,
            resync_id="" if pending else resync_id,
        )
        if pending is None or not pending.is_repeated:
            return outgoing
        is_replaced = delete_recovery.needs_replacement(
            spec, is_repeated=True, now=self._context.now(), initial=self._first_delay
        )
        return delivery.replacement_deletion(outgoing) if is_replaced else outgoing

    def _attributes(self) -> codec.ContextAttributes:
        return codec.ContextAttributes(
            id=self._context.new_id(), source=self._context.source_id, time=self._context.timestamp()
        )
