"""How fast an agent makes wishes true on a real Kubernetes API server, and how soon a change there is known.

The server is ours in every run; what differs is the agent. Each agent gets a cluster of its own.
"""

import asyncio
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import kube_agents
import kube_build
import kube_cluster
import peer_build
import peer_clients
import peer_servers

from pymaestro import AsyncMaestro, Work

_CONSUMER = "cluster1"


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
        first = await _burst(client, count=100, size=3000, prefix="burst")
        found["agent: publish to Available in a burst of 100, p50 ms"] = statistics.median(first) * 1000
        found["agent: publish to Available in a burst of 100, p99 ms"] = _percentile(first, 0.99) * 1000
        changes = await _changes(client, bench, rounds=max(3, round(10 * bench.scale)))
        found["agent: change on the cluster to client, p50 ms"] = statistics.median(changes) * 1000
        found["agent: change on the cluster to client, worst ms"] = max(changes) * 1000
        count = max(100, round(600 * bench.scale))
        for size in (3000, 30000):
            started = time.perf_counter()
            await _burst(client, count=count, size=size, prefix=f"many{size}")
            name = f"agent: {count} works of {size // 1000} KB applied and reported, works/s"
            found[name] = count / (time.perf_counter() - started)
        found["agent: memory after these works, MB"] = _memory(bench.agent.pid)
    return found


async def _burst(client: AsyncMaestro, *, count: int, size: int, prefix: str) -> list[float]:
    """Publish works at once; return for each the seconds until a client hears that it is available."""
    works = client.works(_CONSUMER)
    published: dict[str, float] = {}
    heard: dict[str, float] = {}
    complete = asyncio.Event()

    async def listen() -> None:
        async for told in works.watch(labels={"round": prefix}):
            name = told.work.name
            if name not in heard and told.work.is_true("Available"):
                heard[name] = time.perf_counter()
                if len(heard) == count:
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
        async with asyncio.timeout(300):
            await complete.wait()
    return [heard[name] - published[name] for name in published]


async def _changes(client: AsyncMaestro, bench: AgentBench, *, rounds: int) -> list[float]:
    """Change an object on the cluster; return the seconds until a client hears of it."""
    works = client.works(_CONSUMER)
    name = "changing"
    work = Work(name).add(_config_map(name, size=10), feedback={"seen": ".data.seen"}, update_strategy="CreateOnly")
    await works.create(work)
    await works.wait_for(name, "Available", timeout=60)
    taken = []
    with bench.cluster.client() as api:
        for number in range(rounds):
            value = f"v{number}"
            started = time.perf_counter()
            api.patch(
                f"/api/v1/namespaces/default/configmaps/{name}",
                json={"data": {"seen": value}},
                headers={"Content-Type": "application/merge-patch+json"},
            ).raise_for_status()
            await works.wait_for(name, lambda seen, value=value: seen.feedback("seen") == value, timeout=60)
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
