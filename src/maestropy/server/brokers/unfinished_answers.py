"""Answer resyncs over the streams of agents or sources, without making their calls wait for their streams.

A Go client holds a lock during the call with its resync request, and needs the lock once before it reads its stream:
if the call comes first, it reads only afterwards. An answer that is larger than the queue of the stream waits for the
client, and the client would wait for the answer.
So a call ends after some seconds, and the rest of the answer follows. If that fails, the streams of the topic are
ended, so that its clients resync again: their calls can no longer tell them.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from maestropy.aio import tasks
from maestropy.server.brokers import port
from maestropy.server.brokers.subscribers import Subscribers

CALL_SECONDS: Final = 5.0
"""Most answers are complete much earlier, and their calls tell whether they failed."""


class UnfinishedAnswers:
    """The answers that are still being sent after their calls have ended."""

    def __init__(
        self,
        subscribers: Subscribers,
        *,
        on_failure: Callable[[str, BaseException], None],
        call_seconds: float = CALL_SECONDS,
    ) -> None:
        """`on_failure` gets the topic, a consumer or a source, and why the rest of an answer was not sent."""
        self._subscribers = subscribers
        self._on_failure = on_failure
        self._call_seconds = call_seconds
        self._topics: dict[asyncio.Task[None], str] = {}

    async def run(self) -> None:
        """Cancel unfinished answers when this is cancelled."""
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            unfinished = list(self._topics)
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)

    async def send(self, topic: str, answer: Coroutine[Any, Any, None]) -> None:
        """Return when an answer is complete, or takes long; raises its error if it fails before."""
        seconds = self._call_seconds if self._may_return(topic) else None
        task = await tasks.run_for(seconds, answer, name="answer a resync")
        if task is not None:
            self._topics[task] = topic
            task.add_done_callback(self._end)

    def _may_return(self, topic: str) -> bool:
        """Return whether a call may end before its answer: one for each stream, so that their number is bounded."""
        unfinished = sum(1 for other in self._topics.values() if other == topic)
        return unfinished < len(self._subscribers.of(topic))

    def _end(self, task: asyncio.Task[None]) -> None:
        topic = self._topics.pop(task)
        error = None if task.cancelled() else task.exception()
        # The agents of a paused consumer are told to resync when it is resumed.
        if error is not None and not isinstance(error, port.Paused):
            self._on_failure(topic, error)
            self._subscribers.close_topic(topic)
