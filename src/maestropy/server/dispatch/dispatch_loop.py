"""Run a dispatcher: wait for wake-ups, dispatch the events they name, survive failures and count all of it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn, Protocol

from maestropy.aio import wake_ups
from maestropy.journal.emit import Journal
from maestropy.journal.fields import LogKey
from maestropy.server.context import Context
from maestropy.server.telemetry.metrics import ControllerMetrics, QueueMetrics

_WAKE_UPS_AT_ONCE = 2000


class Dispatch(Protocol):
    """Dispatches the events with these IDs, or everything that is pending; returns how many were dispatched."""

    def __call__(self, ids: Sequence[str], *, everything: bool) -> Awaitable[int]: ...


class DispatchLoop:
    """The wake-ups of one dispatcher."""

    def __init__(self, context: Context, *, queue: QueueMetrics, controller: ControllerMetrics) -> None:
        self._monotonic = context.clock.monotonic
        self._queue = queue
        self._controller = controller
        self.wake_ups = wake_ups.WakeUps(now=context.clock.monotonic)
        self._busy_since: float | None = None

    def measure(self) -> None:
        """Set the gauges of the queue, also while a dispatch does not end: that is when the queue grows."""
        busy = self._monotonic() - self._busy_since if self._busy_since is not None else 0.0
        self._queue.set_depth(len(self.wake_ups))
        self._queue.busy(unfinished=busy, longest=busy)

    async def run(
        self, dispatch: Dispatch, *, is_idle: Callable[[], bool], journal: Journal, failed: str, repeats: bool
    ) -> NoReturn:
        """Dispatch on every wake-up. With `repeats`, a scan of everything that dispatched something is repeated."""
        while True:
            ids, everything = await self.wake_ups.take(at_most=_WAKE_UPS_AT_ONCE)
            if is_idle():
                if everything:
                    self._controller.synced()
                continue  # nothing to send to; a new connection or subscription asks for everything
            started, waited = self._monotonic(), self.wake_ups.waited
            self._queue.added(len(ids))
            self._busy_since = started
            try:
                dispatched = await dispatch(ids, everything=everything)
                if everything:
                    self._controller.synced()
                    if dispatched and repeats:
                        self.wake_ups.request_rescan()  # one scan reads only a part of a long backlog
            except Exception as error:  # noqa: BLE001 - a bug that one row triggers must not end the server
                # Nothing is lost: maintenance finds the events that were not sent.
                self._queue.retried(len(ids))
                self._controller.reconciled(max(1, len(ids)), status="error")
                if everything:
                    self._controller.synced("error")
                journal.error(failed, {LogKey.COUNT: len(ids)}, err=error)
            self._busy_since = None
            if ids:
                self._queue.finished(waited=waited, worked=self._monotonic() - started)
