"""Measure two servers with a thousand and ten thousand connected agents: memory, heartbeats, a storm, a replacement.

    python -m bench.storm [--sizes 1000,10000] [--kinds python,go] [--publish]

All agents connect at once to two servers on one PostgreSQL. After a while of heartbeats one server is killed, and its
agents come to the other. Then a new server starts and the other is stopped as Kubernetes stops a pod, so that all
agents move to the new one. An agent is away from the end of its connection until its spec resync is answered; half a
second to a second of that is the wait of an agent before it connects again. Memory is what a server gained per agent.
`--publish` writes bench/storm.json and the table of docs/performance.md.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from bench import growth, sizing, usage
from tests.peers import peer_build, peer_postgres, peer_servers
from tests.peers.peer_processes import mortal

HERE = Path(__file__).resolve().parent
PUBLISHED = HERE / "storm.json"
PAGE = HERE.parent / "docs" / "performance.md"
BEGIN, END = "<!-- storm: written by `make bench-storm BENCH=--publish` -->", "<!-- end of storm -->"
KINDS = {"python": "ours", "go": "Go"}

PROCESSES = 2
STORM_SECONDS = 300.0
HEARTBEAT_SECONDS = 20.0
IDLE_SECONDS = 5.0
SERVER_FLAGS = ["-v=1", "--heartbeat-check-interval=10s"]
OUR_FLAGS = ["--grpc-max-connections=15000", "--grpc-max-subscriptions=15000"]
"""Beside the defaults: one server takes all ten thousand agents, and those that connect again meanwhile."""

CONSUMERS = """
INSERT INTO consumers (id, name, created_at, updated_at)
SELECT 'c' || n, 'c' || n, now(), now() FROM generate_series(0, $1::int - 1) n"""
WORKS = """
WITH made AS (
  SELECT n, md5('resource' || n)::uuid::text AS id,
    jsonb_build_object('name', 'work-' || n, 'namespace', 'c' || n) AS metadata,
    jsonb_build_object('manifests', jsonb_build_array(jsonb_build_object('apiVersion', 'v1', 'kind', 'ConfigMap',
      'metadata', jsonb_build_object('name', 'cm-' || n, 'namespace', 'default'),
      'data', jsonb_build_object('text', repeat(md5(n::text), 70))))) AS data
  FROM generate_series(0, $1::int - 1) n
)
INSERT INTO resources (id, name, source, consumer_name, version, type, payload, created_at, updated_at)
SELECT id, id, 'storm', 'c' || n, 1, '', jsonb_build_object('specversion', '1.0', 'id', id, 'source', 'storm',
  'type', 'io.open-cluster-management.works.v1alpha1.manifestbundles.spec.create_request',
  'datacontenttype', 'application/json', 'clustername', 'c' || n, 'resourceid', id, 'resourceversion', 0,
  'metadata', metadata, 'data', data), now(), now() FROM made"""


@dataclass(slots=True)
class Agents:
    """The processes that play agents."""

    processes: Sequence["subprocess.Popen[str]"]
    count: int

    def tell(self, command: str) -> None:
        for process in self.processes:
            assert process.stdin
            process.stdin.write(command + "\n")
            process.stdin.flush()

    def report(self) -> dict[str, Any]:
        """Return the sums of all processes, and the times of all agents."""
        self.tell("report")
        answers = []
        for process in self.processes:
            assert process.stdout
            answers.append(json.loads(process.stdout.readline()))
        away = sorted(seconds for answer in answers for seconds in answer["away"])
        return {key: sum(answer[key] for answer in answers) for key in ("in_sync", "heartbeats", "attempts")} | {
            "away": away
        }

    def until_in_sync(self, moved: int) -> dict[str, Any]:
        """Wait until all agents are in sync, and `moved` of them came there since `begin`."""
        deadline = time.monotonic() + STORM_SECONDS
        while time.monotonic() < deadline:
            time.sleep(0.25)
            report = self.report()
            if report["in_sync"] == self.count and len(report["away"]) >= moved:
                return report
        raise RuntimeError(f"only {report['in_sync']} of {self.count} agents are in sync after {STORM_SECONDS:.0f} s")


@contextlib.contextmanager
def agents(count: int, targets: Sequence[str]) -> Iterator[Agents]:
    """Play `count` agents."""
    share = -(-count // PROCESSES)
    command = [*mortal(), sys.executable, "-m", "bench.light_agents", f"--targets={','.join(targets)}"]
    processes = [
        subprocess.Popen(
            [*command, f"--first={first}", f"--count={min(share, count - first)}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=HERE.parent,
        )
        for first in range(0, count, share)
    ]
    try:
        yield Agents(processes, count)
    finally:
        for process in processes:
            process.kill()
            process.wait()


@dataclass(slots=True)
class Run:
    """One kind of server with one number of agents."""

    kind: str
    count: int
    start: Callable[[], peer_servers.RunningServer]
    figures: dict[str, float] = field(default_factory=dict)

    def measure(self) -> dict[str, float]:
        first, second = self.start(), self.start()
        empty, idle = usage.memory_mb(first.pid), self._idle([first.pid, second.pid])
        with agents(self.count, [first.broker_addr, second.broker_addr]) as playing:
            with usage.Peak(first.pid) as peak, usage.counted(first.pid) as used:
                report = playing.until_in_sync(self.count)
            self._away("all connect at once", report)
            self.figures["all connect at once, server CPU ms each"] = used[0] * 1000 / (self.count / 2)
            self.figures["memory of a server per agent, KB"] = (peak.mb - empty) * 1000 / (self.count / 2)
            self._heartbeats(playing, [first.pid, second.pid], idle=idle)
            self._kill(playing, first, second)
            self._replace(playing, second)
        return self.figures

    def _idle(self, pids: Sequence[int]) -> float:
        """Return the share of a core that the servers take without agents."""
        before = sum(map(usage.cpu_seconds, pids))
        time.sleep(IDLE_SECONDS)
        share = (sum(map(usage.cpu_seconds, pids)) - before) / IDLE_SECONDS
        self.figures["without agents, CPU of both servers %"] = share * 100
        return share

    def _heartbeats(self, playing: Agents, pids: Sequence[int], *, idle: float) -> None:
        playing.tell("begin")
        before = sum(map(usage.cpu_seconds, pids))
        time.sleep(HEARTBEAT_SECONDS)
        spent = sum(map(usage.cpu_seconds, pids)) - before
        beats = playing.report()["heartbeats"]
        if not beats:
            raise RuntimeError("no agent received a heartbeat")
        self.figures["connected, CPU of both servers %"] = spent * 100 / HEARTBEAT_SECONDS
        self.figures["connected, server CPU us for a heartbeat"] = (
            max(0.0, spent - idle * HEARTBEAT_SECONDS) * 1e6 / beats
        )

    def _kill(self, playing: Agents, first: peer_servers.RunningServer, second: peer_servers.RunningServer) -> None:
        """Kill one server; how many agents it had is the number of those that come back."""
        playing.tell("begin")
        before = usage.memory_mb(second.pid)
        with usage.Peak(second.pid) as peak, usage.counted(second.pid) as used:
            os.kill(first.pid, signal.SIGKILL)
            report = self._moved(playing)
        moved = len(report["away"])
        self._away("one server is killed", report)
        self.figures["one server is killed, server CPU ms each"] = used[0] * 1000 / moved
        self.figures["one server is killed, memory gained per agent KB"] = max(0.1, peak.mb - before) * 1000 / moved

    def _replace(self, playing: Agents, second: peer_servers.RunningServer) -> None:
        """Start a new server, take the old one out of the service, and stop it."""
        third = self.start()
        playing.tell(f"targets {third.broker_addr}")
        playing.tell("begin")
        before = usage.memory_mb(third.pid)
        with usage.Peak(third.pid) as peak:
            os.kill(second.pid, signal.SIGTERM)
            report = playing.until_in_sync(self.count)
        self._away("a server is replaced", report)
        self.figures["a server is replaced, memory gained per agent KB"] = (peak.mb - before) * 1000 / self.count

    def _moved(self, playing: Agents) -> dict[str, Any]:
        deadline = time.monotonic() + 30
        while playing.report()["in_sync"] == self.count:
            if time.monotonic() > deadline:
                raise RuntimeError("no agent noticed that its server was killed")
            time.sleep(0.02)
        return playing.until_in_sync(1)

    def _away(self, name: str, report: Mapping[str, Any]) -> None:
        away = report["away"]
        self.figures[f"{name}, away p50 s"] = statistics.median(away)
        self.figures[f"{name}, away p99 s"] = away[min(len(away) - 1, len(away) * 99 // 100)]
        self.figures[f"{name}, all in sync after s"] = away[-1]
        self.figures[f"{name}, connections tried each"] = report["attempts"] / len(away)


def measure(sizes: Sequence[int], kinds: Sequence[str]) -> dict[str, Any]:
    """Measure every size with every kind of server, on a new database each."""
    load = os.getloadavg()[0]
    programs = peer_build.programs(lambda text: print(text, file=sys.stderr)) if "go" in kinds else None
    results: dict[str, dict[str, dict[str, float]]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="maestropy-storm-", ignore_cleanup_errors=True) as folder,
        peer_postgres.cluster(Path(folder), durable=True) as cluster,
    ):
        for size in sizes:
            for kind in kinds:
                database = cluster.create(f"storm{size}{kind}")
                with contextlib.ExitStack() as closing:
                    start = _starter(kind, database, Path(folder), closing=closing, programs=programs)
                    fill_first(database, start, size=size)
                    run = Run(kind, size, start)
                    try:
                        figures = run.measure()
                    except RuntimeError as error:
                        print(f"{size:,} agents of {kind}: {error}", file=sys.stderr, flush=True)
                        figures = run.figures
                for name, value in figures.items():
                    results.setdefault(name, {}).setdefault(str(size), {})[kind] = value
                print(f"{size:,} agents measured with {kind}", file=sys.stderr, flush=True)
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {
        "when": when,
        "cores": os.cpu_count(),
        "load": load,
        "sizes": list(sizes),
        "kinds": list(kinds),
        "measures": results,
    }


def _starter(
    kind: str,
    database: peer_postgres.Database,
    folder: Path,
    *,
    closing: contextlib.ExitStack,
    programs: peer_build.Programs | None,
) -> Callable[[], peer_servers.RunningServer]:
    def start() -> peer_servers.RunningServer:
        place = Path(tempfile.mkdtemp(dir=folder))
        if programs is not None and kind == "go":
            return closing.enter_context(
                peer_servers.go_server(
                    programs, database=database, folder=place, flags=SERVER_FLAGS, program=programs.maestro
                )
            )
        flags = [*SERVER_FLAGS, *OUR_FLAGS]
        return closing.enter_context(peer_servers.python_server(database=database, folder=place, flags=flags))

    return start


def fill_first(database: peer_postgres.Database, start: Callable[[], peer_servers.RunningServer], *, size: int) -> None:
    """Let a server migrate the database, end it, and add a consumer with one work for every agent."""
    os.kill(start().pid, signal.SIGTERM)

    async def fill() -> None:
        connection = await asyncpg.connect(database.dsn)
        try:
            await connection.execute(CONSUMERS, size)
            await connection.execute(WORKS, size)
            await connection.execute("VACUUM ANALYZE")
        finally:
            await connection.close()

    asyncio.run(fill())


def table(document: Mapping[str, Any]) -> str:
    """Return the table of the page."""
    busy = f" while other work went on (load {document['load']:.0f})" if document["load"] > 1 else ""
    columns = [(str(size), kind) for size in document["sizes"] for kind in document["kinds"]]
    heads = [f"{int(size):,}, {KINDS[kind]}" for size, kind in columns]
    lines = [f"Measured {document['when'][:10]} on {document['cores']} cores{busy}:", ""]
    lines += [f"| agents | {' | '.join(heads)} |", f"|---|{'--:|' * len(heads)}"]
    for name, figures in document["measures"].items():
        values = [figures.get(size, {}).get(kind) for size, kind in columns]
        shown = ["-" if value is None else growth.shown(value) for value in values]
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
        prog="python -m bench.storm", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="1000,10000", help="numbers of agents, comma separated")
    parser.add_argument("--kinds", default="python", help="which servers, comma separated: python, go")
    parser.add_argument("--publish", action="store_true", help="write bench/storm.json and docs/performance.md")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",") if size.strip().isdigit()]
    if not sizes or sizes != sorted(set(sizes)) or sizes[0] < 2:
        parser.error("--sizes needs growing numbers, such as 1000,10000")
    kinds = given.kinds.split(",")
    if not set(kinds) <= set(KINDS):
        parser.error(f"--kinds knows {', '.join(KINDS)}")
    document = measure(sizes, kinds)
    print(table(document))
    if given.publish:
        PUBLISHED.write_text(json.dumps(document, indent=1) + "\n")
        write_page(document)
        sizing.main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
