"""Build, start and stop one server instance. No logic of its own."""

import asyncio
import gc
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack

from prometheus_client import CollectorRegistry

from maestropy.aio import backoff, checks, tasks
from maestropy.aio import clock as clocks
from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import LifecyclePhrase, ListenerPhrase
from maestropy.server.context import Context
from maestropy.server.database_clock import COMPARE_EVERY_SECONDS, DatabaseClock
from maestropy.server.primary_watch import CHECK_EVERY_SECONDS
from maestropy.server.read_replica import ReadReplica
from maestropy.server.runtime import memory
from maestropy.server.runtime.database import open_database, open_replica
from maestropy.server.runtime.listeners import Listeners
from maestropy.server.runtime.mounts import Mount
from maestropy.server.runtime.wiring import Controllers
from maestropy.server.settings import ServerSettings, certificates, listening_address, open_listeners
from maestropy.server.telemetry.metrics import Metrics
from maestropy.server.telemetry.request_spans import RequestSpans
from maestropy.store import dsn as dsns
from maestropy.store.postgres import notifications, servers
from maestropy.telemetry import process
from maestropy.telemetry.span_metrics import MEASURE_EVERY_SECONDS, SpanMetrics
from maestropy.transport.tls import expiry

_STOP_SECONDS = 20.0


async def run(settings: ServerSettings, *, dsn: dsns.Dsn, mount: Mount | None = None) -> None:
    """Serve until cancelled, then finish accepted requests and return; `mount` is served beside the REST API."""
    clock = clocks.Clock()
    journal, tracer = process.open_log(
        clock=clock.epoch,
        verbosity=settings.log.verbosity,
        log_format=settings.log.format,
        service="maestro",
        environ=os.environ,
    )
    try:
        async with AsyncExitStack() as stack:
            if tracer.is_on:
                stack.push_async_callback(asyncio.to_thread, tracer.close)
            database = await open_database(settings, dsn, journal=journal)
            stack.push_async_callback(database.close)
            registry = CollectorRegistry()
            metrics = Metrics(registry)
            time = DatabaseClock(clock, journal=journal, metrics=metrics)
            await time.compare(database)
            context = Context(
                database=database,
                journal=journal,
                metrics=metrics,
                instance_id=settings.instance.instance_id,
                source_id=settings.instance.source_id,
                clock=clocks.Clock(epoch=time.epoch),
                spans=RequestSpans(tracer),
            )
            task_owner = tasks.TaskOwner()
            stack.push_async_callback(task_owner.stop)
            comparison = tasks.run_periodically(COMPARE_EVERY_SECONDS, lambda: time.compare(database), on_error=_ignore)
            task_owner.start("shared time", comparison)
            if tracer.is_on:
                measure = SpanMetrics(tracer, registry).measure
                spans = tasks.run_periodically(MEASURE_EVERY_SECONDS, measure, on_error=_ignore)
                task_owner.start("count spans", spans)
            replica = await open_replica(settings, context, dsn=dsn)
            if replica is not None:
                stack.push_async_callback(replica.close)
            server = Server(settings, context, dsn=dsn, replica=replica, mount=mount)
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

    def __init__(
        self,
        settings: ServerSettings,
        context: Context,
        *,
        dsn: dsns.Dsn,
        replica: ReadReplica | None = None,
        mount: Mount | None = None,
    ) -> None:
        self._settings = settings
        self._mount = mount
        self._replica = replica
        self._context = context
        self._dsn = dsn
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.SERVER})
        self._task_owner = tasks.TaskOwner()
        self.controllers = Controllers(settings, context, delays=_delays)
        self._listeners: Listeners | None = None

    async def start(self, stack: AsyncExitStack) -> None:
        """Bind every port, start every controller, then serve."""
        self._listeners = listeners = await Listeners.bind(
            self.controllers, self._settings, self._context, stack=stack, replica=self._replica, mount=self._mount
        )
        self.controllers.start(self._task_owner)
        self._task_owner.start("listen", self._listen())
        watch = tasks.run_periodically(CHECK_EVERY_SECONDS, self.controllers.primary_watch.run, on_error=_ignore)
        self._task_owner.start("primary watch", watch)
        self._task_owner.start("certificates", self._measure_certificates())
        if self._replica is not None:
            self._task_owner.start("positions", self._replica.run())
            periodic = tasks.run_periodically(self._replica.check_seconds, self._replica.check_once, on_error=_ignore)
            self._task_owner.start("read replica", periodic)
        await listeners.start(self._task_owner)
        await self.controllers.join(self._task_owner)
        for name, address in listeners.addresses().items():
            self._journal.info(LifecyclePhrase.SERVING + name, {LogKey.BIND_ADDRESS: address})
        for open_listener in open_listeners.open_listeners(self._settings):
            fields = {LogKey.REASON: f"{open_listener.problem}; {open_listener.remedy}"}
            self._journal.warning(LifecyclePhrase.OPEN_TO_NETWORK, fields)
        self._warn_of_certificates()

    def _warn_of_certificates(self) -> None:
        """Log which certificates have expired, or will soon: clients reject them, and their errors do not say whose."""
        watched = certificates.watched(self._settings)
        found = expiry.checked(watched, now=self._context.clock.epoch())
        for certificate, check in zip(watched, found, strict=True):
            if check.outcome is not checks.Outcome.OK:
                file = f" ({certificate.file})" if certificate.file else ""
                fields = {LogKey.REASON: f"{check.name}{file} {check.detail}; {check.remedy}"}
                self._journal.warning(LifecyclePhrase.CERTIFICATE_DATES, fields)

    async def _measure_certificates(self) -> None:
        watched = certificates.watched(self._settings)

        async def measure() -> None:
            expiry.measure(watched, report=self._context.metrics.dependencies.certificate_expires)

        await tasks.run_periodically(expiry.MEASURE_EVERY_SECONDS, measure, on_error=_ignore)

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
        # The listeners refuse new calls meanwhile: an agent that is released goes to another instance.
        async with asyncio.TaskGroup() as group:
            if self._listeners is not None:
                stopping = self._listeners.stop(release_seconds=self.controllers.release_seconds)
                group.create_task(stopping, name="stop listeners")
            group.create_task(self.controllers.release_clients(), name="release clients")
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
