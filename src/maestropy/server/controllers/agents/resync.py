"""Resync agents: send the specs that an agent misses, and request the statuses that the server misses.

After a restart a whole fleet resyncs at once. Requests that arrive while the database is read for earlier ones share
the next read, so a thousand agents cost some dozens of transactions. `dispatch.spec_sender` sends, in order. A resync
that failed is repeated by the caller: the agent over gRPC, `resync_queue` behind a message broker.
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from maestropy.aio import batches, tasks
from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import ResyncPhrase
from maestropy.server.brokers import port
from maestropy.server.brokers.port import Outcome
from maestropy.server.context import Context
from maestropy.server.decide import delivery, orphans
from maestropy.server.dispatch.spec_sender import RESOURCES_AT_ONCE, ResyncEnd, SpecSender
from maestropy.store import actions, data_safety, events, resources
from maestropy.store import errors as store_errors
from maestropy.wire import resync, timestamps
from maestropy.wire.events import event

# All agents of a fleet may wait. Reads come one after the other, so a slow database wants few of them, but each
# consumer may have thousands of resources; sizes are numbers of resources here. Agents that reconnect together arrive
# one by one: without a moment's wait a read would serve three of them.
_READS = batches.BatchLimits(batch_items=128, batch_bytes=10_000, waiting_items=20_000, linger_seconds=0.02)
_PARTS = batches.BatchLimits(batch_bytes=RESOURCES_AT_ONCE, waiting_items=20_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedVersions:
    """The resource versions that the agent of a consumer reports."""

    consumer: str
    request: resync.SpecResyncRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncDiff:
    """The difference between an agent and the database."""

    send: Sequence[str]
    """Resources to send as they are."""
    orphans: Sequence[resync.StoredVersion]
    """Works that the agent has and the server does not."""
    pending: Sequence[str]
    """Events that are reconciled once all of this is sent."""
    is_consumer_known: bool
    hold: resync.ReportedHold | None
    """The works that the agent keeps, or that the server does not ask the agent to delete."""
    is_hold_adopted: bool
    is_hold_stored: bool
    ends_hold: bool
    """Whether a stored hold of this consumer is over."""
    read_at: timestamps.Timestamp
    """Database time of the comparison: what was created before is part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Some of the resources that the agent of a consumer misses."""

    consumer: str
    ids: Sequence[str]
    resync_id: str
    """The marker of the request that is answered; empty if the agent did not ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredStatuses:
    """What the database says about the statuses of a consumer."""

    marks: Sequence[resync.StatusMark]
    has_pending_events: bool


class Resync:
    """Answers spec resyncs and requests statuses."""

    def __init__(
        self, context: Context, broker: port.Broker, sender: SpecSender, *, wake_dispatcher: Callable[[], None]
    ) -> None:
        self._context = context
        self._broker = broker
        self._sender = sender
        self._wake_dispatcher = wake_dispatcher
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.SERVER})
        self._paused: set[str] = set()
        """Consumers whose agents here have had no answer to their last resync."""
        self._diffs: batches.Batcher[ReportedVersions, ResyncDiff] = batches.Batcher(self._compare, limits=_READS)
        self._statuses: batches.Batcher[str, _StoredStatuses] = batches.Batcher(self._read_statuses, limits=_READS)
        self._parts: batches.Batcher[_Part, Mapping[str, port.SendResult]] = batches.Batcher(self._send, limits=_PARTS)
        self._ends: batches.Batcher[ResyncEnd, set[Outcome]] = batches.Batcher(sender.end_resyncs, limits=_PARTS)

    def start(self, task_owner: tasks.TaskOwner) -> None:
        """Start to handle requests."""
        task_owner.start("compare versions", self._diffs.run())
        task_owner.start("read status hashes", self._statuses.run())
        task_owner.start("send resync parts", self._parts.run())
        task_owner.start("end resyncs", self._ends.run())

    async def answer(self, consumer: str, body: bytes, *, source: str) -> None:
        """Send the specs that the agents of `consumer` miss, then reconcile the events that were pending for it.

        Raises `WireError` when the request cannot be read, and `NotDelivered` when it should be answered again. The
        agents of a paused consumer get no answer (`Paused`), not even its end, also when the consumer is resumed
        meanwhile: they would take works that they have not received for works that the server does not have.
        """
        started = self._context.clock.monotonic()
        request = resync.decode_request(body)
        reported = ReportedVersions(consumer=consumer, request=request)
        diff = await self._diffs.submit(reported, key=consumer, size=len(request.versions))
        await self._store_hold(consumer, diff)
        outcomes = await self._resend(consumer, diff.send, resync_id=request.marker)
        if Outcome.PAUSED in outcomes:
            raise self._pause_of(consumer)
        for start in range(0, len(diff.orphans), RESOURCES_AT_ONCE):
            await self._broker.wait_for_room(consumer)
            outcomes |= await self._sender.delete_orphans(consumer, diff.orphans[start : start + RESOURCES_AT_ONCE])
        if request.marker and request.marker in request.versions:
            end = ResyncEnd(consumer=consumer, marker=request.marker, extensions=_extensions(diff))
            outcomes |= await self._end(end)
        if not self._broker.reaches(consumer):
            return  # the agent has gone; it resyncs when it is back
        _raise_if_undelivered(outcomes)
        if Outcome.PAUSED in outcomes:
            raise self._pause_of(consumer)
        self._paused.discard(consumer)
        if Outcome.NO_SUBSCRIBER in outcomes:
            raise port.NoSubscriber(consumer)
        await self._reconcile(diff.pending)
        seconds = self._context.clock.monotonic() - started
        self._context.metrics.spec_resynced(source, consumer, data_type=event.MANIFEST_BUNDLES, seconds=seconds)

    async def on_subscribe(self, consumer: str, *, subscription_id: str) -> None:
        """Request statuses that were lost while an agent was away, and dispatch the events that are pending for it."""
        try:
            stored = await self._statuses.submit(consumer, key=subscription_id, size=0)
            await self._request(stored.marks, consumer=consumer, subscription_id=subscription_id)
        except (store_errors.StoreError, batches.Overloaded, batches.Stopped, port.NotDelivered) as error:
            self._journal.error(ResyncPhrase.CONSUMER_FAILED, {LogKey.CONSUMER: consumer}, err=error)
            self._wake_dispatcher()
        else:
            if stored.has_pending_events:
                self._wake_dispatcher()

    async def request_statuses(self, consumer: str, *, resends_unconfirmed: bool) -> None:
        """Request the statuses of a consumer whose agents may have been away; raises `NotDelivered` to be repeated.

        With `resends_unconfirmed`, resources that the agent has not confirmed and those being deleted are sent again.
        The broker may have lost them. An agent that connected before the server has sent its resync to no instance; one
        that has finished a deletion forgets it once the broker has its final status, and nothing else would find the
        deletion if that status was lost.
        """
        stored = await self._statuses.submit(consumer, key=consumer, size=0)
        if resends_unconfirmed:
            async with self._context.database.connection() as connection:
                unconfirmed = await resources.unconfirmed_of_consumer(connection, consumer)
            _raise_if_undelivered(await self._resend(consumer, unconfirmed))
        await self._request(stored.marks, consumer=consumer)

    async def request_statuses_of(self, consumer: str, ids: Collection[str]) -> None:
        """Request the statuses of some resources; raises `NotDelivered` to be repeated."""
        async with self._context.database.connection() as connection:
            marks = await resources.status_hashes_of_resources(connection, ids, consumer=consumer)
        # Not the key of a resync of all statuses: one must not replace the other in the mailbox of an agent.
        await self._request(marks, consumer=consumer, key="/status-recheck")

    async def take_resumed(self) -> Collection[str]:
        """Return consumers that are resumed, and whose agents here still have to resync; each is returned once.

        A resumption sends all works. Only a resync finds works that an agent has and the database does not.
        """
        self._paused = {consumer for consumer in self._paused if self._broker.reaches(consumer)}
        if not self._paused:
            return ()
        async with self._context.database.connection() as connection:
            resumed = self._paused - await actions.paused_among(connection, self._paused)
        self._paused -= resumed
        return resumed

    def _pause_of(self, consumer: str) -> port.Paused:
        """Note and return why a resync is not answered."""
        if consumer not in self._paused:
            self._journal.info(ResyncPhrase.PAUSED, {LogKey.CONSUMER: consumer})
        self._paused.add(consumer)
        return port.Paused(consumer)

    async def _resend(self, consumer: str, ids: Sequence[str], *, resync_id: str = "") -> set[Outcome]:
        """Send resources as fast as the consumer takes them; stop when it is not reached, or the broker fails."""
        outcomes: set[Outcome] = set()
        left = deque(ids)
        while left and self._broker.reaches(consumer):
            await self._broker.wait_for_room(consumer)
            ids_at_once = [left.popleft() for _ in range(min(RESOURCES_AT_ONCE, len(left)))]
            results = await self._send_part(_Part(consumer=consumer, ids=ids_at_once, resync_id=resync_id))
            waiting = [id_ for id_, result in results.items() if result.outcome is Outcome.NO_ROOM]
            outcomes.update(result.outcome for result in results.values())
            _raise_if_undelivered(outcomes)
            left.extendleft(reversed(waiting))
        return outcomes

    async def _request(
        self,
        marks: Sequence[resync.StatusMark],
        *,
        consumer: str,
        subscription_id: str = "",
        key: str = "/status-resync",
    ) -> None:
        if not marks:
            return
        max_bytes = self._broker.max_event_bytes - resync.ENVELOPE_BYTES
        for number, body in enumerate(resync.status_hash_batches(marks, max_bytes=max_bytes)):
            request = delivery.status_resync_request(
                body,
                consumer=consumer,
                source_id=self._context.source_id,
                event_id=self._context.new_id(),
                now=self._context.timestamp(),
            )
            fields = {LogKey.CONSUMER: consumer, LogKey.BATCH: number}
            self._journal.info(ResyncPhrase.STATUS_BATCH, fields, v=4)
            address = port.Address(consumer=consumer, key=f"{key}/{number}", subscription_id=subscription_id)
            result = await self._broker.send(request, address)
            if self._broker.reaches(consumer):
                _raise_if_undelivered({result.outcome}, reason=result.reason)

    async def _compare(self, agents: Sequence[ReportedVersions]) -> Sequence[ResyncDiff]:
        """Compare the versions of several agents with the database in one read."""
        consumers = {agent.consumer for agent in agents}
        read_at = self._context.timestamp()
        async with self._context.database.connection() as connection:
            # Before the versions are read: this answer does not cover an event that comes later.
            pending = await events.pending_of_consumers(connection, consumers)
            # Only our agents report which event a spec came in.
            with_event_ids = any(agent.request.event_ids for agent in agents)
            stored = await resources.versions_of_consumers(connection, consumers, with_event_ids=with_event_ids)
            known = await resources.existing_consumers(connection, consumers)
            held = await data_safety.held_consumers(connection, consumers)
            responses = [_response(agent, stored[agent.consumer]) for agent in agents]
            holds = [
                orphans.hold(agent.request, response, is_consumer_known=agent.consumer in known)
                for agent, response in zip(agents, responses, strict=True)
            ]
            hold_ids = {hold.id for hold in holds if hold is not None}
            adopted = await data_safety.adopted(connection, hold_ids) if hold_ids else frozenset()
        return [
            _diff(
                agent,
                response=response,
                pending=pending[agent.consumer],
                read_at=read_at,
                facts=_HoldFacts(
                    hold=hold,
                    is_adopted=hold is not None and hold.id in adopted,
                    is_stored=agent.consumer in held,
                    is_consumer_known=agent.consumer in known,
                ),
            )
            for agent, response, hold in zip(agents, responses, holds, strict=True)
        ]

    async def _store_hold(self, consumer: str, diff: ResyncDiff) -> None:
        """Keep what the agent holds, for operators."""
        if diff.hold is None and not diff.ends_hold:
            return
        if diff.hold is not None and not self._broker.reaches(consumer):
            # The request is late: the agent has connected elsewhere, where it may have reported the end of the hold.
            return
        async with self._context.database.transaction() as connection:
            if diff.hold is None:
                await data_safety.remove_hold(connection, consumer)
                self._journal.info(ResyncPhrase.HOLD_ENDED, {LogKey.CONSUMER: consumer})
                return
            await data_safety.write_hold(connection, consumer, diff.hold, now=self._context.now())
        fields = {
            LogKey.CONSUMER: consumer,
            LogKey.HOLD_ID: diff.hold.id,
            LogKey.COUNT: diff.hold.count,
            LogKey.REASON: f"{diff.hold.reason}: {diff.hold.message}",
        }
        self._journal.warning(ResyncPhrase.HOLD_ADOPTED if diff.is_hold_adopted else ResyncPhrase.HOLD, fields)

    async def _read_statuses(self, consumers: Sequence[str]) -> Sequence[_StoredStatuses]:
        async with self._context.database.connection() as connection:
            pending: Mapping[str, Sequence[str]] = {}
            if self._broker.capabilities.reports_subscriptions:
                pending = await events.pending_of_consumers(connection, set(consumers))
            marks = await resources.status_hashes_of_consumers(connection, set(consumers))
        return [
            _StoredStatuses(marks=marks[consumer], has_pending_events=bool(pending.get(consumer)))
            for consumer in consumers
        ]

    async def _send_part(self, part: _Part) -> Mapping[str, port.SendResult]:
        """Send one part: together with those of other consumers, unless it may have to wait for other instances."""
        if self._broker.capabilities.needs_claims:
            return await self._sender.send(part.ids, resync_ids=dict.fromkeys(part.ids, part.resync_id))
        return await self._parts.submit(part, key=part.consumer, size=len(part.ids))

    async def _send(self, parts: Sequence[_Part]) -> Sequence[Mapping[str, port.SendResult]]:
        resync_ids = {id_: part.resync_id for part in parts for id_ in part.ids}
        results = await self._sender.send(resync_ids, resync_ids=resync_ids)
        return [{id_: results[id_] for id_ in part.ids if id_ in results} for part in parts]

    async def _end(self, end: ResyncEnd) -> set[Outcome]:
        """Send the end of an answer: together with those to other consumers, as with parts."""
        if self._broker.capabilities.needs_claims:
            return (await self._sender.end_resyncs([end]))[0]
        return await self._ends.submit(end, key=end.marker, size=1)

    async def _reconcile(self, pending: Sequence[str]) -> None:
        if pending:
            async with self._context.database.transaction(durable=False) as connection:
                await events.reconcile(connection, pending, now=self._context.now())


@dataclass(frozen=True, slots=True, kw_only=True)
class _HoldFacts:
    hold: resync.ReportedHold | None
    is_adopted: bool
    is_stored: bool
    is_consumer_known: bool


def _response(agent: ReportedVersions, stored: Sequence[resync.StoredVersion]) -> resync.SpecResyncResponse:
    versions = {id_: version for id_, version in agent.request.versions.items() if id_ != agent.request.marker}
    return resync.spec_resync_response(stored, versions, event_ids=agent.request.event_ids)


def _diff(
    agent: ReportedVersions,
    *,
    response: resync.SpecResyncResponse,
    pending: Sequence[str],
    read_at: timestamps.Timestamp,
    facts: _HoldFacts,
) -> ResyncDiff:
    may_delete = orphans.may_delete(
        agent.request,
        hold=facts.hold,
        is_adopted=facts.is_adopted,
        is_consumer_known=facts.is_consumer_known,
    )
    absent = response.orphans.items() if may_delete else ()
    return ResyncDiff(
        send=response.send,
        orphans=[resync.StoredVersion(id_, version, is_deleting=True) for id_, version in absent],
        pending=pending,
        is_consumer_known=facts.is_consumer_known,
        hold=facts.hold,
        is_hold_adopted=facts.is_adopted,
        is_hold_stored=facts.is_stored,
        # Of a request in several parts only the first tells whether the agent holds anything.
        ends_hold=facts.is_stored
        and facts.hold is None
        and (agent.request.states_hold or agent.request.has_versions_only),
        read_at=read_at,
    )


def _extensions(diff: ResyncDiff) -> dict[str, event.Attribute]:
    """Return what the end of an answer tells the agent about data safety."""
    extensions: dict[str, event.Attribute] = {event.DATABASE_TIME: diff.read_at}
    if not diff.is_consumer_known:
        extensions[event.UNKNOWN_CONSUMER] = True
    if diff.hold is not None or (diff.is_hold_stored and not diff.ends_hold):
        extensions[event.STORED_HOLD] = True
    if diff.hold is not None and diff.is_hold_adopted:
        extensions[event.ADOPTED_HOLD] = diff.hold.id
    return extensions


def _raise_if_undelivered(outcomes: set[Outcome], *, reason: str = "") -> None:
    if not outcomes.isdisjoint((Outcome.OFFLINE, Outcome.REJECTED)):
        raise port.NotDelivered(reason or "the broker did not take everything")
