"""Stage: pending events become messages to the agents connected here.

A wake-up names events, the sweep asks for everything; either way the rows are read again and sent as they are now, so
a wake-up too many is harmless and one too few is made up for. Each consumer gets its turn, however long the queue of
another is, and a bundle with several pending events is sent once.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from maestropy.journal.fields import Deliver as Phrase
from maestropy.journal.fields import Key, Logger
from maestropy.server import describe
from maestropy.server.backlog import Backlog
from maestropy.server.decide import delivery, patience
from maestropy.server.lacks import deletions
from maestropy.server.streams import Streams
from maestropy.server.world import World
from maestropy.store import events, resources, rows, statuses
from maestropy.wire import envelope, event, resync
from maestropy.wire import errors as wire_errors

_ROWS_AT_ONCE = 64
_PER_CONSUMER = 256
_SCAN_LIMIT = 5000
_AHEAD_LIMIT = 10_000


@dataclass(slots=True)
class _Due:
    """What one consumer should be sent: the pending events of each changed bundle."""

    by_resource: dict[str, list[rows.Pending]] = field(default_factory=lambda: defaultdict(list))


class Deliver:
    """Sends specs to agents."""

    def __init__(self, world: World, streams: Streams) -> None:
        self._world = world
        self._journal = world.journal.bind({Key.LOGGER: Logger.CONTROLLERS})
        self._streams = streams
        self._backlog = Backlog(world, queue=world.metrics.event_queue, controller=world.metrics.spec)
        self.tickets = self._backlog.tickets
        # Rows are read and queued under this lock, so that what is queued later was also read later: an agent never
        # gets an older state of a bundle after a newer one.
        self._in_order = asyncio.Lock()
        # Events that a sweep found and sent here before their wake-up came: the wake-up must not send them again.
        self._found_by_sweep: set[str] = set()
        self._sent_ahead: dict[str, None] = {}
        self._missed_since: datetime | None = None

    async def run(self) -> None:
        """Deliver for ever."""
        await self._backlog.work_off(
            self._turn,
            is_idle=lambda: not self._streams.topics(),
            journal=self._journal,
            failed=Phrase.HANDLE_FAILED,
            again=True,
        )

    def look_since(self, moment: datetime) -> None:
        """Send again what changed after `moment`, whoever has delivered it elsewhere."""
        self._missed_since = min(moment, self._missed_since or moment)
        self.tickets.add_everything()

    async def _turn(self, ids: Sequence[str], *, everything: bool) -> int:
        if self._missed_since is not None:
            await self._send_changed(self._missed_since)
        return await self._deliver(await self._look_up(ids, everything=everything))

    async def _send_changed(self, since: datetime) -> None:
        async with self._world.database.connection() as connection:
            changed = await resources.changed_since(connection, self._streams.topics(), since)
            ended = await statuses.ended(connection, self._streams.topics(), since=since)
        self._missed_since = None
        await self._tell_ended(ended)
        for start in range(0, len(changed), _ROWS_AT_ONCE):
            async with self._in_order:
                async with self._world.database.connection() as connection:
                    specs = await resources.read_specs(connection, changed[start : start + _ROWS_AT_ONCE])
                for spec in specs:
                    # Not patiently: who does not read is let go, and learns it all when it comes back.
                    self._queue(spec, action=event.Action.RESYNC_RESPONSE, event_id="")

    async def _look_up(self, ids: Collection[str], *, everything: bool) -> list[rows.Pending]:
        async with self._world.database.connection() as connection:
            found = await events.read_events(connection, ids) if ids else []
            found = [each for each in found if each.id not in self._sent_ahead]
            self._found_by_sweep.clear()
            if everything:
                swept = await events.pending_events(
                    connection, self._streams.topics(), per_consumer=_PER_CONSUMER, limit=_SCAN_LIMIT
                )
                self._found_by_sweep.update(each.id for each in swept)
                self._found_by_sweep.difference_update(ids)
                found += swept
            gone = [each.id for each in found if each.consumer is None and not each.reconciled]
            if gone:
                await events.reconcile(connection, gone, now=self._world.now())
            # Another instance was quicker, with an agent of its own; one of the same consumer may be here, too.
            past = [each.resource_id for each in found if each.consumer is None and each.event_type == "Delete"]
            ended = await statuses.ended(connection, self._streams.topics(), ids=past) if past else {}
        await self._tell_ended(ended)
        return found

    async def _tell_ended(self, ended: Mapping[str, Mapping[str, int]]) -> None:
        """Tell the agents here of bundles that ended before we could; those who know it have nothing to do."""
        for consumer, versions in ended.items():
            orphans = [resync.Row(each, version, is_deleting=True) for each, version in versions.items()]
            for start in range(0, len(orphans), _ROWS_AT_ONCE):
                await self.drop_orphans(consumer, orphans[start : start + _ROWS_AT_ONCE])

    async def _deliver(self, found: Sequence[rows.Pending]) -> int:
        """Send in rounds: at most a few bundles of each consumer, then the next round; return how many were sent."""
        sent = 0
        due: dict[str, _Due] = {}
        for pending in found:
            # Events another instance has reconciled are still sent here: it told its agents, not ours.
            if pending.consumer is not None and pending.consumer in self._streams:
                by_resource = due.setdefault(pending.consumer, _Due()).by_resource
                by_resource[pending.resource_id].append(pending)
        while due:
            share = max(1, _ROWS_AT_ONCE // len(due))
            batch: dict[str, list[rows.Pending]] = {}
            for consumer in list(due):
                waiting = due[consumer].by_resource
                # Where nobody reads, events stay pending and the sweep returns to them.
                for resource_id in list(waiting)[:share] if self._streams.keeps_up(consumer) else ():
                    batch[resource_id] = waiting.pop(resource_id)
                had_its_turn = due.pop(consumer)
                if waiting and self._streams.keeps_up(consumer):
                    due[consumer] = had_its_turn  # behind the others, should there be more of them than a batch takes
                if len(batch) >= _ROWS_AT_ONCE:
                    break
            if batch:
                sent += await self._send(batch)
        return sent

    async def _send(self, batch: dict[str, list[rows.Pending]]) -> int:
        started = self._world.clock.monotonic()
        async with self._in_order:
            async with self._world.database.connection() as connection:
                specs = await resources.read_specs(connection, batch.keys())
            for spec in specs:
                if not self._streams.keeps_up(spec.consumer):
                    del batch[spec.id]  # large bundles have filled its queue; this one stays pending
                    continue
                newest = batch[spec.id][-1]
                action = delivery.action_for(newest.event_type, deleting=spec.deleted_at is not None)
                self._queue(spec, action=action, event_id=newest.id)
        done = [pending.id for group in batch.values() for pending in group if not pending.reconciled]
        if done:
            # A mark that is lost costs one more delivery, which changes nothing: no need to wait for the disk.
            async with self._world.database.transaction(durable=False) as connection:
                await events.reconcile(connection, done, now=self._world.now())
            self._remember(self._found_by_sweep.intersection(done))
        seconds = self._world.clock.monotonic() - started
        self._world.metrics.specs_delivered((group[-1].event_type for group in batch.values()), seconds=seconds)
        return len(batch)

    def _remember(self, sent: Collection[str]) -> None:
        self._sent_ahead.update(dict.fromkeys(sent))
        for oldest in list(self._sent_ahead)[: max(0, len(self._sent_ahead) - _AHEAD_LIMIT)]:
            del self._sent_ahead[oldest]

    def _queue(self, spec: rows.Spec, *, action: event.Action, event_id: str) -> None:
        try:
            outgoing = delivery.spec_event(
                spec,
                action=action,
                source_id=self._world.source_id,
                fresh_id=self._world.new_id(),
                now=self._world.timestamp(),
            )
            if patience.needs_other_words(spec, event_id=event_id, now=self._world.now()):
                outgoing = delivery.displacing(outgoing)
            message = envelope.encode_event(outgoing)
        except wire_errors.WireError as error:
            # Whoever wrote this row, one that cannot be read must not keep the others from their agents.
            self._journal.error(Phrase.HANDLE_FAILED, {Key.EVENT: event_id, Key.RESOURCE_ID: spec.id}, err=error)
            return
        describe.delivering(self._journal, outgoing, action=action, event_id=event_id)
        for subscriber in self._streams.of(spec.consumer):
            subscriber.send(spec.id, message)

    async def send_again(self, wanted: Mapping[str, str]) -> set[str]:
        """Send bundles as they are now, given whose agent lacks each; return those for which it has no room yet."""
        late: set[str] = set()
        async with self._in_order:
            async with self._world.database.connection() as connection:
                specs = await resources.read_specs(connection, wanted)
            for spec in specs:
                if self._streams.keeps_up(wanted[spec.id]):
                    self._queue(spec, action=event.Action.RESYNC_RESPONSE, event_id="")
                else:
                    late.add(spec.id)
        return late

    async def drop_orphans(self, consumer: str, orphans: Sequence[resync.Row]) -> None:
        """Tell the agent of `consumer` to drop what nobody knows any more."""
        async with self._in_order:
            async with self._world.database.connection() as connection:
                told = await deletions(self._world, connection, orphans, consumer=consumer)
            for orphan_id, outgoing in told:
                message = envelope.encode_event(outgoing)
                for subscriber in self._streams.of(consumer):
                    subscriber.send(orphan_id, message)
