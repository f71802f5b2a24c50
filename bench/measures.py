"""What is measured of a server. A measure runs one kind of server once and returns figures by name.

Names end in their unit: figures in `/s` are better when they are larger, all others when they are smaller.
"""

from collections.abc import Sequence

from bench import usage
from bench.rig import Report, Rig, Server

CONSUMERS = tuple(f"cluster{number}" for number in range(10))
ONE = CONSUMERS[:1]


def creates(rig: Rig, kind: str) -> Report:
    """Durable creates: the answer means that the bundle and its event are on disk."""
    found: Report = {}
    with rig.server(kind) as server:
        server.add_consumers(CONSUMERS)
        found["server memory idle, MB"] = usage.memory_mb(server.pid)
        server.create(200, consumers=CONSUMERS)
        for size, clients, full in ((3000, 64, 6000), (3000, 1, 600), (30000, 64, 2000)):
            requests = rig.count(full, least=200)
            with usage.counted(server.pid) as used:
                report = server.create(requests, consumers=CONSUMERS, size=size, clients=clients)
            name = f"create {size // 1000} KB, {clients} client{'s' if clients > 1 else ''}"
            found[f"{name}, creates/s"] = report["rate"]
            found[f"{name}, p99 ms"] = report["p99_ms"]
            found[f"{name}, server CPU ms each"] = used[0] * 1000 / requests
        found["server memory after these creates, MB"] = usage.memory_mb(server.pid)
    return found


def sdk(rig: Rig, kind: str) -> Report:
    """Creates by the Go SDK's own client, inside its limit of 50 a second and without it."""
    with rig.server(kind) as server:
        server.add_consumers(CONSUMERS)
        server.create(200, consumers=CONSUMERS)
        common = {"grpc": server.running.grpc_addr, "source": "sdk", "consumers": ",".join(CONSUMERS), "size": 3000}
        # Beyond the burst of 100 that it lets through at once.
        limited = server.load("sdk", requests=rig.count(350, least=200), workers=64, **common)
        free = server.load("sdk", requests=rig.count(3000, least=200), workers=64, limit=1_000_000, **common)
    return {
        "create 3 KB by the Go SDK as it comes, creates/s": limited["rate"],
        "create 3 KB by the Go SDK without its limit, creates/s": free["rate"],
    }


def lists(rig: Rig, kind: str) -> Report:
    """REST lists of one consumer's 600 bundles and of all 6,000, half 3 KB and half 49 KB."""
    rows = rig.count(6000, least=600)

    def fill(server: Server) -> None:
        server.add_consumers(CONSUMERS)
        for size in (3000, 49000):
            server.create(rows // 2, consumers=CONSUMERS, size=size)

    database, _ = rig.filled("lists", fill)
    found: Report = {}
    with rig.server(kind, database=database) as server, usage.Peak(server.pid) as peak:
        before = peak.mb
        for wanted, query, requests in (
            (rows // 10, f"size={rows // 10}&search=consumer_name%3D%27cluster1%27", 7),
            (rows, "size=65500", 3),
        ):
            with usage.counted(server.pid) as used:
                report = server.load("list", rest=server.running.rest_url, query=query, requests=requests, workers=1)
            found[f"list {wanted:,} bundles, ms"] = report["p50_ms"]
            found[f"list {wanted:,} bundles, server CPU ms"] = used[0] * 1000 / requests
    found["server memory gained by these lists, MB"] = max(0.1, peak.mb - before)
    rig.drop(database)
    return found


def deliveries(rig: Rig, kind: str) -> Report:
    """From publish to the agent's stream, while creating at full speed."""
    events = rig.count(3000)
    with rig.server(kind) as server:
        server.add_consumers(CONSUMERS)
        who = {"grpc": server.running.broker_addr, "consumers": ",".join(CONSUMERS)}
        with (
            server.listening("subscribe", connections=len(CONSUMERS), requests=events, **who) as agents,
            usage.counted(server.pid) as used,
        ):
            created = server.create(events, consumers=CONSUMERS)
            arrived = agents.wait(lambda line: "mode" in line, what="the deliveries", seconds=120)
    return {
        "create 3 KB with 10 agents connected, creates/s": created["rate"],
        "delivered to agents, works/s": arrived["rate"],
        "publish to agent, p50 ms": arrived["p50_ms"],
        "publish to agent, p99 ms": arrived["p99_ms"],
        "create and deliver, server CPU ms each": used[0] * 1000 / events,
    }


def statuses(rig: Rig, kind: str) -> Report:
    """Status reports stored durably and passed on to every subscribed source."""
    found: Report = {}
    with rig.server(kind) as server:
        server.add_consumers(CONSUMERS)
        server.create(rig.count(3000), consumers=CONSUMERS)
        for subscribers, full in ((1, 3000), (50, 1000)):
            reports = rig.count(full)
            found |= _statuses(server, subscribers=subscribers, reports=reports)
    return found


def _statuses(server: Server, *, subscribers: int, reports: int) -> Report:
    to_sources = {"grpc": server.running.grpc_addr, "source": "bench"}
    to_agents = {"grpc": server.running.broker_addr, "source": "agent"}
    everything = reports * subscribers
    with (
        server.listening("subscribe", connections=subscribers, requests=everything, **to_sources) as sources,
        usage.counted(server.pid) as used,
    ):
        # 32 at once: the Go server takes two of its 50 database connections for each, and stands still with 50 or more.
        stored = server.load("status", requests=reports, connections=8, workers=4, ids=server.ids, **to_agents)
        told = sources.wait(lambda line: "mode" in line, what="the statuses", seconds=120)
    name = f"statuses to {subscribers} subscriber{'s' if subscribers > 1 else ''}"
    return {
        f"{name}, stored/s": stored["rate"],
        f"{name}, told to all/s": told["rate"] / subscribers,
        f"{name}, report to source p50 ms": told["p50_ms"],
        f"{name}, report to source p99 ms": told["p99_ms"],
        f"{name}, server CPU ms each": used[0] * 1000 / reports,
    }


def resync(rig: Rig, kind: str) -> Report:
    """An agent that comes with nothing gets all works of its cluster."""
    works = rig.count(5000, least=500)
    database, ids = rig.filled("resync", lambda server: _fill(server, ONE, works=works))
    with rig.server(kind, database=database) as server:
        report, peak, used = resynced(server, ids, grpc=server.running.broker_addr)
    rig.drop(database)
    return {
        f"resync of {works:,} works, ms": report["seconds"] * 1000,
        f"resync of {works:,} works, server CPU ms": used * 1000,
        f"resync of {works:,} works, server memory gained MB": peak,
    }


def resynced(server: Server, ids: object, **where: object) -> tuple[Report, float, float]:
    """Let agents that have nothing resync; return the report, the memory the server gained and its CPU seconds."""
    before = usage.memory_mb(server.pid)
    with usage.Peak(server.pid) as peak, usage.counted(server.pid) as used:
        report = server.load("sync", ids=ids, **where)
    return report, max(0.1, peak.mb - before), used[0]


def reconnect(rig: Rig, kind: str) -> Report:
    """All agents come back at the same moment, as after a restart of the server; each lacks one of its ten works."""
    agents = rig.count(1000, least=100)
    consumers = [f"cluster{number}" for number in range(agents)]
    database, ids = rig.filled("reconnect", lambda server: _fill(server, consumers, works=10 * agents))
    # Elsewhere the heart beats every second, because the Go server greets a source with its first beat.
    with rig.server(kind, database=database, flags=["--heartbeat-check-interval=10s"]) as server:
        database_cpu = usage.family_cpu_seconds(rig.postgres_pid)
        with usage.counted(server.pid) as used:
            report = server.load("sync", ids=ids, lacking=1, grpc=server.running.broker_addr)
        database_cpu = usage.family_cpu_seconds(rig.postgres_pid) - database_cpu
        work = usage.database_work(database)
    rig.drop(database)
    name = f"reconnect of {agents:,} agents"
    return {
        f"{name}, until all are in sync ms": report["seconds"] * 1000,
        f"{name}, p50 ms": report["p50_ms"],
        f"{name}, server CPU ms each": used[0] * 1000 / agents,
        f"{name}, transactions each": work.transactions / agents,
        f"{name}, rows read each": work.rows_read / agents,
        f"{name}, PostgreSQL CPU ms each": max(0.01, database_cpu * 1000 / agents),
    }


def _fill(server: Server, consumers: Sequence[str], *, works: int) -> None:
    server.add_consumers(consumers)
    server.create(works, consumers=consumers)
