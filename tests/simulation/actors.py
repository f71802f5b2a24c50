"""Servers and agents of a simulation: the real controllers in played surroundings, killed without a chance to tidy up.

A kill takes effect on the outside first (sessions, wires, requests to the cluster end), and then the tasks are
cancelled, so nothing that runs while they unwind reaches anybody.
"""

import asyncio
import functools
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from prometheus_client import CollectorRegistry

from maestropy.agent.runtime.wiring import Agent, AgentConfig, AgentDependencies
from maestropy.aio import backoff, tasks
from maestropy.aio.clock import Clock
from maestropy.journal.emit import Journal
from maestropy.kube import errors
from maestropy.server import settings as configuration
from maestropy.server.api.grpc.agents import AgentService
from maestropy.server.api.grpc.sources import SourceService
from maestropy.server.api.grpc.subscriptions import Heartbeats
from maestropy.server.auth.agents import AgentIdentityPolicy
from maestropy.server.auth.sources import AuthnMode, SourceAccessControl
from maestropy.server.context import Context
from maestropy.server.runtime.wiring import Controllers
from maestropy.server.telemetry.metrics import Metrics
from maestropy.store import errors as store_errors
from maestropy.store.postgres import pool
from maestropy.transport import port as base
from maestropy.transport.grpc.agent import _GrpcConnection
from maestropy.transport.grpc.client import StreamTimeout
from maestropy.transport.grpc.status import CallRejected
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt.agent import MqttTransport
from maestropy.wire.events import event, grpc_binding
from tests.conformance.memory_broker import TOPICS
from tests.simulation.memory_cluster import MemoryCluster, MemoryKubeClient
from tests.simulation.memory_postgres import Engine, Pool
from tests.simulation.network import Network, Service, Wire

SWEEP_SECONDS = 8
_COMMON = {
    "--sweep-interval": f"{SWEEP_SECONDS}s",
    "--db-max-open-connections": "8",
    # A run lasts minutes: with the default an agent that lost a deletion would hear of it again after the end.
    "--delete-event-republish-interval": "5",
    "--delete-event-republish-max-interval": "600",
}
_SETTINGS = configuration.load({"--message-broker-type": "grpc", **_COMMON}, {})
_METRICS = Metrics(CollectorRegistry())
_HEARTBEAT_SECONDS = 10.0
# Reading such a file takes as long as a server does for a second; those of the simulation never change.
_read_once = functools.cache(mqtt_config.read)
_UNTOLD = ("logger", "event", "extensions")


@functools.cache
def _mqtt_settings(name: str) -> configuration.ServerSettings:
    flags = {"--message-broker-type": "mqtt", "--message-broker-config-file": str(broker_config(name))}
    return configuration.load({**flags, "--subscription-type": "broadcast", **_COMMON}, {})


@functools.cache
def broker_config(name: str) -> Path:
    """Return the file that leads `name` to the broker; the host says who calls."""
    path = Path(_folder().name) / f"{name}.yaml"
    path.write_text(f"brokerHost: {name}:1883\n{TOPICS}\n")
    return path


@functools.cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="simulation-")


_DEFECTS = (TypeError, AttributeError, LookupError, AssertionError, NameError)
"""What is never due to a fault: an error in the program, or in what simulates the database."""


class Listener(Journal):
    """A journal that keeps nothing but defects, or tells everything to the one who follows a run."""

    __slots__ = ("_failures", "_log_line")

    def __init__(self, log_line: Callable[[str], None] | None, failures: list[str]) -> None:
        self._failures = failures
        self._log_line = log_line
        self._verbosity = 2 if log_line else -1

    def bind(self, fields: Mapping[str, object] | None = None, /, **more: object) -> "Listener":
        return self

    def flush(self) -> None:
        pass

    def _write(self, severity: str, message: str, fields: Mapping[str, object], *, v: int, err: Any) -> None:
        if isinstance(err, _DEFECTS):
            self._failures.append(f"{message}: {err!r}")
        if self._log_line is not None:
            # Extensions travel in a map of protobuf's, whose order differs from process to process.
            shown = " ".join(f"{key}={value}" for key, value in fields.items() if key not in _UNTOLD)
            self._log_line(f"{severity}: {message} {shown[:300]}" + (f" err={err!r}" if err is not None else ""))


class KillableTasks:
    """Tasks that die together."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[Any], None] = {}

    def start(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return task

    async def kill(self) -> list[str]:
        """Cancel everything; returns the names of those who did not care."""
        doomed = list(self._tasks)
        for task in doomed:
            task.cancel()
        if not doomed:
            return []
        _, left = await asyncio.wait(doomed, timeout=60)
        return sorted(task.get_name() for task in left)


class _TaskOwner(tasks.TaskOwner):
    """The task_owner of a server; the killable remembers who must never end."""

    def __init__(self, killable: KillableTasks, ended: Callable[[str, BaseException | None], None]) -> None:
        self._killable = killable
        self._ended = ended

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._killable.start(name, work)
        task.add_done_callback(lambda done: None if done.cancelled() else self._ended(name, done.exception()))
        return task


class Server:
    """One instance; `start` after `kill` begins anew with nothing but the database."""

    def __init__(
        self, name: str, *, network: Network, engine: Engine, clock: Clock, log_line: Any, uses_mqtt: bool
    ) -> None:
        self.name = name
        self._settings = _mqtt_settings(name) if uses_mqtt else _SETTINGS
        self._network = network
        self._engine = engine
        self._clock = clock
        self._log_line = log_line
        self.is_up = False
        self.gets_notifications = True
        """Whether notifications arrive."""
        self.database_is_there = True
        self.failures: list[str] = []
        self._is_leaving = False

    def service(self, port: str) -> Service:
        return self._services[port]

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self._killable.start("call", work)

    async def start(self) -> None:
        if self.is_up:
            return
        self.is_up, self._is_leaving = True, False
        self._killable = KillableTasks()
        tell = (lambda text: self._log_line(f"{self.name}: {text}")) if self._log_line else None
        dice = self._network.chance(f"{self.name}/ids")
        context = Context(
            database=pool.Database(Pool(self._engine, self.name, may_connect=lambda: self.database_is_there)),
            journal=Listener(tell, self.failures),
            metrics=_METRICS,
            instance_id=self.name,
            clock=self._clock,
            new_id=lambda: f"{self.name}-{dice.getrandbits(64):016x}",
        )
        # Only here: other tests of this process change such files and must read them again.
        with mock.patch.object(mqtt_config, "read", _read_once):
            self.controllers = controllers = Controllers(self._settings, context, delays=self._delays)
        heartbeats = Heartbeats(seconds=_HEARTBEAT_SECONDS, new_id=context.new_id)
        self._services: dict[str, Service] = {
            "agents": AgentService(
                context=context,
                intake=controllers.status_intake,
                resync=controllers.resync,
                answers=controllers.agent_answers,
                subscribers=controllers.agent_subscribers,
                policy=AgentIdentityPolicy.ANY,
                history=controllers.history,
                heartbeats=heartbeats,
            ),
            "sources": SourceService(
                context=context,
                spec_writer=controllers.spec_writer,
                status_dispatcher=controllers.status_dispatcher,
                answers=controllers.source_answers,
                subscribers=controllers.source_subscribers,
                access_control=SourceAccessControl(AuthnMode.OPEN, reviews=None, clock=self._clock.monotonic),
                history=controllers.history,
                heartbeats=heartbeats,
            ),
        }
        task_owner = _TaskOwner(self._killable, self._ended)
        self._killable.start("run", self._run(controllers, task_owner)).add_done_callback(self._joined)

    async def _run(self, controllers: Controllers, task_owner: tasks.TaskOwner) -> None:
        controllers.start(task_owner)
        task_owner.start("listen", self._listen(controllers))
        while True:
            try:
                await controllers.join(task_owner)
                break
            except store_errors.StoreError:
                # A process that cannot join ends and is started again by whoever looks after it.
                await asyncio.sleep(1.0)
        self._network.hosts[self.name] = self

    async def kill(self) -> None:
        """End as by kill -9."""
        if not self.is_up:
            return
        self.is_up = False
        self._network.hosts.pop(self.name, None)
        self._engine.cut(self.name)
        self._network.break_wires(self.name)
        self.failures += [f"{self.name}: {name} does not end when cancelled" for name in await self._killable.kill()]

    async def leave(self) -> None:
        """End in good order, unless somebody is quicker."""
        if not self.is_up:
            return
        self._is_leaving = True
        controllers, killable = self.controllers, self._killable
        self._network.hosts.pop(self.name, None)

        async def finish() -> None:
            await tasks.attempt(controllers.membership.leave, on_error=lambda _: None)
            controllers.end_streams()
            await controllers.finish()

        await asyncio.wait([killable.start("finish", finish())], timeout=20)
        if self._killable is killable:
            await self.kill()

    async def _listen(self, controllers: Controllers) -> None:
        """Play `store.listen`: a connection that begins with a look at everything, and is watched and replaced."""
        waits, key = self._delays(), object()

        def hear(channel: str, payload: str) -> None:
            if self.gets_notifications:
                self._killable.start("notify", self._notify(controllers, channel, payload))

        while True:
            if self.database_is_there:
                self._engine.listening[key] = (self.name, hear)
                controllers.on_notification_gap()
                waits = self._delays()
                while key in self._engine.listening and self.database_is_there and self.gets_notifications:
                    controllers.note_listening()
                    await asyncio.sleep(5.0)
                self._engine.listening.pop(key, None)
            await asyncio.sleep(next(waits))

    async def _notify(self, controllers: Controllers, channel: str, payload: str) -> None:
        await self._network.hop(f"{self.name}/notify")
        controllers.channels[channel](payload)

    def _delays(self) -> Iterator[float]:
        return backoff.delays(base=0.2, factor=2, cap=5.0, jitter=self._network.chance(f"{self.name}/delays").random)

    def _joined(self, done: "asyncio.Task[None]") -> None:
        if not done.cancelled() and done.exception() is not None:
            self._ended("join", done.exception())

    def _ended(self, name: str, error: BaseException | None) -> None:
        if self.is_up and not self._is_leaving:
            self.failures.append(f"{self.name}: the stage {name} has ended: {error!r}")


class Medium:
    """An agent's way to whichever server the balancer gives it; the errors mean what they mean over gRPC."""

    subscribed_records: Sequence[base.LogRecord] = (("subscribed", {}),)
    address = "simulated"

    def __init__(self, network: Network, *, owner: str, consumer: str) -> None:
        self._network = network
        self._owner = owner
        self._consumer = consumer

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[base.AgentConnection]:
        wanted = grpc_binding.Subscription(cluster_name=self._consumer, data_type=event.MANIFEST_BUNDLES)
        try:
            wire = Wire(self._network, owner=self._owner, port="agents")
            async with wire.subscribe(wanted) as events:
                yield _GrpcConnection(wire, events)  # type: ignore[arg-type]  # a wire is a client
        except (CallRejected, StreamTimeout) as error:
            raise base.Disconnected(str(error)) from error


class ClusterAgent:
    """The agent of one consumer on its cluster."""

    def __init__(
        self, consumer: str, cluster: MemoryCluster, *, network: Network, clock: Clock, log_line: Any, uses_mqtt: bool
    ) -> None:
        self.name = f"agent-{consumer}"
        self._uses_mqtt = uses_mqtt
        self.consumer = consumer
        self.cluster = cluster
        self._network = network
        self._clock = clock
        self._log_line = log_line
        self._life: object | None = None
        self.cluster_is_there = True
        self.clock_error = 0.0
        """How many seconds the clock of this agent is ahead."""
        self.failures: list[str] = []

    @property
    def is_up(self) -> bool:
        return self._life is not None

    async def start(self) -> None:
        if self._life is not None:
            return
        life = self._life = object()
        self._killable = KillableTasks()
        dice = self._network.chance(f"{self.name}/dice")

        async def travel() -> None:
            await self._network.hop(f"{self.name}/kube")
            if self._life is not life or not self.cluster_is_there:
                raise errors.Unreachable("the API server cannot be reached")

        right = self._clock
        clock = Clock(epoch=lambda: right.epoch() + self.clock_error, monotonic=right.monotonic)
        client = MemoryKubeClient(self.cluster, clock=clock, travel=travel)
        tell = (lambda text: self._log_line(f"{self.name}: {text}")) if self._log_line else None
        given = AgentDependencies(
            client=client,
            transport=self._transport(),
            journal=Listener(tell, self.failures),
            jitter=dice.random,
            clock=clock,
            new_id=lambda: f"{self.name}-{dice.getrandbits(64):016x}",
        )
        character = AgentConfig(
            consumer=self.consumer, client_id=f"{self.consumer}-agent", workers=3, install_crds=False
        )
        self.agent = Agent(given, character)
        running = self._killable.start(self.name, self.agent.run())
        running.add_done_callback(lambda done: self._ended(life, done))

    def _transport(self) -> base.Transport:
        if not self._uses_mqtt:
            return Medium(self._network, owner=self.name, consumer=self.consumer)
        endpoint = _read_once(broker_config(self.name), flag="--workload-source-config").endpoint
        return MqttTransport(
            endpoint, consumer=self.consumer, client_id=f"{self.consumer}-agent", on_problem=lambda _: None
        )

    async def kill(self) -> None:
        """End as by kill -9."""
        if self._life is None:
            return
        self._life = None
        self._network.break_wires(self.name)
        self.failures += [f"{self.name}: {name} does not end when cancelled" for name in await self._killable.kill()]

    def _ended(self, life: object, done: "asyncio.Task[None]") -> None:
        if self._life is life and not done.cancelled():
            self.failures.append(f"{self.name} has ended: {done.exception()!r}")
