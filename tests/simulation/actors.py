"""Servers and agents of a simulation: the real stages in played surroundings, killed without a chance to tidy up.

A kill takes effect on the outside first (sessions, wires, requests to the cluster end), and then the tasks are
cancelled, so nothing that runs while they unwind reaches anybody.
"""

import asyncio
import functools
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from conformance.memory_broker import TOPICS
from prometheus_client import CollectorRegistry
from simulation.memory_cluster import MemoryCluster, MemoryKubeClient
from simulation.memory_postgres import Engine, Pool
from simulation.network import Network, Service, Wire

from maestropy.agent.agent import Agent, Character, Surroundings
from maestropy.aio import backoff, tasks
from maestropy.aio.clock import Clock
from maestropy.journal.emit import Journal
from maestropy.kube import errors
from maestropy.server import settings as configuration
from maestropy.server.auth.agents import AgentIdentityPolicy
from maestropy.server.auth.sources import Mode, SourceGate
from maestropy.server.metrics import Metrics
from maestropy.server.rpc.agents import Agents
from maestropy.server.rpc.sources import Sources
from maestropy.server.rpc.subscriptions import Heartbeats
from maestropy.server.stages import Stages
from maestropy.server.world import World
from maestropy.store import errors as store_errors
from maestropy.store import pool
from maestropy.transport import base, mqtt_config
from maestropy.transport.grpc_agent import _GrpcConnection
from maestropy.transport.grpc_client import StreamTimeout
from maestropy.transport.mqtt_agent import MqttMedium
from maestropy.transport.status import Refused
from maestropy.wire import envelope, event

SWEEP_SECONDS = 8
_COMMON = {"--sweep-interval": f"{SWEEP_SECONDS}s", "--db-max-open-connections": "8"}
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


class Listener(Journal):
    """A journal that keeps nothing, or tells everything to the one who follows a run."""

    __slots__ = ("_told",)

    def __init__(self, told: Callable[[str], None] | None) -> None:
        self._told = told
        self._verbosity = 2 if told else -1

    def bind(self, fields: Mapping[str, object] | None = None, /, **more: object) -> "Listener":
        return self

    def flush(self) -> None:
        pass

    def _write(self, severity: str, message: str, fields: Mapping[str, object], *, v: int, err: Any) -> None:  # type: ignore[override]
        if self._told is not None:
            # Extensions travel in a map of protobuf's, whose order differs from process to process.
            shown = " ".join(f"{key}={value}" for key, value in fields.items() if key not in _UNTOLD)
            self._told(f"{severity}: {message} {shown[:300]}" + (f" err={err!r}" if err is not None else ""))


class Crowd:
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


class _Crew(tasks.Crew):
    """The crew of a server; the crowd remembers who must never end."""

    def __init__(self, crowd: Crowd, ended: Callable[[str, BaseException | None], None]) -> None:
        self._crowd = crowd
        self._ended = ended

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._crowd.start(name, work)
        task.add_done_callback(lambda done: None if done.cancelled() else self._ended(name, done.exception()))
        return task


class Server:
    """One instance; `start` after `kill` begins anew with nothing but the database."""

    def __init__(
        self, name: str, *, network: Network, engine: Engine, clock: Clock, told: Any, uses_mqtt: bool
    ) -> None:
        self.name = name
        self._settings = _mqtt_settings(name) if uses_mqtt else _SETTINGS
        self._network = network
        self._engine = engine
        self._clock = clock
        self._told = told
        self.is_up = False
        self.hears = True
        """Whether notifications arrive."""
        self.database_is_there = True
        self.failures: list[str] = []
        self._is_leaving = False

    def service(self, port: str) -> Service:
        return self._services[port]

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self._crowd.start("call", work)

    async def start(self) -> None:
        if self.is_up:
            return
        self.is_up, self._is_leaving = True, False
        self._crowd = Crowd()
        journal = Listener((lambda text: self._told(f"{self.name}: {text}")) if self._told else None)
        dice = self._network.chance(f"{self.name}/ids")
        world = World(
            database=pool.Database(Pool(self._engine, self.name, may_connect=lambda: self.database_is_there)),
            journal=journal,
            metrics=_METRICS,
            instance_id=self.name,
            clock=self._clock,
            new_id=lambda: f"{self.name}-{dice.getrandbits(64):016x}",
        )
        # Only here: other tests of this process change such files and must read them again.
        with mock.patch.object(mqtt_config, "read", _read_once):
            self.stages = stages = Stages(self._settings, world, delays=self._delays)
        heartbeats = Heartbeats(seconds=_HEARTBEAT_SECONDS, new_id=world.new_id)
        self._services = {
            "agents": Agents(
                world=world,
                absorb=stages.absorb,
                rejoin=stages.rejoin,
                streams=stages.agents,
                policy=AgentIdentityPolicy.ANY,
                heartbeats=heartbeats,
            ),
            "sources": Sources(
                world=world,
                accept=stages.accept,
                fanout=stages.fanout,
                streams=stages.sources,
                gate=SourceGate(Mode.OPEN, reviews=None, clock=self._clock.monotonic),
                heartbeats=heartbeats,
            ),
        }
        crew = _Crew(self._crowd, self._ended)
        self._crowd.start("run", self._run(stages, crew)).add_done_callback(self._joined)

    async def _run(self, stages: Stages, crew: tasks.Crew) -> None:
        stages.start(crew)
        crew.start("listen", self._listen(stages))
        while True:
            try:
                await stages.join(crew)
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
        self.failures += [f"{self.name}: {name} does not end when told" for name in await self._crowd.kill()]

    async def leave(self) -> None:
        """End in good order, unless somebody is quicker."""
        if not self.is_up:
            return
        self._is_leaving = True
        stages, crowd = self.stages, self._crowd
        self._network.hosts.pop(self.name, None)

        async def finish() -> None:
            await tasks.attempt(stages.membership.leave, on_error=lambda _: None)
            stages.let_go()
            await stages.finish()

        await asyncio.wait([crowd.start("finish", finish())], timeout=20)
        if self._crowd is crowd:
            await self.kill()

    async def _listen(self, stages: Stages) -> None:
        """Play `store.listen`: a connection that begins with a look at everything, and is watched and replaced."""
        waits, key = self._delays(), object()

        def hear(channel: str, payload: str) -> None:
            if self.hears:
                self._crowd.start("notify", self._notify(stages, channel, payload))

        while True:
            if self.database_is_there:
                self._engine.listening[key] = (self.name, hear)
                stages.hear_again()
                waits = self._delays()
                while key in self._engine.listening and self.database_is_there and self.hears:
                    stages.hear_on()
                    await asyncio.sleep(5.0)
                self._engine.listening.pop(key, None)
            await asyncio.sleep(next(waits))

    async def _notify(self, stages: Stages, channel: str, payload: str) -> None:
        await self._network.hop(f"{self.name}/notify")
        stages.channels[channel](payload)

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

    subscribed = "subscribed"
    address = "simulated"

    def __init__(self, network: Network, *, owner: str, consumer: str) -> None:
        self._network = network
        self._owner = owner
        self._consumer = consumer

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[base.Connection]:
        wanted = envelope.Subscription(cluster_name=self._consumer, data_type=event.MANIFEST_BUNDLES)
        try:
            wire = Wire(self._network, owner=self._owner, port="agents")
            async with wire.subscribe(wanted) as events:
                yield _GrpcConnection(wire, events)  # type: ignore[arg-type]  # a wire is a client
        except (Refused, StreamTimeout) as error:
            raise base.Disconnected(str(error)) from error


class ClusterAgent:
    """The agent of one consumer on its cluster."""

    def __init__(
        self, consumer: str, cluster: MemoryCluster, *, network: Network, clock: Clock, told: Any, uses_mqtt: bool
    ) -> None:
        self.name = f"agent-{consumer}"
        self._uses_mqtt = uses_mqtt
        self.consumer = consumer
        self.cluster = cluster
        self._network = network
        self._clock = clock
        self._told = told
        self._life: object | None = None
        self.cluster_is_there = True
        self.failures: list[str] = []

    @property
    def is_up(self) -> bool:
        return self._life is not None

    async def start(self) -> None:
        if self._life is not None:
            return
        life = self._life = object()
        self._crowd = Crowd()
        dice = self._network.chance(f"{self.name}/dice")

        async def travel() -> None:
            await self._network.hop(f"{self.name}/kube")
            if self._life is not life or not self.cluster_is_there:
                raise errors.Unreachable("the API server cannot be reached")

        client = MemoryKubeClient(self.cluster, clock=self._clock, travel=travel)
        given = Surroundings(
            client=client,
            medium=self._medium(),
            journal=Listener((lambda text: self._told(f"{self.name}: {text}")) if self._told else None),
            jitter=dice.random,
            clock=self._clock,
            new_id=lambda: f"{self.name}-{dice.getrandbits(64):016x}",
        )
        character = Character(consumer=self.consumer, client_id=f"{self.consumer}-agent", workers=3, install_crds=False)
        self.agent = Agent(given, character)
        running = self._crowd.start(self.name, self.agent.run())
        running.add_done_callback(lambda done: self._ended(life, done))

    def _medium(self) -> base.Medium:
        if not self._uses_mqtt:
            return Medium(self._network, owner=self.name, consumer=self.consumer)
        endpoint = _read_once(broker_config(self.name), flag="--workload-source-config").endpoint
        return MqttMedium(
            endpoint, consumer=self.consumer, client_id=f"{self.consumer}-agent", on_problem=lambda _: None
        )

    async def kill(self) -> None:
        """End as by kill -9."""
        if self._life is None:
            return
        self._life = None
        self._network.break_wires(self.name)
        self.failures += [f"{self.name}: {name} does not end when told" for name in await self._crowd.kill()]

    def _ended(self, life: object, done: "asyncio.Task[None]") -> None:
        if self._life is life and not done.cancelled():
            self.failures.append(f"{self.name} has ended: {done.exception()!r}")
