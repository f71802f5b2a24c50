"""Ask agents for the statuses of resources whose last status update could not be ordered.

The answer is newer than everything that the server had stored when it asked. Questions to one consumer are gathered
for a moment, so that many resources cost one event, and an agent that sends nonsense does not cost much.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection

from maestropy.aio import keyed_queue
from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import ResyncPhrase
from maestropy.server.context import Context

_GATHER_SECONDS = 0.25
_WORKERS = 2
_LONGEST_PAUSE_SECONDS = 15.0
# A status resync at the next connection of the agent covers what is beyond this.
_MAX_RESOURCES = 10_000


class StatusRecheck:
    """The resources to ask for, by consumer."""

    def __init__(self, context: Context, *, request: Callable[[str, Collection[str]], Awaitable[None]]) -> None:
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.SERVER})
        self._request = request
        self._resource_ids: dict[str, set[str]] = defaultdict(set)
        backoff = keyed_queue.Backoff(first_seconds=0.5, cap_seconds=_LONGEST_PAUSE_SECONDS)
        self._queue: keyed_queue.KeyedQueue[str] = keyed_queue.KeyedQueue(
            self._recheck, workers=_WORKERS, backoff=backoff, on_error=self._on_error
        )

    def add(self, consumer: str, resource_id: str) -> None:
        """Ask the agent of `consumer` for its status of a resource, soon."""
        waiting = self._resource_ids[consumer]
        if len(waiting) < _MAX_RESOURCES:
            waiting.add(resource_id)
        self._queue.add_after(consumer, _GATHER_SECONDS)

    async def run(self) -> None:
        """Ask until cancelled."""
        await self._queue.run()

    async def _recheck(self, consumer: str) -> None:
        ids = self._resource_ids.pop(consumer, set())
        try:
            if ids:
                await self._request(consumer, ids)
        except Exception:
            self._resource_ids[consumer] |= ids
            raise

    def _on_error(self, consumer: str, error: Exception) -> None:
        self._journal.warning(ResyncPhrase.CONSUMER_FAILED, {LogKey.CONSUMER: consumer}, err=error)
