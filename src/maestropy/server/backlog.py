"""Work off tickets for ever: how a stage that sends is woken, what it outlives, and what is counted about it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn, Protocol

from maestropy.aio import signals
from maestropy.journal.emit import Journal
from maestropy.journal.fields import Key
from maestropy.server.metrics import ControllerMetrics, QueueMetrics
from maestropy.server.world import World

_TICKETS_AT_ONCE = 2000


class Turn(Protocol):
    """What a stage does with tickets; returns how many messages went out."""

    def __call__(self, ids: Sequence[str], *, everything: bool) -> Awaitable[int]: ...


class Backlog:
    """The tickets of one stage."""

    def __init__(self, world: World, *, queue: QueueMetrics, controller: ControllerMetrics) -> None:
        self._monotonic = world.clock.monotonic
        self._queue = queue
        self._controller = controller
        self.tickets = signals.Tickets(now=world.clock.monotonic)

    async def work_off(
        self, turn: Turn, *, is_idle: Callable[[], bool], journal: Journal, failed: str, again: bool
    ) -> NoReturn:
        """Give every ticket its turn. With `again`, a look at everything that found something is repeated."""
        while True:
            ids, everything = await self.tickets.take(at_most=_TICKETS_AT_ONCE)
            if is_idle():
                if everything:
                    self._controller.synced()
                continue  # nobody to send to; whoever comes asks for everything
            started, waited = self._monotonic(), self.tickets.waited
            self._queue.added(len(ids))
            self._queue.holds(len(self.tickets))
            try:
                sent = await turn(ids, everything=everything)
                if everything:
                    self._controller.synced()
                    if sent and again:
                        self.tickets.add_everything()  # one look finds only a share of a long backlog
            except Exception as error:  # noqa: BLE001 - one row that brings a bug to light must not end the server
                # Nothing is lost: what was not sent is found by the sweep.
                self._queue.retried(len(ids))
                self._controller.reconciled(max(1, len(ids)), status="error")
                if everything:
                    self._controller.synced("error")
                journal.error(failed, {Key.COUNT: len(ids)}, err=error)
            if ids:
                self._queue.finished(waited=waited, worked=self._monotonic() - started)
