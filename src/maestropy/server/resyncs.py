"""Stage: both ends of an outside broker compare what they have, one consumer after the other.

Two questions are worked off here, each until it is done, across any number of broken connections:

- an agent says which versions it has: it is sent what it lacks, and told to drop what we do not know;
- we gained a consumer, or the broker came back: its agent is asked which statuses we lack. Bundles that it has not
  answered for, and those that are being deleted, are sent again at the same time. The broker may have lost them, and an
  agent that was back before us has asked nobody; one that has finished a deletion forgets it once the broker has its
  last report, and if that report was lost nobody would ever ask for it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from maestropy.aio import keyed
from maestropy.journal.fields import Key, Logger
from maestropy.journal.fields import Resync as Phrase
from maestropy.server.decide import delivery
from maestropy.server.lacks import Holdings, deletions, settle
from maestropy.server.lacks import find as find_lacks
from maestropy.server.publish import Outcome, Publish
from maestropy.server.world import World
from maestropy.store import locks, resources
from maestropy.transport import base
from maestropy.wire import errors, event, resync

_WORKERS = 4
_ROWS_AT_ONCE = 64
_QUESTIONS = 32
_LONGEST_PAUSE_SECONDS = 15.0
# Go agents ask and only then subscribe: within moments. Pauses double from 0.2 s.
_UNHEARD_ANSWERS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What an agent says it has."""

    source: str
    body: bytes
    answered: Callable[[], None]
    """Called when it has been sent everything."""


class _Unheard(Exception):
    """An agent was answered and does not listen yet."""


class Resyncs:
    """Asks and answers."""

    def __init__(self, world: World, publish: Publish) -> None:
        self._world = world
        self._publish = publish
        self._journal = world.journal.bind({Key.LOGGER: Logger.SERVER})
        self._questions: dict[str, list[Question]] = defaultdict(list)
        self._wanted: set[str] = set()
        self._unheard: Counter[str] = Counter()
        """How often the first question of a consumer was answered in vain."""
        patience = keyed.Backoff(first_seconds=0.2, cap_seconds=_LONGEST_PAUSE_SECONDS)
        self._queue: keyed.KeyedQueue[str] = keyed.KeyedQueue(
            self._turn, workers=_WORKERS, backoff=patience, on_error=self._on_error
        )

    async def run(self) -> None:
        """Work for ever."""
        await self._queue.run()

    def answer(self, consumer: str, question: Question) -> None:
        """Send the agent of `consumer` what it lacks, soon."""
        waiting = self._questions[consumer]
        waiting.append(question)
        if len(waiting) > _QUESTIONS:
            waiting.pop(1).answered()  # not the first, which may be worked on; the newest tells the most
        self._queue.add(consumer)

    def ask(self, consumers: Iterable[str]) -> None:
        """Ask agents for the statuses that we lack, soon."""
        for consumer in consumers:
            self._wanted.add(consumer)
            self._queue.add(consumer)

    async def _turn(self, consumer: str) -> None:
        await self._publish.wait_online()
        # Who was just sent all that it lacks need not be sent it again.
        has_answered = bool(self._questions[consumer])
        while self._questions[consumer]:
            question = self._questions[consumer][0]
            try:
                await self._answer(consumer, question)
            except errors.WireError as error:
                self._journal.warning("request refused", {Key.CONSUMER: consumer, Key.REASON: str(error)})
            except _Unheard:
                self._unheard[consumer] += 1
                if self._unheard[consumer] < _UNHEARD_ANSWERS:
                    raise
            del self._unheard[consumer]
            self._questions[consumer].pop(0)
            question.answered()
        del self._questions[consumer]
        if consumer in self._wanted:
            await self._ask(consumer, again=not has_answered)
            self._wanted.discard(consumer)

    async def _answer(self, consumer: str, question: Question) -> None:
        started = self._world.clock.monotonic()
        holdings = Holdings(consumer=consumer, versions=resync.decode_versions(question.body))
        (lacks,) = await find_lacks(self._world, [holdings])
        is_heard = await self._resend(lacks.send)
        for start in range(0, len(lacks.orphans), _ROWS_AT_ONCE):
            is_heard &= await self._drop_orphans(consumer, lacks.orphans[start : start + _ROWS_AT_ONCE])
        if not is_heard:
            raise _Unheard
        await settle(self._world, lacks.pending)
        seconds = self._world.clock.monotonic() - started
        self._world.metrics.spec_resynced(question.source, consumer, data_type=event.MANIFEST_BUNDLES, seconds=seconds)

    async def _resend(self, ids: Sequence[str]) -> bool:
        """Send bundles as they are; say whether all of them were heard."""
        is_heard = True
        for start in range(0, len(ids), _ROWS_AT_ONCE):
            part = ids[start : start + _ROWS_AT_ONCE]
            async with self._world.database.transaction(durable=False) as connection:
                await resources.lock(connection, part, kind=locks.SENDING)
                outcomes = await self._publish.send(await resources.read_specs(connection, part))
            if not {Outcome.OFFLINE, Outcome.LATER}.isdisjoint(outcomes.values()):
                raise base.Disconnected("the broker did not take everything")
            is_heard &= Outcome.UNHEARD not in outcomes.values()
        return is_heard

    async def _drop_orphans(self, consumer: str, orphans: Sequence[resync.Row]) -> bool:
        is_heard = True
        ids = [orphan.id for orphan in orphans]
        async with self._world.database.transaction(durable=False) as connection:
            await resources.lock(connection, ids, kind=locks.SENDING)
            for _, outgoing in await deletions(self._world, connection, orphans, consumer=consumer):
                is_heard &= await self._publish.send_event(outgoing, consumer=consumer)
        return is_heard

    async def _ask(self, consumer: str, *, again: bool) -> None:
        async with self._world.database.connection() as connection:
            hashes = (await resources.status_hashes_of_consumers(connection, [consumer]))[consumer]
            unanswered = await resources.unanswered_of_consumer(connection, consumer) if again else []
        await self._resend(unanswered)
        if not hashes:
            return
        room = min(resync.EVENT_MAX_BYTES, self._publish.client.maximum_packet_bytes) - resync.ENVELOPE_BYTES
        for number, body in enumerate(resync.status_hash_batches(hashes.items(), max_bytes=room)):
            question = delivery.status_resync_request(
                body,
                consumer=consumer,
                source_id=self._world.source_id,
                fresh_id=self._world.new_id(),
                now=self._world.timestamp(),
            )
            self._journal.info(Phrase.STATUS_BATCH, {Key.CONSUMER: consumer, Key.BATCH: number}, v=4)
            await self._publish.send_event(question, consumer=consumer)

    def _on_error(self, consumer: str, error: Exception) -> None:
        if isinstance(error, _Unheard):
            self._journal.info(Phrase.UNHEARD, {Key.CONSUMER: consumer}, v=2)
            return
        self._journal.warning(Phrase.CONSUMER_FAILED, {Key.CONSUMER: consumer}, err=error)
