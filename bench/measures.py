"""What is measured. Each measure gets a fresh server and returns figures by name; names end in their unit."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import peer_build
import peer_clients
import peer_servers

_CONSUMERS = tuple(f"cluster{number}" for number in range(10))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One server under load."""

    programs: peer_build.Programs
    server: peer_servers.RunningServer
    folder: Path
    scale: float

    def count(self, full: int) -> int:
        """Return `full` requests, scaled."""
        return max(50, round(full * self.scale))

    def add_consumers(self) -> None:
        for name in _CONSUMERS:
            peer_clients.rest(self.server, "POST", "/consumers", {"name": name})

    def load(self, mode: str, **flags: object) -> dict[str, float]:
        """Run the load generator to its end and return its report; a failed request makes the figure worthless."""
        done = subprocess.run(
            [self.programs.load, f"-mode={mode}", *(f"-{name}={value}" for name, value in flags.items())],
            capture_output=True,
            text=True,
            check=True,
        )
        report: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        if report["errors"]:
            raise RuntimeError(f"{mode}: {report['errors']} requests failed: {done.stderr[-500:]}")
        return report

    def create(self, requests: int, *, size: int, clients: int = 64, ids: str = "ids") -> dict[str, float]:
        connections = min(8, clients)
        return self.load(
            "create",
            grpc=self.server.grpc_addr,
            source="bench",
            consumers=",".join(_CONSUMERS),
            requests=requests,
            seconds=120,
            size=size,
            connections=connections,
            workers=clients // connections,
            ids=self.folder / ids,
        )

    def listen(self, address: str, *, subscribers: int, events: int, **flags: object) -> peer_clients.Lines:
        """Start subscribers and wait until all of them stand."""
        lines = peer_clients.Lines(
            [
                self.programs.load,
                "-mode=subscribe",
                f"-grpc={address}",
                f"-connections={subscribers}",
                f"-requests={events}",
                "-seconds=120",
                *(f"-{name}={value}" for name, value in flags.items()),
            ],
            log=self.folder / "subscribers.log",
        )
        lines.wait(lambda line: "subscribed" in line, what="the subscribers")
        return lines

    def memory(self) -> float:
        """Return the server's resident memory in MB."""
        for line in Path(f"/proc/{self.server.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1000
        raise RuntimeError("no VmRSS")


def creates(bench: Bench) -> dict[str, float]:
    """Durable creates: the answer means the bundle and its event are on disk."""
    bench.add_consumers()
    bench.create(200, size=3000)
    found = {}
    for size, clients, requests in ((3000, 64, 8000), (3000, 1, 1000), (30000, 64, 3000), (30000, 1, 500)):
        report = bench.create(bench.count(requests), size=size, clients=clients)
        found[f"create {size // 1000} KB, {clients} clients, requests/s"] = report["rate"]
        found[f"create {size // 1000} KB, {clients} clients, p99 ms"] = report["p99_ms"]
    return found


def deliveries(bench: Bench) -> dict[str, float]:
    """From publish to the agent's stream, while creating at full speed."""
    bench.add_consumers()
    events = bench.count(3000)
    agents = bench.listen(
        bench.server.broker_addr, subscribers=len(_CONSUMERS), events=events, consumers=",".join(_CONSUMERS)
    )
    with agents:
        created = bench.create(events, size=3000)
        arrived = agents.wait(lambda line: "mode" in line, what="the deliveries", seconds=130)
    return {
        "create 3 KB with 10 agents connected, requests/s": created["rate"],
        "delivered to agents, events/s": arrived["rate"],
        "publish to agent, p50 ms": arrived["p50_ms"],
        "publish to agent, p99 ms": arrived["p99_ms"],
    }


def lists(bench: Bench) -> dict[str, float]:
    """REST lists of one consumer's 600 bundles and of 6,000, half 3 KB and half 49 KB."""
    bench.add_consumers()
    rows = bench.count(6000)
    bench.create(rows // 2, size=3000)
    bench.create(rows - rows // 2, size=49000)
    before = bench.memory()
    found = {}
    one = "size=400&search=consumer_name%3D%27cluster1%27"
    report = bench.load("list", rest=bench.server.rest_url, query=one.replace("400", "600"), requests=5, workers=1)
    found[f"list {rows // 10} bundles, ms"] = report["p50_ms"]
    report = bench.load("list", rest=bench.server.rest_url, query="size=65500", requests=3, workers=1)
    found[f"list {rows} bundles ({report['bytes'] / 3e6:.0f} MB), ms"] = report["p50_ms"]
    found["memory gained by these lists, MB"] = max(0.1, bench.memory() - before)
    return found


def statuses(bench: Bench) -> dict[str, float]:
    """Status reports stored durably and passed on to every subscribed source; each bundle reports once a round."""
    bench.add_consumers()
    bench.create(bench.count(3000), size=3000)
    agents = bench.listen(
        bench.server.broker_addr, subscribers=len(_CONSUMERS), events=0, consumers=",".join(_CONSUMERS)
    )
    found = {}
    with agents:
        for subscribers, full in ((1, 3000), (50, 1000)):
            reports = bench.count(full)
            sources = bench.listen(
                bench.server.grpc_addr, subscribers=subscribers, events=reports * subscribers, source="bench"
            )
            with sources:
                stored = bench.load(
                    "status",
                    grpc=bench.server.broker_addr,
                    source="agent",
                    requests=reports,
                    seconds=120,
                    connections=8,
                    workers=8,
                    ids=bench.folder / "ids",
                )
                told = sources.wait(lambda line: "mode" in line, what="the statuses", seconds=130)
            name = f"{subscribers} subscriber{'s' if subscribers > 1 else ''}"
            found[f"statuses stored, {name}, reports/s"] = stored["rate"]
            found[f"statuses told to {name}, statuses/s"] = told["rate"] / subscribers
            found[f"report to {name}, p99 ms"] = told["p99_ms"]
    return found


def memory(bench: Bench) -> dict[str, float]:
    """Resident memory, idle and after 10,000 bundles went through."""
    bench.add_consumers()
    idle = bench.memory()
    rows = bench.count(10_000)
    bench.create(rows, size=3000)
    return {"memory idle, MB": idle, f"memory after {rows} bundles, MB": bench.memory()}


ALL: dict[str, Callable[[Bench], dict[str, float]]] = {
    "creates": creates,
    "deliveries": deliveries,
    "lists": lists,
    "statuses": statuses,
    "memory": memory,
}
