"""Stage: status events become messages to the sources subscribed here.

Every instance passes every status event on to its own subscribers. A status is encoded once for all of them, and a
newer status of the same bundle replaces one that a slow subscriber has not read yet.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Sequence
from datetime import timedelta

from maestropy.journal.fields import Fanout as Phrase
from maestropy.journal.fields import Key, Logger
from maestropy.server import describe
from maestropy.server.backlog import Backlog
from maestropy.server.decide import admission, delivery
from maestropy.server.streams import Streams
from maestropy.server.world import World
from maestropy.store import errors as store_errors
from maestropy.store import resources, rows, statuses
from maestropy.wire import envelope, resync
from maestropy.wire import errors as wire_errors

_ROWS_AT_ONCE = 64
_REMEMBERED = 100_000
_SCAN_LIMIT = 20_000
# Clocks of instances differ, and a transaction becomes visible later than its timestamp says.
_OVERLAP = timedelta(seconds=60)


class Fanout:
    """Tells sources what became of their bundles."""

    def __init__(self, world: World, streams: Streams) -> None:
        self._world = world
        self._journal = world.journal.bind({Key.LOGGER: Logger.CONTROLLERS})
        self._streams = streams
        metrics = world.metrics
        self._backlog = Backlog(world, queue=metrics.status_event_queue, controller=metrics.status)
        self.tickets = self._backlog.tickets
        self._told: OrderedDict[str, None] = OrderedDict()
        self._unrecorded: list[str] = []
        self._scan_from = world.now()
        self._in_order = asyncio.Lock()

    async def run(self) -> None:
        """Pass statuses on for ever; the sweep asks again for those that failed, for they are not among the told."""
        await self._backlog.work_off(
            self._turn,
            is_idle=lambda: False,
            journal=self._journal,
            failed=Phrase.HANDLE_RESOURCE_FAILED,
            again=False,
        )

    async def _turn(self, ids: Sequence[str], *, everything: bool) -> int:
        missed = await self._missed() if everything else []
        wanted = [each for each in (*ids, *missed) if each not in self._told]
        await self._broadcast(wanted)
        return len(wanted)

    async def _missed(self) -> list[str]:
        now = self._world.now()
        async with self._world.database.connection() as connection:
            found = await statuses.missed_status_events(
                connection, instance=self._world.instance_id, since=self._scan_from - _OVERLAP, limit=_SCAN_LIMIT
            )
        if len(found) < _SCAN_LIMIT:
            self._scan_from = now
        return found

    async def _broadcast(self, ids: Sequence[str]) -> None:
        if not ids:
            return
        started = self._world.clock.monotonic()
        async with self._world.database.connection() as connection:
            found = await statuses.read_status_events(connection, ids)
        heard = [each for each in found if each.source in self._streams]
        if found and not heard:
            self._journal.info(Phrase.NO_CLIENTS, v=4)
        for status_event in heard:
            self._tell_broadcast(status_event)
        final = [each.id for each in heard if each.final]
        for start in range(0, len(final), _ROWS_AT_ONCE):
            await self._send_final(final[start : start + _ROWS_AT_ONCE])
        # Behind the last words, and also for bundles that had one: where there is a row, it is of a later life of the
        # same id, and whoever hears of the end last takes it for that of the new one.
        concerned = list(dict.fromkeys(each.resource_id for each in heard))
        for start in range(0, len(concerned), _ROWS_AT_ONCE):
            await self._send_live(concerned[start : start + _ROWS_AT_ONCE])
        self._remember(ids)
        self._measure(heard, seconds=self._world.clock.monotonic() - started)

    async def _send_live(self, ids: Collection[str], *, patiently: bool = False) -> list[str]:
        """Queue statuses; the patient get back the ids that had no room in the queue, the others fill it up."""
        late: list[str] = []
        async with self._in_order:
            async with self._world.database.connection() as connection:
                told = await statuses.read_statuses(connection, ids)
            for each in told:
                if patiently and not self._streams.keeps_up(each.source):
                    late.append(each.id)
                else:
                    self._queue(each, final=False)
        return late

    async def _send_final(self, event_ids: Collection[str]) -> None:
        async with self._in_order:
            async with self._world.database.connection() as connection:
                told = await statuses.read_final_statuses(connection, event_ids)
            for each in told:
                self._queue(each, final=True)

    def _queue(self, told: rows.Told, *, final: bool) -> None:
        subscribers = self._streams.of(told.source)
        if not subscribers:
            return
        try:
            outgoing = delivery.status_event(told)
            message = envelope.encode_event(outgoing)
        except wire_errors.WireError as error:
            # Whoever wrote this status, one that cannot be read must not keep the others from their sources.
            self._journal.error(Phrase.HANDLE_RESOURCE_FAILED, {Key.RESOURCE_ID: told.id}, err=error)
            return
        fields: dict[str, object] = {}
        operation_id = admission.operation_id(outgoing)
        if operation_id:
            fields[Key.OP_ID] = operation_id
        fields |= describe.event_fields(self._journal, outgoing)
        # One line for all of them: a line each, as the Go server writes, costs more than the sending.
        self._world.journal.info(Phrase.TO_STATUS_SUBSCRIBERS, {**fields, Key.COUNT: len(subscribers)})
        for subscriber in subscribers:
            if final:
                # The last word stands under its own key: a successor of the same id must not replace it.
                subscriber.box.discard(told.id)
                subscriber.send(f"{told.id}/deleted", message)
            else:
                subscriber.send(told.id, message)

    async def answer_resync(self, source: str, body: bytes) -> None:
        """Send a source the statuses it lacks, by comparing hashes; an empty list asks for all."""
        reported = resync.decode_hashes(body)
        async with self._world.database.connection() as connection:
            known = await resources.status_hashes_of_source(connection, source)
        wanted = resync.status_answer(known.items(), reported)
        while wanted and source in self._streams:
            await self._streams.wait_for_room(source)
            late = await self._send_live(wanted[:_ROWS_AT_ONCE], patiently=True)
            wanted = late + wanted[_ROWS_AT_ONCE:]

    async def record(self) -> None:
        """Write down which status events this instance has passed on; others purge by it."""
        batch, self._unrecorded = self._unrecorded[:5000], self._unrecorded[5000:]
        if not batch:
            return
        try:
            async with self._world.database.transaction(durable=False) as connection:
                await statuses.record_broadcasts(connection, batch, instance=self._world.instance_id)
        except store_errors.StoreError:
            self._unrecorded = (batch + self._unrecorded)[-_REMEMBERED:]
            raise

    def _remember(self, ids: Sequence[str]) -> None:
        self._told.update(dict.fromkeys(ids))
        while len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        self._unrecorded.extend(ids)

    def _measure(self, told: Sequence[rows.StatusEvent], *, seconds: float) -> None:
        metrics, now = self._world.metrics, self._world.now()
        metrics.statuses_told((_event_type(each) for each in told), seconds=seconds)
        for each in told:
            age = now - each.created_at
            metrics.status_event_told(each.consumer, each.source, instance_id=self._world.instance_id, age=age)

    def _tell_broadcast(self, told: rows.StatusEvent) -> None:
        self._journal.info(
            Phrase.BROADCAST,
            {
                Key.STATUS_EVENT: told.id,
                Key.RESOURCE_ID: told.resource_id,
                Key.INSTANCE_ID: self._world.instance_id,
                Key.EVENT_ID: told.id,
                Key.SOURCE: told.source,
                Key.STATUS_EVENT_TYPE: _event_type(told),
            },
        )


def _event_type(told: rows.StatusEvent) -> str:
    return "StatusDelete" if told.final else "StatusUpdate"
