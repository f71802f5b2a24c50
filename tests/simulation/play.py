"""Play one schedule from its first step to the rest that follows the last, and say which rule was broken, if any.

What is real: the stages of the server and their services for sources and agents (`server/stages.py`, `server/rpc`), the
whole store above a connection (`store/`), the whole agent (`agent/`), the Kubernetes client above its connection
(`kube/`), the MQTT client to the last byte (`transport/mqtt.py`), the wire formats, and the sandbox's Kubernetes API.
What is played: time, chance, the network with its gRPC calls (`network`) and bytes (`memory_pipes`), the MQTT broker,
PostgreSQL (`memory_postgres`), `store.listen`, the sources, and the operators who restart what was killed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from simulation.actors import ClusterAgent, Server
from simulation.ledger import Ledger, Violation, _status
from simulation.memory_cluster import MemoryCluster
from simulation.memory_pipes import Broker
from simulation.memory_postgres import Engine
from simulation.network import Network
from simulation.schedule import Schedule, Step
from simulation.sources import HOLDER, Bundle, Content, Source
from simulation.virtual_loop import Stuck, VirtualLoop

from maestropy.aio.tasks import Crew
from maestropy.sandbox.kubeapi.deleting import Deletion
from maestropy.sandbox.kubeapi.problems import Problem

PATIENCE_SECONDS = 600.0
"""How long after the last trouble everything must have come together."""
_REST_SECONDS = 8.0
"""How long it must stay together then."""

_LOOK_SECONDS = 0.02
_LOOKS = 500
"""How often somebody looks whether a deletion is done."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a run."""

    violation: Violation | None
    seconds: float
    """How long it took on the virtual clock until all was as it should be."""
    fingerprint: int
    """Equal for two runs in which the same happened."""


def play(schedule: Schedule, *, told: Callable[[str], None] | None = None) -> Outcome:
    """Play a schedule."""
    loop = VirtualLoop()
    story = Story(schedule, loop, told)
    try:
        violation = loop.play(story.tell())
    except Stuck:
        violation = Violation("progress", "nothing can ever happen any more")
    return Outcome(violation=violation, seconds=story.came_together_at, fingerprint=story.fingerprint())


class _Broken(Exception):
    """A rule was broken; the rest of the run does not matter."""


@dataclass(eq=False)
class Story:
    """One run."""

    schedule: Schedule
    loop: VirtualLoop
    follow: Callable[[str], None] | None
    came_together_at: float = 0.0
    _tokens: int = 0
    _working: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        schedule, clock = self.schedule, self.loop.clock()
        told = self._told if self.follow else None
        self.network = Network(schedule.seed, is_rough=schedule.is_rough)
        if told:
            self.network.told = told
        self.engine = Engine(lambda owner: self.network.hop(f"{owner}/database"))
        ids = self.network.chance("ids")
        self.clusters = {
            consumer: MemoryCluster(clock=clock, new_id=lambda: f"uid-{ids.getrandbits(64):016x}")
            for consumer in schedule.consumers
        }
        self.bundles = {
            name: Bundle(name=name, source=source, consumer=consumer) for name, source, consumer in schedule.bundles
        }
        self.ledger = Ledger(self.engine, {b.id: b for b in self.bundles.values()}, self.clusters, told=told)
        for consumer in schedule.consumers:
            self.engine.tables["consumers"][consumer] = {"id": consumer, "name": consumer, "created_at": clock.now()}
        self.broker = Broker(self.network)
        self.network.broken = self.broker.hang_up
        self.loop.dial = self.broker.dial
        given: dict[str, Any] = {"network": self.network, "clock": clock, "told": told}
        mqtt = {"uses_mqtt": schedule.uses_mqtt}
        self.servers = {name: Server(name, engine=self.engine, **given, **mqtt) for name in schedule.servers}
        self.agents = {name: ClusterAgent(name, self.clusters[name], **given, **mqtt) for name in schedule.consumers}
        self.sources = {name: Source(name, engine=self.engine, **given) for name in schedule.sources}

    async def tell(self) -> Violation | None:
        """Play everything; returns what was broken."""
        crew = Crew()
        for cluster in self.clusters.values():
            cluster.start(crew)
        for server in self.servers.values():
            await server.start()
        for agent in self.agents.values():
            await agent.start()
        for source in self.sources.values():
            source.start()
        try:
            await self._go_through_steps()
            await self._calm_down()
            await self._come_together()
        except _Broken:
            pass
        finally:
            self.broker.go_away()
        return self.ledger.violations[0] if self.ledger.violations else None

    async def _go_through_steps(self) -> None:
        for step in self.schedule.steps:
            await self._until(step.at)
            self._told(f"STEP {step.kind} {step.who} {step.number}")
            work = _KINDS[step.kind](self, step)
            self._working.append(self.loop.create_task(work, name=step.kind))
        await self._until(self.schedule.seconds)

    async def _until(self, moment: float) -> None:
        """Let the time pass, but not beyond a broken rule."""
        while self.loop.now < moment:
            await asyncio.sleep(min(1.0, moment - self.loop.now))
            self._look()

    def _look(self) -> None:
        actors = [*self.servers.values(), *self.agents.values()]
        for failure in [each for actor in actors for each in actor.failures]:
            self.ledger.violations.append(Violation("nobody-falls", failure))
        for task in [task for task in self._working if task.done() and task.exception()]:
            raise task.exception()  # type: ignore[misc]  # a bug of the simulation
        if self.ledger.violations:
            raise _Broken

    async def _calm_down(self) -> None:
        self._told("STEP all troubles end")
        self.network.is_rough = False
        self.network.cut_off.clear()
        self.broker.is_away = False
        for cluster in self.clusters.values():
            cluster.faults.clear()
        for server in self.servers.values():
            server.hears = server.database_is_there = True
        for agent in self.agents.values():
            agent.cluster_is_there = True
        await asyncio.gather(*self._working)
        for actor in (*self.servers.values(), *self.agents.values()):
            await actor.start()

    async def _come_together(self) -> None:
        start, since = self.loop.now, None
        while True:
            self._release_everything()
            lacking = self._lacking()
            if lacking:
                since = None
            elif since is None:
                since = self.loop.now
                self.came_together_at = since - start
            if since is not None and self.loop.now - since >= _REST_SECONDS:
                return
            if since is None and self.loop.now - start > PATIENCE_SECONDS:
                self.ledger._break("convergence", f"after {PATIENCE_SECONDS:g} s: {lacking}")
            self._look()
            await asyncio.sleep(1.0)

    def _lacking(self) -> str:
        """Say what is not as it should be; nothing when all is well."""
        wanted: dict[str, dict[str, str]] = {consumer: {} for consumer in self.clusters}
        for row in self.engine.tables["resources"].values():
            bundle = self.ledger.bundles[row["id"]]
            if row["deleted_at"] is not None:
                return f"{bundle.name} is still being deleted"
            life = self.ledger.current(bundle)
            assert life is not None
            content = self.contents[life.tokens[row["version"]]]
            for manifest in content.manifests(bundle):
                wanted[bundle.consumer][manifest["metadata"]["name"]] = content.token
            said = _status(row)
            if not said or int(said["resourceversion"]) != row["version"]:
                return f"the status of {bundle.name} is not of version {row['version']}"
            if self.sources[row["source"]].statuses.get(row["id"]) != said["statushash"]:
                return f"{row['source']} has not heard the last status of {bundle.name}"
        return self._lacking_on_clusters(wanted) or self._lacking_at_sources()

    def _lacking_on_clusters(self, wanted: dict[str, dict[str, str]]) -> str:
        for consumer, cluster in self.clusters.items():
            found = {name: stored.obj["data"]["token"] for name, stored in cluster.config_maps().items()}
            if found != wanted[consumer]:
                return f"{consumer} has {found} instead of {wanted[consumer]}"
        return ""

    def _lacking_at_sources(self) -> str:
        for source in self.sources.values():
            unknown = [id_ for id_ in source.statuses if id_ not in self.engine.tables["resources"]]
            if unknown:
                return f"{source.name} has not heard that {self.ledger.bundles[unknown[0]].name} is gone"
        return ""

    def _release_everything(self) -> None:
        for cluster in self.clusters.values():
            for stored in cluster.config_maps().values():
                metadata = stored.obj["metadata"]
                if metadata.get("deletionTimestamp") and HOLDER in (metadata.get("finalizers") or ()):
                    cluster.release(stored)

    contents: dict[str, Content] = field(default_factory=dict)

    def content(self, bundle: Bundle, shape: int) -> Content:
        self._tokens += 1
        content = Content(token=f"{bundle.name}.{self._tokens}", parts=1 + shape % 2, is_held=shape > 2)
        self.contents[content.token] = content
        return content

    def _told(self, text: str) -> None:
        if self.follow:
            self.follow(f"{self.loop.now:9.4f} {text}")

    def fingerprint(self) -> int:
        """Return a number that two equal runs share."""
        lives = [(id_, [life.tokens for life in lives]) for id_, lives in self.ledger.lives.items()]
        versions = [cluster.store.version for cluster in self.clusters.values()]
        return hash(repr((self.loop.now, lives, versions, [str(each) for each in self.ledger.violations])))


async def _create(story: Story, step: Step) -> None:
    bundle = story.bundles[step.who]
    content = story.content(bundle, step.number)
    wish = story.ledger.wish(bundle, content, base=None)
    story.ledger.answered(wish, await story.sources[bundle.source].create(bundle, content))


async def _create_again(story: Story, step: Step) -> None:
    """Create as soon as nothing of that id is left, as people do who wait for a deletion."""
    for _ in range(_LOOKS):
        if story.bundles[step.who].id not in story.engine.tables["resources"]:
            await _create(story, step)
            return
        await asyncio.sleep(_LOOK_SECONDS)


async def _update(story: Story, step: Step) -> None:
    await _update_upon(story, step, base=_version(story, step))


async def _stale_update(story: Story, step: Step) -> None:
    await _update_upon(story, step, base=max(1, _version(story, step) - 1))


async def _race(story: Story, step: Step) -> None:
    base = _version(story, step)
    await asyncio.gather(*(_update_upon(story, step, base=base) for _ in range(3)))


async def _update_upon(story: Story, step: Step, *, base: int) -> None:
    bundle = story.bundles[step.who]
    content = story.content(bundle, step.number)
    wish = story.ledger.wish(bundle, content, base=base)
    story.ledger.answered(wish, await story.sources[bundle.source].update(bundle, content, version=base))


def _version(story: Story, step: Step) -> int:
    row = story.engine.tables["resources"].get(story.bundles[step.who].id)
    return row["version"] if row else 1


async def _delete(story: Story, step: Step) -> None:
    bundle, life = story.bundles[step.who], story.ledger.current(story.bundles[step.who])
    story._tokens += 1
    answer = await story.sources[bundle.source].delete(bundle, wish=f"{bundle.name}.{story._tokens}")
    story.ledger.deletion_accepted(bundle, life, answer)


async def _delete_storm(story: Story, step: Step) -> None:
    await asyncio.gather(*(_delete(story, step) for _ in range(12)))


async def _kill_server(story: Story, step: Step) -> None:
    await story.servers[step.who].kill()
    await asyncio.sleep(step.number)
    await story.servers[step.who].start()


async def _stop_server(story: Story, step: Step) -> None:
    await story.servers[step.who].leave()
    await asyncio.sleep(step.number)
    await story.servers[step.who].start()


async def _kill_agent(story: Story, step: Step) -> None:
    await story.agents[step.who].kill()
    await asyncio.sleep(step.number)
    await story.agents[step.who].start()


async def _hang_up(story: Story, step: Step) -> None:
    story.network.break_wires(step.who)


async def _cut_off(story: Story, step: Step) -> None:
    story.network.cut_off.add(step.who)
    story.network.break_wires(step.who)
    await asyncio.sleep(step.number)
    story.network.cut_off.discard(step.who)


async def _lose_broker(story: Story, step: Step) -> None:
    story.broker.go_away()
    await asyncio.sleep(step.number)
    story.broker.is_away = False


async def _cut_sessions(story: Story, step: Step) -> None:
    story.engine.cut(step.who)


async def _lose_database(story: Story, step: Step) -> None:
    server = story.servers[step.who]
    server.database_is_there = False
    story.engine.cut(step.who)
    await asyncio.sleep(step.number)
    server.database_is_there = True


async def _lose_notices(story: Story, step: Step) -> None:
    story.servers[step.who].hears = False
    await asyncio.sleep(step.number)
    story.servers[step.who].hears = True


async def _lose_cluster(story: Story, step: Step) -> None:
    story.agents[step.who].cluster_is_there = False
    await asyncio.sleep(step.number)
    story.agents[step.who].cluster_is_there = True


async def _forget_history(story: Story, step: Step) -> None:
    story.clusters[step.who].faults.expire_history()


async def _fail_requests(story: Story, step: Step) -> None:
    status = (500, 503, 429)[step.number % 3]
    story.clusters[step.who].faults.fail_next(step.number + 1, status=status)


async def _drift(story: Story, step: Step) -> None:
    """Let somebody else change or remove an object of a bundle that nobody deletes."""
    cluster = story.clusters[step.who]
    rows = story.engine.tables["resources"]
    alive = {b.name for b in story.bundles.values() if b.id in rows and rows[b.id]["deleted_at"] is None}
    found = [each for name, each in cluster.config_maps().items() if name.rpartition("-")[0] in alive]
    if not found:
        return
    stored = found[step.number % len(found)]
    if step.number % 2:
        cluster.objects.amend(stored, lambda obj: {**obj, "data": {"token": "drifted"}})
    else:
        kind = cluster.objects.registry.of_resource(*stored.resource)
        assert kind is not None
        try:
            cluster.objects.delete(kind, stored.namespace, stored.name, Deletion(uid=stored.uid))
        except Problem:
            pass


async def _release(story: Story, step: Step) -> None:
    story._release_everything()


_KINDS: dict[str, Callable[[Story, Step], Awaitable[None]]] = {
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
}
