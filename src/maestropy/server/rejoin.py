"""Stage: agents that come back are sent what they lack, and asked for what we lack.

After a restart a whole fleet comes at once. Whoever comes while the last look into the database runs shares the next
one, so a thousand agents cost some dozens of transactions. `deliver` sends, in its order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from maestropy.aio import batches, tasks
from maestropy.journal.fields import Key
from maestropy.journal.fields import Resync as Phrase
from maestropy.server.decide import delivery
from maestropy.server.deliver import Deliver
from maestropy.server.lacks import Holdings, Lacks, settle
from maestropy.server.lacks import find as find_lacks
from maestropy.server.streams import Streams, Subscriber
from maestropy.server.world import World
from maestropy.store import errors as store_errors
from maestropy.store import events, resources
from maestropy.wire import envelope, resync

_ROWS_AT_ONCE = 64
# All agents of a fleet may wait. Looks come one after the other, so a slow database wants few of them, but each cluster
# may have thousands of bundles; sizes are numbers of bundles here.
_LOOKS = batches.Limits(group_items=128, group_bytes=10_000, waiting_items=20_000)
_PARTS = batches.Limits(group_bytes=_ROWS_AT_ONCE, waiting_items=20_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Some of the bundles that the agent of a consumer lacks."""

    consumer: str
    ids: Sequence[str]


class Rejoin:
    """Answers agents that resync, and asks those that have subscribed."""

    def __init__(self, world: World, streams: Streams, deliver: Deliver) -> None:
        self._world = world
        self._streams = streams
        self._deliver = deliver
        self._newcomers: batches.Batcher[Subscriber, None] = batches.Batcher(self._greet, limits=_LOOKS)
        self._questions: batches.Batcher[Holdings, Lacks] = batches.Batcher(self._look, limits=_LOOKS)
        self._parts: batches.Batcher[_Part, Sequence[str]] = batches.Batcher(self._send, limits=_PARTS)

    def start(self, crew: tasks.Crew) -> None:
        """Begin to work on what comes in."""
        crew.start("greet agents", self._newcomers.run())
        crew.start("answer agents", self._questions.run())
        crew.start("send to agents again", self._parts.run())

    async def greet(self, subscriber: Subscriber) -> None:
        """Ask an agent that has subscribed for statuses that were lost while it was away, and see what waits for it."""
        try:
            await self._newcomers.submit(subscriber, key=subscriber.id, size=0)
        except (store_errors.StoreError, batches.Overloaded, batches.Stopped) as error:
            self._world.journal.error(Phrase.CONSUMER_FAILED, {Key.CONSUMER: subscriber.topic}, err=error)
            self._deliver.tickets.add_everything()

    async def answer(self, consumer: str, body: bytes) -> None:
        """Send an agent what it lacks, by comparing versions; then take what was pending for it off the queue.

        Raises `WireError` when its question cannot be read.
        """
        holdings = Holdings(consumer=consumer, versions=resync.decode_versions(body))
        lacks = await self._questions.submit(holdings, key=consumer, size=len(holdings.versions))
        await self._resend(consumer, lacks.send)
        for start in range(0, len(lacks.orphans), _ROWS_AT_ONCE):
            await self._streams.wait_for_room(consumer)
            await self._deliver.drop_orphans(consumer, lacks.orphans[start : start + _ROWS_AT_ONCE])
        if consumer in self._streams:
            await settle(self._world, lacks.pending)

    async def _resend(self, consumer: str, ids: Sequence[str]) -> None:
        while ids and consumer in self._streams:
            await self._streams.wait_for_room(consumer)
            part = _Part(consumer=consumer, ids=ids[:_ROWS_AT_ONCE])
            late = await self._parts.submit(part, key=consumer, size=len(part.ids))
            ids = (*late, *ids[_ROWS_AT_ONCE:])

    async def _greet(self, subscribers: Sequence[Subscriber]) -> Sequence[None]:
        consumers = {subscriber.topic for subscriber in subscribers}
        async with self._world.database.connection() as connection:
            pending = await events.pending_of_consumers(connection, consumers)
            hashes = await resources.status_hashes_of_consumers(connection, consumers)
        for subscriber in subscribers:
            self._ask(subscriber, hashes[subscriber.topic])
        if any(pending.values()):
            self._deliver.tickets.add_everything()
        return [None] * len(subscribers)

    def _ask(self, subscriber: Subscriber, hashes: Mapping[str, str]) -> None:
        if not hashes:
            return
        for number, body in enumerate(resync.status_hash_batches(hashes.items())):
            question = delivery.status_resync_request(
                body,
                consumer=subscriber.topic,
                source_id=self._world.source_id,
                fresh_id=self._world.new_id(),
                now=self._world.timestamp(),
            )
            self._world.journal.info(Phrase.STATUS_BATCH, {Key.CONSUMER: subscriber.topic, Key.BATCH: number}, v=4)
            subscriber.send(f"/status-resync/{number}", envelope.encode_event(question))

    async def _look(self, agents: Sequence[Holdings]) -> Sequence[Lacks]:
        return await find_lacks(self._world, agents)

    async def _send(self, parts: Sequence[_Part]) -> Sequence[Sequence[str]]:
        late = await self._deliver.send_again({each: part.consumer for part in parts for each in part.ids})
        return [[each for each in part.ids if each in late] for part in parts]
