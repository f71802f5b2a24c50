"""End the effects of one event early when the process is asked to stop; the pipeline can still report the truth.

A wait and a read end at once, a write after a few seconds; they raise Interrupted into the pipeline. After the request
only a query and the report of the status are carried out: nothing new is begun.
"""

import asyncio

from maestropy.adapter.decide.effects import Apply, Delete, Effect, EffectResult, PutStatus, Query
from maestropy.adapter.errors import Interrupted
from maestropy.adapter.transports.performer import Performer

GRACE_SECONDS = 5.0
"""For each effect after the request; Kubernetes kills a pod 30 seconds after its SIGTERM."""


class InterruptiblePerformer:
    """Passes effects on until `stop` is called; events may share it."""

    def __init__(self, inner: Performer) -> None:
        self._inner = inner
        self._is_stopping = False
        self._running: dict[asyncio.Timeout, Effect] = {}

    def stop(self) -> None:
        """Interrupt the effects in progress; called on the loop."""
        self._is_stopping = True
        for limit, effect in self._running.items():
            grace = GRACE_SECONDS if isinstance(effect, (Apply, Delete, PutStatus)) else 0.0
            limit.reschedule(asyncio.get_running_loop().time() + grace)

    async def perform(self, effect: Effect) -> EffectResult:
        """Carry one effect out; raises Interrupted."""
        if self._is_stopping and not isinstance(effect, (Query, PutStatus)):
            raise _interrupted(effect)
        limit = asyncio.timeout(GRACE_SECONDS if self._is_stopping else None)
        try:
            async with limit:
                self._running[limit] = effect
                return await self._inner.perform(effect)
        except TimeoutError:
            if limit.expired():
                raise _interrupted(effect) from None
            raise
        finally:
            self._running.pop(limit, None)


def _interrupted(effect: Effect) -> Interrupted:
    name = type(effect).__name__
    return Interrupted(f"the adapter was stopped before it finished ({name}); run it again")
