"""Build the server and run it: what is made, in which order it starts, in which order it stops. No logic of its own."""

import asyncio
import gc
import ipaddress
import random
from collections.abc import Iterator
from contextlib import AsyncExitStack

from prometheus_client import CollectorRegistry

from maestropy.aio import backoff, tasks
from maestropy.aio import clock as clocks
from maestropy.journal import emit
from maestropy.journal.fields import Key, Listen, Logger
from maestropy.server.listeners import Listeners
from maestropy.server.metrics import Metrics
from maestropy.server.settings import ServerSettings
from maestropy.server.shared_time import EVERY_SECONDS, SharedTime
from maestropy.server.stages import Stages
from maestropy.server.world import World
from maestropy.store import dsn as dsns
from maestropy.store import errors as store_errors
from maestropy.store import listen, migrate, pool

_STOP_SECONDS = 20.0


class NotMigrated(Exception):
    """The database lacks what this version needs."""


async def run(settings: ServerSettings, *, dsn: dsns.Dsn) -> None:
    """Serve until cancelled; then finish what was acknowledged, and return."""
    clock = clocks.Clock()
    journal = emit.Journal(
        emit.stderr(),
        clock=clock.epoch,
        verbosity=settings.log.verbosity,
        format="json" if settings.log.format == "json" else "text",
    )
    try:
        async with AsyncExitStack() as stack:
            database = await _open_database(settings, dsn, journal=journal)
            stack.push_async_callback(database.close)
            time = SharedTime(clock, journal=journal)
            await time.compare(database)
            world = World(
                database=database,
                journal=journal,
                metrics=Metrics(CollectorRegistry()),
                instance_id=settings.instance.instance_id,
                source_id=settings.instance.source_id,
                clock=clocks.Clock(epoch=time.epoch),
            )
            crew = tasks.Crew()
            stack.push_async_callback(crew.stop)
            comparing = tasks.every(EVERY_SECONDS, lambda: time.compare(database), on_error=_told_elsewhere)
            crew.start("shared time", comparing)
            server = Server(settings, world, dsn=dsn)
            stack.push_async_callback(server.stop)
            await server.start(stack)
            _calm_collector()
            await server.wait()
    finally:
        journal.flush()


class Server:
    """The stages of one instance behind its ports."""

    def __init__(self, settings: ServerSettings, world: World, *, dsn: dsns.Dsn) -> None:
        self._settings = settings
        self._world = world
        self._dsn = dsn
        self._journal = world.journal.bind({Key.LOGGER: Logger.SERVER})
        self._crew = tasks.Crew()
        self.stages = Stages(settings, world, delays=_delays)
        self._listeners: Listeners | None = None

    async def start(self, stack: AsyncExitStack) -> None:
        """Bind every port, start every stage, then answer."""
        self._listeners = listeners = await Listeners.bind(self.stages, self._settings, self._world, stack=stack)
        self.stages.start(self._crew)
        self._crew.start("listen", self._listen())
        await listeners.start(self._crew)
        await self.stages.join(self._crew)
        for name, address in listeners.addresses().items():
            self._journal.info(f"Serving {name}", {Key.BIND_ADDRESS: address})
        self._warn_if_open()

    async def wait(self) -> None:
        """Return when something that should run for ever has ended; raise if it failed."""
        await self._crew.wait()

    async def stop(self) -> None:
        """Say that we are leaving, finish what was taken, let go of everybody."""
        self._journal.info("shutting down")
        await tasks.attempt(self.stages.membership.leave, on_error=self.stages.reporter("leave"))
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._drain()
        except TimeoutError:
            self._journal.warning("some requests did not finish in time and were cut off")
        await self._crew.stop()
        self._journal.info("the server has stopped")

    async def _drain(self) -> None:
        self.stages.let_go()
        if self._listeners is not None:
            await self._listeners.stop()
        await self.stages.finish()

    async def _listen(self) -> None:
        journal, channels = self._journal, {Key.CHANNEL: "events, status_events"}

        def on_loss(error: Exception) -> None:
            journal.warning(Listen.CONNECTION_LOST, channels, err=error)

        journal.info(Listen.STARTING, channels)
        await listen.listen(
            self._dsn,
            channels=self.stages.channels,
            on_gap=self.stages.hear_again,
            on_alive=self.stages.hear_on,
            on_loss=on_loss,
            delays=_delays,
        )

    def _warn_if_open(self) -> None:
        """Say loudly what anybody who reaches this host may do."""
        settings = self._settings
        if _is_loopback(settings.http.hostname):
            return
        open_doors = []
        if settings.rest_auth.authn_type == "none":
            open_doors.append("REST takes requests from anybody; set --rest-authn-type=jwt")
        if settings.grpc.enabled and (settings.grpc.tls_cert_file is None or settings.grpc.authn_type == "mock"):
            open_doors.append("sources are not asked who they are; set --grpc-tls-cert-file and --grpc-authn-type")
        if settings.serves_agents and settings.broker.client_ca_file is None:
            open_doors.append("agents are not asked who they are; set --grpc-broker-client-ca-file")
        elif settings.serves_agents and settings.broker.agent_identity == "any":
            open_doors.append(
                "every agent may speak for every cluster; name clusters in the certificates of agents and leave "
                "--grpc-broker-agent-identity out"
            )
        for door in open_doors:
            self._journal.warning("this server is open to the network", {Key.REASON: door})


async def _open_database(settings: ServerSettings, dsn: dsns.Dsn, *, journal: emit.Journal) -> pool.Database:
    if settings.database.auto_migrate:
        report = await migrate.migrate(dsn)
        if report.applied:
            journal.info("database migrated", {"migrations": list(report.applied)})
    database = await pool.connect(dsn, max_connections=settings.database.max_open_connections)
    try:
        missing = await migrate.missing(database)
    except store_errors.StoreError:
        await database.close()
        raise
    if missing:
        await database.close()
        raise NotMigrated(
            f"the database lacks {len(missing)} migrations, the first is {missing[0]}; run `maestro migration` with "
            "the same database flags, or start the server with --auto-migrate"
        )
    return database


def _told_elsewhere(_: Exception) -> None:
    """A database that is away is noticed by everybody."""


def _calm_collector() -> None:
    """Let the garbage collector ignore what lives as long as the process, and look at the rest less often.

    Requests leave hardly any cycles behind; with the defaults the collector takes a tenth of a busy server's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _delays() -> Iterator[float]:
    return backoff.delays(base=0.2, factor=2, cap=5.0, jitter=random.random)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
