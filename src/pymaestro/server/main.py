"""Build the server and run it: what is made, in which order it starts, in which order it stops. No logic of its own."""

import asyncio
import gc
import ipaddress
import random
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import timedelta

from prometheus_client import CollectorRegistry

from pymaestro.aio import backoff, tasks
from pymaestro.aio import clock as clocks
from pymaestro.journal import emit
from pymaestro.journal.fields import Key, Listen, Logger
from pymaestro.server.absorb import Absorb
from pymaestro.server.accept import Accept
from pymaestro.server.deliver import Deliver
from pymaestro.server.fanout import Fanout
from pymaestro.server.listeners import Listeners
from pymaestro.server.membership import Membership
from pymaestro.server.metrics import Metrics
from pymaestro.server.outside import Outside
from pymaestro.server.settings import ServerSettings
from pymaestro.server.streams import Streams
from pymaestro.server.sweep import Sweep, Thresholds
from pymaestro.server.world import World
from pymaestro.store import dsn as dsns
from pymaestro.store import errors as store_errors
from pymaestro.store import listen, migrate, pool

# A subscriber that has this much waiting does not read any more; it is let go, reconnects and resyncs.
_MAILBOX_ITEMS = 20_000
_MAILBOX_BYTES = 64 * 2**20
_STOP_SECONDS = 20.0
_GAUGES_EVERY = timedelta(seconds=30)


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
            world = World(
                database=database,
                journal=journal,
                metrics=Metrics(CollectorRegistry()),
                instance_id=settings.instance.instance_id,
                source_id=settings.instance.source_id,
                clock=clock,
            )
            server = Server(settings, world, dsn=dsn)
            stack.push_async_callback(server.stop)
            await server.start(stack)
            _calm_collector()
            await server.wait()
    finally:
        journal.flush()


class Server:
    """The stages and the listeners of one instance."""

    def __init__(self, settings: ServerSettings, world: World, *, dsn: dsns.Dsn) -> None:
        self._settings = settings
        self._world = world
        self._dsn = dsn
        self._journal = world.journal.bind({Key.LOGGER: Logger.SERVER})
        self._crew = tasks.Crew()
        self.agents = Streams(max_items=_MAILBOX_ITEMS, max_bytes=_MAILBOX_BYTES)
        self.sources = Streams(max_items=_MAILBOX_ITEMS, max_bytes=_MAILBOX_BYTES)
        self.absorb = Absorb(world)
        self.deliver = Deliver(world, self.agents)
        self.outside = (
            Outside.build(settings, world, absorb=self.absorb, delays=_delays) if settings.uses_mqtt else None
        )
        self.accept = Accept(world, cannot_carry=self.outside.publish.cannot_carry) if self.outside else Accept(world)
        self._tickets = self.outside.publish.tickets if self.outside else self.deliver.tickets
        self.fanout = Fanout(world, self.sources)
        heartbeat = timedelta(seconds=settings.health.heartbeat_interval)
        self.membership = Membership(world, heartbeat=heartbeat)
        delivery = settings.delivery
        thresholds = Thresholds(
            undelivered=timedelta(seconds=delivery.undelivered_threshold),
            stale_delete=timedelta(seconds=delivery.stale_delete_threshold),
            event_retention=delivery.event_retention,
        )
        self.sweep = Sweep(world, thresholds=thresholds, look_again=self._look_again)
        self._listeners: Listeners | None = None
        self._draining: list[asyncio.Task[None]] = []
        self._connected: asyncio.Task[None] | None = None

    async def start(self, stack: AsyncExitStack) -> None:
        """Bind every port, start every stage, then answer."""
        self._listeners = listeners = await Listeners.bind(self, self._settings, self._world, stack=stack)
        self._draining = [
            self._crew.start("accept", self.accept.run()),
            self._crew.start("absorb", self.absorb.run()),
        ]
        self._crew.start("listen", self._listen())
        self._crew.start("fanout", self.fanout.run())
        if self._settings.serves_agents:
            self._crew.start("deliver", self.deliver.run())
        await listeners.start(self._crew)
        await self.membership.join()
        if self.outside is not None:
            self._connected = await self.outside.start(self._crew, on_error=self._report("ownership"))
        self._start_rounds()
        for name, address in listeners.addresses().items():
            self._journal.info(f"Serving {name}", {Key.BIND_ADDRESS: address})
        self._warn_if_open()

    async def wait(self) -> None:
        """Return when something that should run for ever has ended; raise if it failed."""
        await self._crew.wait()

    async def stop(self) -> None:
        """Say that we are leaving, finish what was taken, let go of everybody."""
        self._journal.info("shutting down")
        await tasks.attempt(self.membership.leave, on_error=self._report("leave"))
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._drain()
        except TimeoutError:
            self._journal.warning("some requests did not finish in time and were cut off")
        await self._crew.stop()
        self._journal.info("the server has stopped")

    async def _drain(self) -> None:
        self.agents.close_all()
        self.sources.close_all()
        if self._listeners is not None:
            await self._listeners.stop()
        if self.outside is not None and self._connected is not None:
            self.outside.broker.stop()
            await asyncio.wait([self._connected])
        self.accept.stop()
        self.absorb.stop()
        await asyncio.gather(*self._draining)
        await tasks.attempt(self.fanout.record, on_error=self._report("record"))

    def _start_rounds(self) -> None:
        delivery = self._settings.delivery
        heartbeat = self._settings.health.heartbeat_interval
        sweep_seconds = delivery.sweep_interval.total_seconds()
        detect_seconds = self.sweep.detectors_every.total_seconds()
        for name, seconds, turn in (
            ("heartbeat", heartbeat, self.membership.beat),
            ("liveness", max(1.0, heartbeat / 3), self.membership.judge),
            ("sweep", sweep_seconds, self.sweep.look_again),
            ("purge", sweep_seconds, self.sweep.purge),
            ("record", 1.0, self.fanout.record),
            ("detect", detect_seconds, self.sweep.detect),
            ("gauges", _GAUGES_EVERY.total_seconds(), self.sweep.measure),
        ):
            self._crew.start(name, tasks.every(seconds, turn, on_error=self._report(name)))

    def _look_again(self) -> None:
        self._tickets.add_everything()
        self.fanout.tickets.add_everything()

    async def _listen(self) -> None:
        journal = self._journal

        def on_loss(error: Exception) -> None:
            journal.warning(Listen.CONNECTION_LOST, {Key.CHANNEL: "events, status_events"}, err=error)

        journal.info(Listen.STARTING, {Key.CHANNEL: "events, status_events"})
        await listen.listen(
            self._dsn,
            channels={"events": self._tickets.add, "status_events": self.fanout.tickets.add},
            on_gap=self._look_again,
            on_loss=on_loss,
            delays=_delays,
        )

    def _report(self, name: str) -> "_Reporter":
        return _Reporter(self._journal, name)

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


class _Reporter:
    """Tells of a failed turn of a round."""

    def __init__(self, journal: emit.Journal, name: str) -> None:
        self._journal = journal
        self._name = name

    def __call__(self, error: Exception) -> None:
        self._journal.error("a periodic task failed; it is tried again", {Key.ACTION: self._name}, err=error)


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
