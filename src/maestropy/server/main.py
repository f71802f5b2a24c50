"""Build, start and stop one server instance. No logic of its own."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import AsyncExitStack

from prometheus_client import CollectorRegistry

from maestropy.aio import backoff, tasks
from maestropy.aio import clock as clocks
from maestropy.journal import emit
from maestropy.journal.fields import LifecyclePhrase, ListenerPhrase, Logger, LogKey
from maestropy.server.context import Context
from maestropy.server.database_clock import COMPARE_EVERY_SECONDS, DatabaseClock
from maestropy.server.primary_watch import CHECK_EVERY_SECONDS
from maestropy.server.runtime import memory
from maestropy.server.runtime.database import open_database
from maestropy.server.runtime.listeners import Listeners
from maestropy.server.runtime.wiring import Controllers
from maestropy.server.settings import ServerSettings, listening_address, open_listeners
from maestropy.server.telemetry.metrics import Metrics
from maestropy.store import dsn as dsns
from maestropy.store import notifications
from maestropy.store.postgres import servers

_STOP_SECONDS = 20.0


async def run(settings: ServerSettings, *, dsn: dsns.Dsn) -> None:
    """Serve until cancelled, then finish accepted requests and return."""
    clock = clocks.Clock()
    journal = emit.Journal(
        emit.stderr(),
        clock=clock.epoch,
        verbosity=settings.log.verbosity,
        format="json" if settings.log.format == "json" else "text",
    )
    try:
        async with AsyncExitStack() as stack:
            database = await open_database(settings, dsn, journal=journal)
            stack.push_async_callback(database.close)
            time = DatabaseClock(clock, journal=journal)
            await time.compare(database)
            context = Context(
                database=database,
                journal=journal,
                metrics=Metrics(CollectorRegistry()),
                instance_id=settings.instance.instance_id,
                source_id=settings.instance.source_id,
                clock=clocks.Clock(epoch=time.epoch),
            )
            task_owner = tasks.TaskOwner()
            stack.push_async_callback(task_owner.stop)
            comparison = tasks.run_periodically(COMPARE_EVERY_SECONDS, lambda: time.compare(database), on_error=_ignore)
            task_owner.start("shared time", comparison)
            server = Server(settings, context, dsn=dsn)
            stack.push_async_callback(server.stop)
            await server.start(stack)
            _tune_garbage_collector()
            release = memory.MemoryRelease()
            task_owner.start("memory", tasks.run_periodically(memory.EVERY_SECONDS, release.run, on_error=_ignore))
            await server.wait()
    finally:
        journal.flush()


class Server:
    """The controllers and listeners of one instance."""

    def __init__(self, settings: ServerSettings, context: Context, *, dsn: dsns.Dsn) -> None:
        self._settings = settings
        self._context = context
        self._dsn = dsn
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.SERVER})
        self._task_owner = tasks.TaskOwner()
        self.controllers = Controllers(settings, context, delays=_delays)
        self._listeners: Listeners | None = None

    async def start(self, stack: AsyncExitStack) -> None:
        """Bind every port, start every controller, then serve."""
        self._listeners = listeners = await Listeners.bind(self.controllers, self._settings, self._context, stack=stack)
        self.controllers.start(self._task_owner)
        self._task_owner.start("listen", self._listen())
        watch = tasks.run_periodically(CHECK_EVERY_SECONDS, self.controllers.primary_watch.run, on_error=_ignore)
        self._task_owner.start("primary watch", watch)
        await listeners.start(self._task_owner)
        await self.controllers.join(self._task_owner)
        for name, address in listeners.addresses().items():
            self._journal.info(LifecyclePhrase.SERVING + name, {LogKey.BIND_ADDRESS: address})
        for open_listener in open_listeners.open_listeners(self._settings):
            fields = {LogKey.REASON: f"{open_listener.problem}; {open_listener.remedy}"}
            self._journal.warning(LifecyclePhrase.OPEN_TO_NETWORK, fields)

    async def wait(self) -> None:
        """Wait until a task that should run for ever ends; raise its error."""
        await self._task_owner.wait()

    async def stop(self) -> None:
        """Mark the instance as not ready, finish accepted requests, and end all streams."""
        self._journal.info(LifecyclePhrase.STOPPING)
        await tasks.attempt(self.controllers.membership.leave, on_error=self.controllers.log_failure_of("leave"))
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._drain()
        except TimeoutError:
            self._journal.warning(LifecyclePhrase.REQUESTS_CANCELLED)
        await self._task_owner.stop()
        self._journal.info(LifecyclePhrase.STOPPED)

    async def _drain(self) -> None:
        self.controllers.end_streams()
        if self._listeners is not None:
            await self._listeners.stop()
        await self.controllers.finish()

    async def _listen(self) -> None:
        journal, channels = self._journal, {LogKey.CHANNEL: "events, status_events"}

        def on_loss(error: Exception) -> None:
            journal.warning(ListenerPhrase.CONNECTION_LOST, channels, err=error)

        journal.info(ListenerPhrase.STARTING, channels)
        callbacks = notifications.ListenerCallbacks(
            on_gap=self.controllers.on_notification_gap,
            on_alive=self.controllers.note_listening,
            on_loss=on_loss,
            is_sending=notifications.sent_by(self._context.database),
        )
        await notifications.listen(
            self._connector(), channels=self.controllers.channels, callbacks=callbacks, delays=_delays
        )

    def _connector(self) -> servers.Connector:
        """Return what opens the listening connection: together with the pool, unless it has its own address."""
        address = listening_address(self._settings, self._dsn)
        shared = self._context.database.connector
        return servers.Connector(address) if shared is None or address is not self._dsn else shared


def _ignore(_: Exception) -> None:
    """The controllers log that the database is not available."""


def _tune_garbage_collector() -> None:
    """Freeze long-lived objects and collect garbage less often.

    Requests leave hardly any reference cycles; with the defaults the collector takes a tenth of the time of a busy
    server.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _delays() -> Iterator[float]:
    return backoff.delays(base=0.2, factor=2, cap=5.0)
