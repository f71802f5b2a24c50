"""Play one schedule until everything has converged after the last step, and return the broken rule, if any.

Real: the controllers of the server and its gRPC services (`server/runtime/wiring.py`, `server/api/grpc`), the
whole store above a connection (`store/`), the whole agent (`agent/`), the Kubernetes client above its connection
(`kube/`), the MQTT client to the last byte (`transport/mqtt`), the wire formats, and the sandbox's Kubernetes API.
Simulated: time, chance, the network with its gRPC calls (`network`) and bytes (`memory_pipes`), the MQTT broker,
PostgreSQL (`memory_postgres`), `store.postgres.notifications`, the sources, and the restarts of killed processes.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from maestropy.aio.tasks import TaskOwner
from maestropy.sandbox.kubeapi.errors import StatusError
from maestropy.sandbox.kubeapi.storage.deletion import DeletionRequest
from tests.simulation import moves, pauses, upheavals
from tests.simulation.actors import ClusterAgent, Server
from tests.simulation.ledger import Ledger, Violation, _status
from tests.simulation.memory_cluster import APPLIED_MANIFEST_WORKS, MemoryCluster
from tests.simulation.memory_pipes import Broker
from tests.simulation.memory_postgres import Engine
from tests.simulation.network import Network
from tests.simulation.schedule import PAUSE_KIND, Schedule, Step
from tests.simulation.sources import HOLDER, Content, SimulatedResource, Source
from tests.simulation.virtual_loop import Stuck, VirtualLoop

CONVERGENCE_SECONDS = 600.0
"""How long after the last fault everything must have converged."""
_REST_SECONDS = 8.0
"""How long it must stay converged then."""
_REST_AFTER_UPHEAVAL_SECONDS = 50.0
"""The same after the database has lost something: servers notice within a heartbeat, and agents report within 30 s."""

_POLL_SECONDS = 0.02
_POLLS = 500
"""How often it is checked whether a deletion is done."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a run."""

    violation: Violation | None
    seconds: float
    """How long it took on the virtual clock until everything had converged."""
    fingerprint: int
    """Equal for two runs with the same changes."""


def play(schedule: Schedule, *, log_line: Callable[[str], None] | None = None) -> Outcome:
    """Play a schedule."""
    loop = VirtualLoop()
    run = Run(schedule, loop, log_line)
    try:
        violation = loop.play(run.play())
    except Stuck:
        violation = Violation("progress", "nothing can ever happen any more")
    return Outcome(violation=violation, seconds=run.converged_at, fingerprint=run.fingerprint())


class _Broken(Exception):
    """A rule was broken; the run ends."""


@dataclass(eq=False)
class Run:
    """One run."""

    schedule: Schedule
    loop: VirtualLoop
    follow: Callable[[str], None] | None
    converged_at: float = 0.0
    _tokens: int = 0
    _working: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        schedule, clock = self.schedule, self.loop.clock()
        log_line = self._log_line if self.follow else None
        self.network = Network(schedule.seed, is_rough=schedule.is_rough)
        if log_line:
            self.network.log_line = log_line
        self.engine = Engine(lambda owner: self.network.hop(f"{owner}/database"))
        ids = self.network.chance("ids")
        self.clusters = {
            consumer: MemoryCluster(clock=clock, new_id=lambda: f"uid-{ids.getrandbits(64):016x}")
            for consumer in schedule.consumers
        }
        self.resources = {
            name: SimulatedResource(name=name, source=source, consumer=consumer)
            for name, source, consumer in schedule.resources
        }
        self.ledger = Ledger(
            self.engine,
            {b.id: b for b in self.resources.values()},
            self.clusters,
            log_line=log_line,
            contents=self.contents,
        )
        for consumer in schedule.consumers:
            self.engine.tables["consumers"][consumer] = {"id": consumer, "name": consumer, "created_at": clock.now()}
        self.broker = Broker(self.network)
        self.network.broken = self.broker.hang_up
        self.loop.dial = self.broker.dial
        given: dict[str, Any] = {"network": self.network, "clock": clock, "log_line": log_line}
        mqtt: dict[str, Any] = {"uses_mqtt": schedule.uses_mqtt}
        self.servers = {name: Server(name, engine=self.engine, **given, **mqtt) for name in schedule.servers}
        self.agents = {name: ClusterAgent(name, self.clusters[name], **given, **mqtt) for name in schedule.consumers}
        self.sources = {name: Source(name, engine=self.engine, **given) for name in schedule.sources}

    async def play(self) -> Violation | None:
        """Play everything; return the broken rule."""
        task_owner = TaskOwner()
        for cluster in self.clusters.values():
            cluster.start(task_owner)
        for server in self.servers.values():
            await server.start()
        for agent in self.agents.values():
            await agent.start()
        for source in self.sources.values():
            source.start()
        try:
            await self._play_steps()
            await self._end_faults()
            await self._converge()
        except _Broken:
            pass
        finally:
            self.broker.go_away()
        return self.ledger.violations[0] if self.ledger.violations else None

    async def _play_steps(self) -> None:
        for step in self.schedule.steps:
            await self._until(step.at)
            self._log_line(f"STEP {step.kind} {step.who} {step.number}")
            work = _KINDS[step.kind](self, step)
            self._working.append(self.loop.create_task(work, name=step.kind))
        await self._until(self.schedule.seconds)

    async def _until(self, moment: float) -> None:
        """Let time pass, but stop at a broken rule."""
        while self.loop.now < moment:
            await asyncio.sleep(min(1.0, moment - self.loop.now))
            self._check()

    def _check(self) -> None:
        actors: list[Server | ClusterAgent] = [*self.servers.values(), *self.agents.values()]
        for failure in [each for actor in actors for each in actor.failures]:
            self.ledger.violations.append(Violation("no-task-ends", failure))
        for task in [task for task in self._working if task.done() and task.exception()]:
            raise task.exception()  # type: ignore[misc]  # a bug of the simulation
        if self.ledger.violations:
            raise _Broken

    async def _end_faults(self) -> None:
        self._log_line("STEP all faults end")
        self.network.is_rough = False
        self.network.cut_off.clear()
        self.broker.is_away = False
        for cluster in self.clusters.values():
            cluster.faults.clear()
        for server in self.servers.values():
            server.gets_notifications = server.database_is_there = True
        for agent in self.agents.values():
            agent.cluster_is_there = True
        await asyncio.gather(*self._working)
        await self._end_upheavals()
        for server in self.servers.values():
            await server.start()
        for agent in self.agents.values():
            await agent.start()

    async def _end_upheavals(self) -> None:
        upheavals.create_missing_consumers(self)
        await pauses.resume_all(self)
        for agent in self.agents.values():
            if agent.clock_error:
                # Right again, and after a restart nothing remembers that it was wrong.
                agent.clock_error = 0.0
                await agent.kill()
            elif self.ledger.upheavals and self.schedule.uses_mqtt:
                # Behind a broker an agent learns with the next resync that the database is another one.
                self.network.break_wires(agent.name)

    async def _converge(self) -> None:
        await self._until_converged()
        if self.engine.tables["holds"]:
            # What the database has lost was reported; now an operator agrees that the database is right.
            self._log_line("STEP the operator adopts")
            self.ledger.is_adopted = True
            await self._until_converged()

    async def _until_converged(self) -> None:
        start, since = self.loop.now, None
        rest = _REST_AFTER_UPHEAVAL_SECONDS if self.ledger.upheavals else _REST_SECONDS
        while True:
            self._release_everything()
            self._adopt()
            difference = self._difference()
            if difference:
                since = None
            elif since is None:
                since = self.loop.now
                self.converged_at = since - start
            if since is not None and self.loop.now - since >= rest:
                return
            if since is None and self.loop.now - start > CONVERGENCE_SECONDS:
                self.ledger._break("convergence", f"after {CONVERGENCE_SECONDS:g} s: {difference}")
            self._check()
            await asyncio.sleep(1.0)

    def _adopt(self) -> None:
        """Let the operator end every hold that agents have reported."""
        for hold in self.engine.tables["holds"].values() if self.ledger.is_adopted else ():
            hold_id = hold["columns"][0]
            self.engine.tables["adoptions"][hold_id] = {"id": hold_id, "hold_id": hold_id}

    def _difference(self) -> str:
        """Return how the system differs from the desired state; empty when it does not.

        After a database has lost something, works may be held instead, which their statuses say.
        """
        holding = [consumer for consumer, hold in self.engine.tables["holds"].items() if not _is_countdown(hold)]
        if self.ledger.is_adopted and holding:
            return f"{sorted(holding)} hold works, although an operator has adopted the database"
        wanted: dict[str, dict[str, str]] = {consumer: {} for consumer in self.clusters}
        held: set[str] = set()
        for row in self.engine.tables["resources"].values():
            resource = self.ledger.resources[row["id"]]
            if self._is_held(row):
                held.add(resource.name)
                continue
            if row["deleted_at"] is not None:
                return f"{resource.name} is still being deleted"
            incarnation = self.ledger.current(resource)
            assert incarnation is not None
            content = self.contents[incarnation.tokens[row["version"]]]
            for manifest in content.manifests(resource):
                wanted[resource.consumer][manifest["metadata"]["name"]] = content.token
            said = _status(row)
            if not said or int(said["resourceversion"]) != row["version"]:
                return f"the status of {resource.name} is not of version {row['version']}"
            if self.sources[row["source"]].statuses.get(row["id"]) != said["statushash"]:
                return f"{row['source']} has not received the last status of {resource.name}"
        return self._difference_on_clusters(wanted, held) or self._difference_at_sources()

    def _is_held(self, row: dict[str, Any]) -> bool:
        """Whether the agent says that it keeps what is on the cluster instead of what the database wants."""
        if not self.ledger.upheavals or self.ledger.is_adopted:
            return False
        conditions = (_status(row).get("data") or {}).get("conditions") or ()
        is_reported = any(
            condition["type"] == "DataSafetyHold" and condition["status"] == "True" for condition in conditions
        )
        return is_reported and row["consumer_name"] in self.engine.tables["holds"]

    def _difference_on_clusters(self, wanted: dict[str, dict[str, str]], held: set[str]) -> str:
        for consumer, cluster in self.clusters.items():
            found = {
                name: stored.obj["data"]["token"]
                for name, stored in cluster.config_maps().items()
                if name.rpartition("-")[0] not in held and not self._is_kept(consumer, name)
            }
            if found != wanted[consumer]:
                return f"{consumer} has {found} instead of {wanted[consumer]}"
        return ""

    def _is_kept(self, consumer: str, name: str) -> bool:
        """Whether an object is of a work that the database has lost, and that is reported as held or to be evicted."""
        resource = self.resources[name.rpartition("-")[0]]
        if resource.id in self.engine.tables["resources"] or not self.ledger._has_lost(resource):
            return False
        applied_works = self.clusters[consumer].store.select(APPLIED_MANIFEST_WORKS, "")
        is_evicted = any(
            (stored.obj.get("status") or {}).get("evictionStartTime")
            for stored in applied_works
            if stored.name.endswith(f"-{resource.id}")
        )
        return is_evicted or consumer in self.engine.tables["holds"]

    def _difference_at_sources(self) -> str:
        for source in self.sources.values():
            unknown = [id_ for id_ in source.statuses if id_ not in self.engine.tables["resources"]]
            if unknown:
                return f"{source.name} has not received that {self.ledger.resources[unknown[0]].name} is gone"
        return ""

    def _release_everything(self) -> None:
        for cluster in self.clusters.values():
            for stored in cluster.config_maps().values():
                metadata = stored.obj["metadata"]
                if metadata.get("deletionTimestamp") and HOLDER in (metadata.get("finalizers") or ()):
                    cluster.release(stored)

    contents: dict[str, Content] = field(default_factory=dict)

    def content(self, resource: SimulatedResource, shape: int) -> Content:
        self._tokens += 1
        content = Content(token=f"{resource.name}.{self._tokens}", parts=1 + shape % 2, is_held=shape > 2)
        self.contents[content.token] = content
        return content

    def _log_line(self, text: str) -> None:
        if self.follow:
            self.follow(f"{self.loop.now:9.4f} {text}")

    def fingerprint(self) -> int:
        """Return a number that two equal runs share."""
        incarnations = [
            (id_, [incarnation.tokens for incarnation in incarnations])
            for id_, incarnations in self.ledger.incarnations.items()
        ]
        versions = [cluster.store.version for cluster in self.clusters.values()]
        return hash(repr((self.loop.now, incarnations, versions, [str(each) for each in self.ledger.violations])))


async def _create(run: Run, step: Step) -> None:
    resource = run.resources[step.who]
    content = run.content(resource, step.number)
    request = run.ledger.request(resource, content, base=None)
    run.ledger.answered(request, await run.sources[resource.source].create(resource, content))


async def _create_again(run: Run, step: Step) -> None:
    """Create as soon as no resource has that ID, as clients do that wait for a deletion."""
    for _ in range(_POLLS):
        if run.resources[step.who].id not in run.engine.tables["resources"]:
            await _create(run, step)
            return
        await asyncio.sleep(_POLL_SECONDS)


async def _update(run: Run, step: Step) -> None:
    await _update_upon(run, step, base=_version(run, step))


async def _stale_update(run: Run, step: Step) -> None:
    await _update_upon(run, step, base=max(1, _version(run, step) - 1))


async def _race(run: Run, step: Step) -> None:
    base = _version(run, step)
    await asyncio.gather(*(_update_upon(run, step, base=base) for _ in range(3)))


async def _update_upon(run: Run, step: Step, *, base: int) -> None:
    resource = run.resources[step.who]
    content = run.content(resource, step.number)
    request = run.ledger.request(resource, content, base=base)
    run.ledger.answered(request, await run.sources[resource.source].update(resource, content, version=base))


def _version(run: Run, step: Step) -> int:
    row = run.engine.tables["resources"].get(run.resources[step.who].id)
    return row["version"] if row else 1


async def _delete(run: Run, step: Step) -> None:
    resource, incarnation = run.resources[step.who], run.ledger.current(run.resources[step.who])
    run._tokens += 1
    upheavals_before = run.ledger.upheavals
    answer = await run.sources[resource.source].delete(resource, request=f"{resource.name}.{run._tokens}")
    run.ledger.deletion_accepted(resource, incarnation, answer, upheavals=upheavals_before)


async def _delete_storm(run: Run, step: Step) -> None:
    await asyncio.gather(*(_delete(run, step) for _ in range(12)))


async def _kill_server(run: Run, step: Step) -> None:
    await run.servers[step.who].kill()
    await asyncio.sleep(step.number)
    await run.servers[step.who].start()


async def _stop_server(run: Run, step: Step) -> None:
    await run.servers[step.who].leave()
    await asyncio.sleep(step.number)
    await run.servers[step.who].start()


async def _kill_agent(run: Run, step: Step) -> None:
    await run.agents[step.who].kill()
    await asyncio.sleep(step.number)
    await run.agents[step.who].start()


async def _hang_up(run: Run, step: Step) -> None:
    run.network.break_wires(step.who)


async def _cut_off(run: Run, step: Step) -> None:
    run.network.cut_off.add(step.who)
    run.network.break_wires(step.who)
    await asyncio.sleep(step.number)
    run.network.cut_off.discard(step.who)


async def _lose_broker(run: Run, step: Step) -> None:
    run.broker.go_away()
    await asyncio.sleep(step.number)
    run.broker.is_away = False


async def _cut_sessions(run: Run, step: Step) -> None:
    run.engine.cut(step.who)


async def _lose_database(run: Run, step: Step) -> None:
    server = run.servers[step.who]
    server.database_is_there = False
    run.engine.cut(step.who)
    await asyncio.sleep(step.number)
    server.database_is_there = True


async def _lose_notices(run: Run, step: Step) -> None:
    run.servers[step.who].gets_notifications = False
    await asyncio.sleep(step.number)
    run.servers[step.who].gets_notifications = True


async def _lose_cluster(run: Run, step: Step) -> None:
    run.agents[step.who].cluster_is_there = False
    await asyncio.sleep(step.number)
    run.agents[step.who].cluster_is_there = True


async def _forget_history(run: Run, step: Step) -> None:
    run.clusters[step.who].faults.expire_history()


async def _fail_requests(run: Run, step: Step) -> None:
    status = (500, 503, 429)[step.number % 3]
    run.clusters[step.who].faults.fail_next(step.number + 1, status=status)


async def _drift(run: Run, step: Step) -> None:
    """Let another client change or delete an object of a resource that is not being deleted."""
    cluster = run.clusters[step.who]
    rows = run.engine.tables["resources"]
    alive = {b.name for b in run.resources.values() if b.id in rows and rows[b.id]["deleted_at"] is None}
    found = [each for name, each in cluster.config_maps().items() if name.rpartition("-")[0] in alive]
    if not found:
        return
    stored = found[step.number % len(found)]
    run.ledger.is_drifting = True
    if step.number % 2:
        cluster.objects.guaranteed_update(stored, lambda obj: {**obj, "data": {"token": "drifted"}})
    else:
        kind = cluster.objects.registry.of_resource(*stored.resource)
        assert kind is not None
        try:
            cluster.objects.delete(kind, stored.namespace, stored.name, DeletionRequest(uid=stored.uid))
        except StatusError:
            pass
    run.ledger.is_drifting = False


async def _release(run: Run, step: Step) -> None:
    run._release_everything()


_KINDS: dict[str, Callable[[Run, Step], Coroutine[Any, Any, None]]] = {
    "create": _create,
    "create again": _create_again,
    "update": _update,
    "stale update": _stale_update,
    "race": _race,
    "delete": _delete,
    "delete storm": _delete_storm,
    "kill server": _kill_server,
    "stop server": _stop_server,
    "kill agent": _kill_agent,
    "hang up": _hang_up,
    "cut off": _cut_off,
    "lose broker": _lose_broker,
    "cut sessions": _cut_sessions,
    "lose database": _lose_database,
    "lose notices": _lose_notices,
    "lose cluster": _lose_cluster,
    "forget history": _forget_history,
    "fail requests": _fail_requests,
    "drift": _drift,
    "release": _release,
    "restore backup": upheavals.restore_backup,
    "empty database": upheavals.empty_database,
    "wrong database": upheavals.wrong_database,
    "recreate consumer": functools.partial(upheavals.recreate_consumer, delete=_delete),
    "jump clock": upheavals.jump_clock,
    "move consumer": moves.move_consumer,
    PAUSE_KIND: pauses.pause_consumer,
}


def _is_countdown(hold: dict[str, Any]) -> bool:
    """Whether the agent only reports works that it evicts after the grace period, as it does after an adoption."""
    return bool(hold["columns"][1] == "EvictionPending")
