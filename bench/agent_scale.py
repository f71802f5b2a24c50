"""Measure an agent with 200 to 10,000 works: first apply, start, new works meanwhile, memory, a slow namespace.

    python -m bench.agent_scale [--sizes 200,1000,3000,10000] [--kinds python,go] [--sandbox] [--publish]

Every run has a new API server, a new database with that many works of one ConfigMap of 3 KB, and our server. The agent
starts and applies all of them. When it is idle it is stopped, and starts again: it is in sync when the server has a
status of every work from this start. Five works are published at that moment. Then nothing happens for a while, and at
last a webhook makes one namespace slow: works of that namespace are published, and works of another one beside them.
`--sandbox` measures on the API server of the sandbox, without a slow namespace; with `--kinds python` it needs no Go.
`--publish` writes bench/agent_scale.json and the table of docs/performance.md.
"""

import argparse
import asyncio
import contextlib
import json
import math
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import asyncpg

from bench import api_servers, growth, usage
from maestropy import AsyncMaestro, Work
from tests.peers import kube_agents, kube_cluster, peer_build, peer_postgres, peer_servers

HERE = Path(__file__).resolve().parent
PUBLISHED = HERE / "agent_scale.json"
PAGE = HERE.parent / "docs" / "performance.md"
BEGIN, END = "<!-- agent: written by `make bench-agent BENCH=--publish` -->", "<!-- end of agent -->"
KINDS = {"python": "ours", "go": "Go"}

CONSUMER = "cluster1"
IN_SYNC_SECONDS = 3600.0
IDLE_SECONDS = 30.0
NEW_WORKS = 5
SLOW_WORKS, SLOW_SECONDS = 40, 5.0
SNOWFLAKE_EPOCH_MS = 1288834974657

WORKS = """
WITH made AS (
  SELECT n, md5('resource' || n)::uuid::text AS id,
    jsonb_build_object('name', 'work-' || n, 'namespace', $2::text) AS metadata,
    jsonb_build_object('manifests', jsonb_build_array(jsonb_build_object('apiVersion', 'v1', 'kind', 'ConfigMap',
      'metadata', jsonb_build_object('name', 'cm-' || n, 'namespace', 'default'),
      'data', jsonb_build_object('text', repeat(md5(n::text), 90))))) AS data
  FROM generate_series(0, $1::int - 1) n
)
INSERT INTO resources (id, name, source, consumer_name, version, type, payload, created_at, updated_at)
SELECT id, id, 'bench', $2, 1, '', jsonb_build_object('specversion', '1.0', 'id', id, 'source', 'bench',
  'type', 'io.open-cluster-management.works.v1alpha1.manifestbundles.spec.create_request',
  'datacontenttype', 'application/json', 'clustername', $2::text, 'resourceid', id, 'resourceversion', 0,
  'metadata', metadata, 'data', data), now(), now() FROM made"""
REPORTED = """
SELECT count(*) FROM resources
WHERE consumer_name = $1 AND source = 'bench' AND (status->>'sequenceid')::numeric > $2"""


@dataclass(kw_only=True)
class Run:
    """One kind of agent with one number of works."""

    kind: str
    count: int
    api: api_servers.ApiServer
    server: peer_servers.RunningServer
    programs: peer_build.Programs | None
    folder: Path
    figures: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def agent(self) -> Iterator[kube_agents.RunningAgent]:
        """Run an agent with its default settings."""
        config = self.folder / f"{self.kind}-agent.yaml"
        config.write_text(json.dumps({"url": self.server.broker_addr}))
        maestro = self.programs.maestro if self.programs else Path("maestro")
        # An agent needs nothing of a cluster but its kubeconfig.
        cluster = self.api.real or cast("kube_cluster.KubeCluster", self.api)
        with kube_agents.configured_agent(
            self.kind, maestro, cluster=cluster, consumer=CONSUMER, config=config
        ) as agent:
            yield agent

    async def measure(self) -> dict[str, float]:
        """Apply, start again, rest, and meet a slow namespace."""
        since, before = _sequence_now(), self.api.counts()
        began = time.perf_counter()
        with self.agent() as agent:
            await self._until_reported(since, began=began, name="first apply")
            await self._quiet()
            self._costs("first apply", self.api.counts() - before, cpu=usage.cpu_seconds(agent.pid))
        await self._start_again()
        return self.figures

    async def _start_again(self) -> None:
        # The sequence IDs of statuses that the first agent sent last are older than this.
        await asyncio.sleep(1)
        since, before = _sequence_now(), self.api.counts()
        began = time.perf_counter()
        async with self._client() as client, asyncio.TaskGroup() as group:
            with self.agent() as agent, usage.Peak(agent.pid) as peak:
                new = group.create_task(_publish(client, "new", count=NEW_WORKS, namespace="default"))
                await self._until_reported(since, began=began, name="start")
                self.figures["start, new work to Available p50 s"] = statistics.median(await new)
                self._costs("start", self.api.counts() - before, cpu=usage.cpu_seconds(agent.pid))
                self.figures["start, memory at its peak MB"] = peak.mb
                await self._quiet()
                await self._idle(agent.pid)
                if self.api.real is not None:
                    await self._slow(client)

    async def _idle(self, pid: int) -> None:
        before, used = self.api.counts(), usage.cpu_seconds(pid)
        await asyncio.sleep(IDLE_SECONDS)
        counted, used = self.api.counts() - before, usage.cpu_seconds(pid) - used
        self.figures["idle, memory MB"] = usage.memory_mb(pid)
        self.figures["idle, agent CPU %"] = used * 100 / IDLE_SECONDS
        self.figures["idle, API calls a second"] = (counted.calls + counted.lists) / IDLE_SECONDS
        self.figures["idle, API server CPU %"] = counted.cpu_seconds * 100 / IDLE_SECONDS

    async def _slow(self, client: AsyncMaestro) -> None:
        assert self.api.real is not None
        with self.api.real.client() as api:
            api.post("/api/v1/namespaces", json={"metadata": {"name": "slow"}})
        with api_servers.slow_namespace(self.api.real, "slow", seconds=SLOW_SECONDS):
            async with asyncio.TaskGroup() as group:
                slow = group.create_task(_publish(client, "slow", count=SLOW_WORKS, namespace="slow"))
                await asyncio.sleep(1)
                others = await _publish(client, "beside", count=NEW_WORKS, namespace="default")
                await slow
        self.figures[f"beside {SLOW_WORKS} works of a slow namespace, work to Available p50 s"] = statistics.median(
            others
        )

    async def _until_reported(self, since: int, *, began: float, name: str) -> None:
        """Wait until the server has a status of every work that is newer than a sequence ID."""
        connection = await asyncpg.connect(self.server.database.dsn)
        try:
            async with asyncio.timeout(IN_SYNC_SECONDS):
                while await connection.fetchval(REPORTED, CONSUMER, since) < self.count:
                    await asyncio.sleep(0.2)
        finally:
            await connection.close()
        self.figures[f"{name}, all works reported after s"] = time.perf_counter() - began

    def _costs(self, name: str, counted: api_servers.Counts, *, cpu: float) -> None:
        self.figures[f"{name}, agent CPU ms each"] = cpu * 1000 / self.count
        self.figures[f"{name}, API server CPU ms each"] = counted.cpu_seconds * 1000 / self.count
        self.figures[f"{name}, API calls each"] = counted.calls / self.count
        self.figures[f"{name}, lists"] = counted.lists
        self.figures[f"{name}, watches opened"] = counted.watches

    async def _quiet(self) -> None:
        """Wait until the agent writes nothing any more, four seconds long."""
        writes, calm = -1.0, 0
        for _ in range(600):
            counted = self.api.counts().writes
            calm = calm + 1 if counted == writes else 0
            if calm == 2:
                return
            writes = counted
            await asyncio.sleep(2)

    def _client(self) -> AsyncMaestro:
        return AsyncMaestro(environ={}, api_url=self.server.rest_url, grpc_url=self.server.grpc_addr, source="new")


def _sequence_now() -> int:
    return (int(time.time() * 1000) - SNOWFLAKE_EPOCH_MS) << 22


async def _publish(client: AsyncMaestro, prefix: str, *, count: int, namespace: str) -> list[float]:
    """Publish works and return the seconds until each is available."""
    works = client.works(CONSUMER)

    async def one(number: int) -> float:
        name = f"{prefix}-{number}"
        metadata = {"name": name, "namespace": namespace}
        began = time.perf_counter()
        await works.create(Work(name).add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}}))
        await works.wait_for(name, "Available", timeout=IN_SYNC_SECONDS)
        return time.perf_counter() - began

    return list(await asyncio.gather(*(one(number) for number in range(count))))


def measure(sizes: Sequence[int], kinds: Sequence[str], *, is_real: bool) -> dict[str, Any]:
    """Measure every size with every kind of agent, in turn."""
    load = os.getloadavg()[0]
    programs = peer_build.programs(lambda text: print(text, file=sys.stderr)) if "go" in kinds else None
    results: dict[str, dict[str, dict[str, float]]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="maestropy-agent-", ignore_cleanup_errors=True) as folder,
        peer_postgres.cluster(Path(folder), durable=True) as postgres,
    ):
        for size in sizes:
            for kind in kinds:
                place = Path(tempfile.mkdtemp(dir=folder))
                database = postgres.create(f"agent{size}{kind}")
                serving = peer_servers.python_server(database=database, folder=place, flags=["-v=1"])
                starting = api_servers.real if is_real else api_servers.sandbox
                (place / "kube").mkdir()
                with serving as server, starting(place / "kube") as api:
                    run = Run(kind=kind, count=size, api=api, server=server, programs=programs, folder=place)
                    asyncio.run(_fill_and_measure(run))
                for name, value in run.figures.items():
                    results.setdefault(name, {}).setdefault(kind, {})[str(size)] = value
                print(f"{size:,} works measured with {kind}", file=sys.stderr, flush=True)
    return {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": os.cpu_count(),
        "load": load,
        "api_server": "kube-apiserver" if is_real else "the API server of the sandbox",
        "sizes": list(sizes),
        "kinds": list(kinds),
        "measures": results,
    }


async def _fill_and_measure(run: Run) -> None:
    connection = await asyncpg.connect(run.server.database.dsn)
    try:
        await connection.execute(
            "INSERT INTO consumers (id, name, created_at, updated_at) VALUES ($1, $1, now(), now())", CONSUMER
        )
        await connection.execute(WORKS, run.count, CONSUMER)
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()
    try:
        await run.measure()
    except (TimeoutError, RuntimeError, AssertionError) as error:
        print(f"{run.count:,} works of {run.kind}: {type(error).__name__} {error}", file=sys.stderr, flush=True)


def exponent(figures: Mapping[str, float]) -> float:
    """Return the slope of a figure over the number of works, both as logarithms."""
    points = [(math.log(int(size)), math.log(value)) for size, value in figures.items() if value > 0]
    if len(points) < 2:
        return math.nan
    xs, ys = zip(*points, strict=True)
    return statistics.linear_regression(xs, ys).slope


def table(document: Mapping[str, Any]) -> str:
    """Return the table of the page."""
    busy = f" while other work went on (load {document['load']:.0f})" if document["load"] > 1 else ""
    sizes = [str(size) for size in document["sizes"]]
    heads = [f"{int(size):,}, {KINDS[kind]}" for kind in document["kinds"] for size in sizes]
    exponents = [f"exponent, {KINDS[kind]}" for kind in document["kinds"]]
    where = f"on {document['cores']} cores with {document['api_server']}{busy}"
    lines = [f"Measured {document['when'][:10]} {where}:", ""]
    lines += [f"| works | {' | '.join([*heads, *exponents])} |", f"|---|{'--:|' * (len(heads) + len(exponents))}"]
    for name, by_kind in document["measures"].items():
        found = [by_kind.get(kind, {}) for kind in document["kinds"]]
        shown = [growth.shown(figures.get(size, math.nan)) for figures in found for size in sizes]
        slopes = [exponent(figures) for figures in found]
        shown += ["-" if math.isnan(slope) else f"{slope:.2f}" for slope in slopes]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(lines)


def write_page(document: Mapping[str, Any], page: Path = PAGE) -> None:
    """Put the table between its markers; nothing else of the page is touched."""
    text = page.read_text()
    between = re.compile(re.escape(BEGIN) + r".*?" + re.escape(END), re.DOTALL)
    if not between.search(text):
        raise ValueError(f"{page} lacks the lines {BEGIN!r} and {END!r}; put them where the table shall stand")
    page.write_text(between.sub(lambda _: f"{BEGIN}\n\n{table(document)}\n\n{END}", text))


def read(path: Path = PUBLISHED) -> dict[str, Any]:
    """Return a published result."""
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def main() -> int:
    """Measure, print, publish."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.agent_scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="200,1000,3000,10000", help="numbers of works, comma separated")
    parser.add_argument("--kinds", default="python,go", help="which agents, comma separated: python, go")
    parser.add_argument(
        "--sandbox", action="store_true", help="the API server of the sandbox, without a slow namespace"
    )
    parser.add_argument("--publish", action="store_true", help="write bench/agent_scale.json and docs/performance.md")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",") if size.strip().isdigit()]
    if not sizes or sizes != sorted(set(sizes)) or sizes[0] < 2:
        parser.error("--sizes needs growing numbers, such as 200,1000,3000,10000")
    kinds = given.kinds.split(",")
    if not set(kinds) <= set(KINDS):
        parser.error(f"--kinds knows {', '.join(KINDS)}")
    document = measure(sizes, kinds, is_real=not given.sandbox)
    print(table(document))
    if given.publish:
        PUBLISHED.write_text(json.dumps(document, indent=1) + "\n")
        write_page(document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
