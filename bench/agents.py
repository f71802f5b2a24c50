"""How fast an agent applies works on a real Kubernetes API server, and how soon a change there is known.

The server is ours in every run; what differs is the agent. Each agent gets a cluster of its own.
"""

import asyncio
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from maestropy import AsyncMaestro, Work
from tests.peers import kube_agents, kube_build, kube_cluster, peer_build, peer_clients, peer_servers

_CONSUMER = "cluster1"
# A Go agent looks at a work again just after it has reported on it, and would find the next change by that alone.
_SILENCE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentBench:
    """One agent under load."""

    server: peer_servers.RunningServer
    cluster: kube_cluster.KubeCluster
    agent: kube_agents.RunningAgent
    scale: float

    def client(self) -> AsyncMaestro:
        return AsyncMaestro(environ={}, api_url=self.server.rest_url, grpc_url=self.server.grpc_addr, source="bench")


def run(
    programs: peer_build.Programs, kind: str, *, server: peer_servers.RunningServer, folder: Path, scale: float
) -> dict[str, float]:
    """Measure one kind of agent."""
    control_plane = kube_build.control_plane(print)
    place = folder / "kube"
    place.mkdir()
    peer_clients.rest(server, "POST", "/consumers", {"name": _CONSUMER})
    with (
        kube_cluster.kube_cluster(control_plane, folder=place) as cluster,
        kube_agents.agent_process(
            kind, programs, cluster=cluster, server=server, consumer=_CONSUMER, folder=folder
        ) as agent,
    ):
        bench = AgentBench(server=server, cluster=cluster, agent=agent, scale=scale)
        return asyncio.run(_measure(bench))


async def _measure(bench: AgentBench) -> dict[str, float]:
    found: dict[str, float] = {}
    async with bench.client() as client:
        await _burst(client, count=5, size=3000, prefix="warm")
        first = await _burst(client, count=100, size=3000, prefix="burst")
        found["agent: publish to Available in a burst of 100, p50 ms"] = statistics.median(first.available) * 1000
        found["agent: publish to Available in a burst of 100, p99 ms"] = _percentile(first.available, 0.99) * 1000
        changes = await _changes(client, bench, rounds=max(10, round(100 * bench.scale)), seconds=60)
        found["agent: change on the cluster to client, p50 ms"] = statistics.median(changes) * 1000
        found["agent: change on the cluster to client, p99 ms"] = _percentile(changes, 0.99) * 1000
        count = max(100, round(600 * bench.scale))
        for size in (3000, 30000):
            found |= await _many(client, bench, count=count, size=size)
        found |= await _memory_of(client, bench, works=max(500, round(5000 * bench.scale)))
    return found


async def _many(client: AsyncMaestro, bench: AgentBench, *, count: int, size: int) -> dict[str, float]:
    """Publish many works at once, and count what they cost."""
    before, started = _costs(bench), time.perf_counter()
    told = await _burst(client, count=count, size=size, prefix=f"many{size}")
    seconds = time.perf_counter() - started
    # What was put off in the burst belongs to it.
    await _quiet(bench)
    after = _costs(bench)
    name = f"agent: {count} works of {size // 1000} KB"
    return {
        f"{name}, works/s": count / seconds,
        f"{name}, publish to first status p50 ms": statistics.median(told.first) * 1000,
        f"{name}, publish to first status p99 ms": _percentile(told.first, 0.99) * 1000,
        f"{name}, agent CPU ms each": (after.agent_seconds - before.agent_seconds) * 1000 / count,
        f"{name}, API server CPU ms each": (after.api_seconds - before.api_seconds) * 1000 / count,
        f"{name}, API calls each": (after.calls - before.calls) / count,
    }


async def _memory_of(client: AsyncMaestro, bench: AgentBench, *, works: int) -> dict[str, float]:
    """Add works until there are this many."""
    already = len([each async for each in client.works(_CONSUMER).list()])
    await _burst(client, count=max(1, works - already), size=3000, prefix="memory")
    await _quiet(bench)
    return {f"agent: memory with {works} works of 3 to 30 KB, MB": _memory(bench.agent.pid)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What was used up since the processes began."""

    agent_seconds: float
    api_seconds: float
    calls: float
    writes: float
    """Those of the calls that change something; an agent that polls never stops reading."""


def _costs(bench: AgentBench) -> Costs:
    """Return what agent and API server used; of the calls, those about what the works consist of."""
    fields = Path(f"/proc/{bench.agent.pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    calls = writes = api_seconds = 0.0
    with bench.cluster.client() as api:
        for line in api.get("/metrics").text.splitlines():
            if line.startswith("process_cpu_seconds_total "):
                api_seconds = float(line.split()[1])
            elif line.startswith("apiserver_request_total{") and _is_of_a_work(line):
                count = float(line.split()[-1])
                calls += count
                writes += 0 if 'verb="GET"' in line else count
    return Costs(agent_seconds=ticks / os.sysconf("SC_CLK_TCK"), api_seconds=api_seconds, calls=calls, writes=writes)


def _is_of_a_work(line: str) -> bool:
    is_ours = 'resource="configmaps"' in line or 'resource="appliedmanifestworks"' in line
    return is_ours and 'verb="WATCH"' not in line and 'verb="LIST"' not in line


async def _quiet(bench: AgentBench) -> None:
    """Wait until the agent changes nothing any more, two seconds long."""
    writes = -1.0
    for _ in range(60):
        found = _costs(bench).writes
        if found == writes:
            return
        writes = found
        await asyncio.sleep(2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """For each work the seconds until a client heard of it at all, and that it is available."""

    first: list[float]
    available: list[float]


async def _burst(client: AsyncMaestro, *, count: int, size: int, prefix: str) -> Told:
    """Publish works at once."""
    works = client.works(_CONSUMER)
    published: dict[str, float] = {}
    first: dict[str, float] = {}
    available: dict[str, float] = {}
    complete = asyncio.Event()

    async def listen() -> None:
        async for told in works.watch(labels={"round": prefix}):
            name, now = told.work.name, time.perf_counter()
            if told.work.is_reported:
                first.setdefault(name, now)
            if told.work.is_true("Available"):
                available.setdefault(name, now)
                if len(available) == count:
                    complete.set()
                    return

    async with asyncio.TaskGroup() as group:
        group.create_task(listen())
        await asyncio.sleep(0.5)

        async def publish(number: int) -> None:
            name = f"{prefix}-{number}"
            work = Work(name, labels={"round": prefix}).add(_config_map(name, size=size))
            published[name] = time.perf_counter()
            await works.create(work)

        for start in range(0, count, 50):
            await asyncio.gather(*(publish(number) for number in range(start, min(start + 50, count))))
        async with asyncio.timeout(600):
            await complete.wait()
    return Told(
        first=[first[name] - at for name, at in published.items()],
        available=[available[name] - at for name, at in published.items()],
    )


async def _changes(client: AsyncMaestro, bench: AgentBench, *, rounds: int, seconds: float) -> list[float]:
    """Change an object on the cluster; return the seconds until a client hears of it. The slow get fewer rounds."""
    works = client.works(_CONSUMER)
    name = "changing"
    work = Work(name).add(_config_map(name, size=10), feedback={"seen": ".data.seen"}, update_strategy="CreateOnly")
    await works.create(work)
    await works.wait_for(name, "Available", timeout=60)
    taken: list[float] = []
    with bench.cluster.client() as api:
        for number in range(rounds):
            if sum(taken) > seconds:
                break
            value = f"v{number}"
            await asyncio.sleep(_SILENCE_SECONDS)
            started = time.perf_counter()
            api.patch(
                f"/api/v1/namespaces/default/configmaps/{name}",
                json={"data": {"seen": value}},
                headers={"Content-Type": "application/merge-patch+json"},
            ).raise_for_status()
            await works.wait_for(name, lambda seen: seen.feedback("seen") == value, timeout=60)
            taken.append(time.perf_counter() - started)
    return taken


def _config_map(name: str, *, size: int) -> dict[str, object]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": "x" * size}}


def _percentile(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(part * len(ordered)))]


def _memory(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    raise RuntimeError("no VmRSS")
