"""Repeat resyncs with the agents behind a message broker until they succeed, across any number of lost connections.

A message broker has no caller that could repeat a request. So each consumer with an unanswered spec resync, or whose
statuses are to be requested, stays in a queue. `resync` does the work; this decides when, and when to give up.
"""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from maestropy.aio import keyed_queue
from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import ResyncPhrase, SpecWriterPhrase
from maestropy.server.brokers import port
from maestropy.server.context import Context
from maestropy.wire import errors

_WORKERS = 4
_WAITING_REQUESTS = 32
_LONGEST_PAUSE_SECONDS = 15.0
# Go agents send the resync and subscribe only then, within moments. Pauses double from 0.2 s.
_ANSWERS_WITHOUT_LISTENER = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecResyncRequest:
    """A spec resync of an agent, as its message carries it."""

    source: str
    body: bytes
    acknowledge: Callable[[], None]
    """Called when the agent has been sent everything."""


class _Answer(Protocol):
    def __call__(self, consumer: str, body: bytes, *, source: str) -> Awaitable[None]: ...


class _RequestStatuses(Protocol):
    def __call__(self, consumer: str, *, resends_unconfirmed: bool) -> Awaitable[None]: ...


class ResyncQueue:
    """The consumers to resync with."""

    def __init__(
        self,
        context: Context,
        *,
        answer: _Answer,
        request_statuses: _RequestStatuses,
        wait_online: Callable[[], Awaitable[None]],
    ) -> None:
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.SERVER})
        self._answer = answer
        self._request_statuses = request_statuses
        self._wait_online = wait_online
        self._requests: dict[str, list[SpecResyncRequest]] = defaultdict(list)
        self._lacks_statuses: set[str] = set()
        self._unheard: Counter[str] = Counter()
        """How often the first request of a consumer was answered while no agent listened."""
        backoff = keyed_queue.Backoff(first_seconds=0.2, cap_seconds=_LONGEST_PAUSE_SECONDS)
        self._queue: keyed_queue.KeyedQueue[str] = keyed_queue.KeyedQueue(
            self._resync, workers=_WORKERS, backoff=backoff, on_error=self._on_error
        )

    async def run(self) -> None:
        """Resync for ever."""
        await self._queue.run()

    def answer(self, consumer: str, request: SpecResyncRequest) -> None:
        """Answer a spec resync, soon."""
        waiting = self._requests[consumer]
        waiting.append(request)
        if len(waiting) > _WAITING_REQUESTS:
            waiting.pop(1).acknowledge()  # not the first, which may be in progress; the newest is the best known
        self._queue.add(consumer)

    def request_statuses(self, consumers: Iterable[str]) -> None:
        """Request the statuses that the server misses from the agents of `consumers`, soon."""
        for consumer in consumers:
            self._lacks_statuses.add(consumer)
            self._queue.add(consumer)

    async def _resync(self, consumer: str) -> None:
        await self._wait_online()
        # An agent that has just been sent everything it misses need not be sent unconfirmed resources again.
        has_request = bool(self._requests[consumer])
        paused: port.Paused | None = None
        try:
            while self._requests[consumer]:
                await self._answer_first(consumer)
            del self._requests[consumer]
        except port.Paused as error:
            paused = error  # specs wait, statuses do not
        if consumer in self._lacks_statuses:
            await self._request_statuses(consumer, resends_unconfirmed=not has_request)
            self._lacks_statuses.discard(consumer)
        if paused is not None:
            raise paused

    async def _answer_first(self, consumer: str) -> None:
        request = self._requests[consumer][0]
        try:
            await self._answer(consumer, request.body, source=request.source)
        except errors.WireError as error:
            self._journal.warning(SpecWriterPhrase.REJECTED, {LogKey.CONSUMER: consumer, LogKey.REASON: str(error)})
        except port.Paused:
            # Kept until the resumption. The broker must not wait for it: it sends few messages without acknowledgement.
            request.acknowledge()
            self._requests[consumer][0] = replace(request, acknowledge=_nothing)
            raise
        except port.NoSubscriber:
            self._unheard[consumer] += 1
            if self._unheard[consumer] < _ANSWERS_WITHOUT_LISTENER:
                raise
        del self._unheard[consumer]
        self._requests[consumer].pop(0)
        request.acknowledge()

    def _on_error(self, consumer: str, error: Exception) -> None:
        if isinstance(error, port.Paused):
            return  # it has been logged
        if isinstance(error, port.NoSubscriber):
            self._journal.info(ResyncPhrase.NO_SUBSCRIBER, {LogKey.CONSUMER: consumer}, v=2)
            return
        self._journal.warning(ResyncPhrase.CONSUMER_FAILED, {LogKey.CONSUMER: consumer}, err=error)


def _nothing() -> None:
    """Acknowledge nothing more."""
