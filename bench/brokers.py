"""What is measured through Mosquitto: the whole way of a work, and the resync of a large cluster.

The agents are simulated by the load generator: they report every work as available at once, so that what is measured
is server and broker.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import measures, usage
from bench.rig import Report, Rig, Server
from tests import waiting
from tests.peers import peer_postgres, peer_processes

_TOPICS = """
brokerHost: 127.0.0.1:{port}
topics:
  sourceEvents: sources/maestro/consumers/+/sourceevents
  agentEvents: $share/bench/sources/maestro/consumers/+/agentevents
"""


class NoBroker(Exception):
    """Mosquitto is not here."""


def program() -> str:
    """Return the path of Mosquitto."""
    found = shutil.which("mosquitto", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if found is None:
        raise NoBroker("Mosquitto is needed: `apt-get install mosquitto`, or put the program on the PATH")
    return found


@contextlib.contextmanager
def mosquitto(folder: Path) -> Iterator[int]:
    """Run Mosquitto; yields its port. It drops nothing however long a queue gets, so that every work arrives."""
    (port,) = peer_processes.free_ports(1)
    config = folder / "mosquitto.conf"
    config.write_text(
        f"user root\nlistener {port} 127.0.0.1\nallow_anonymous true\n"
        "max_queued_messages 0\nmax_inflight_messages 1000\nset_tcp_nodelay true\nlog_type error\n"
    )
    log = folder / "mosquitto.log"
    with peer_processes.running([program(), "-c", str(config)], log=log):
        waiting.wait_for(lambda: _listens(port), what=f"Mosquitto to listen (see {log})")
        yield port


def _listens(port: int) -> bool:
    # Read, not connected to: a broker would count a visitor.
    return any(f":{port:04X} " in line and " 0A " in line for line in Path("/proc/net/tcp").read_text().splitlines())


@contextlib.contextmanager
def served(
    rig: Rig, kind: str, *, instances: int = 1, database: peer_postgres.Database | None = None
) -> Iterator[tuple[list[Server], int]]:
    """Run a broker and some instances of a server behind it; the database is gone afterwards."""
    folder = rig.place()
    database = database or rig.database()
    with mosquitto(folder) as port, contextlib.ExitStack() as stack:
        config = folder / "broker.yaml"
        config.write_text(_TOPICS.format(port=port))
        servers = []
        for number in range(instances):
            flags = [f"--message-broker-config-file={config}", f"--client-id=bench-{number}"]
            starting = rig.server(kind, database=database, broker="mqtt", flags=flags)
            servers.append(stack.enter_context(starting))
        for server in servers:
            _wait_for_subscription(server)
        yield servers, port
    rig.drop(database)


def _wait_for_subscription(server: Server) -> None:
    """Go says nothing of it at this verbosity; its subscription stands with its health, ours says so."""
    if server.kind == "go":
        time.sleep(1)
        return
    log = server.running.log
    waiting.wait_for(lambda: "subscribed to mqtt broker" in log.read_text(), what=f"a subscription (see {log})")


def end_to_end(rig: Rig, kind: str) -> Report:
    """A work from the client through server and broker to the agent, and its status all the way back."""
    found: Report = {}
    for instances in (1, 3) if kind == "python" else (1,):
        with served(rig, kind, instances=instances) as (servers, port):
            servers[0].add_consumers(measures.CONSUMERS)
            found |= _end_to_end(rig, servers, port=port)
    return found


def _end_to_end(rig: Rig, servers: Sequence[Server], *, port: int) -> Report:
    first = servers[0]
    who = ",".join(measures.CONSUMERS)
    works = rig.count(2000, least=300) if first.kind == "python" else rig.count(1000, least=200)
    to_server = {"grpc": first.running.grpc_addr, "source": "bench", "consumers": who, "size": 3000}
    with first.listening("echo", mqtt=f"127.0.0.1:{port}", consumers=who, workers=20):
        first.load("burst", requests=20, workers=20, **to_server)
        alone = first.load("burst", requests=20, workers=1, **{"in-turn": "true"}, **to_server)
        before = sum(usage.cpu_seconds(server.pid) for server in servers)
        many = first.load("burst", requests=works, connections=8, workers=8, **to_server)
        used = sum(usage.cpu_seconds(server.pid) for server in servers) - before
    name = f"through Mosquitto, {len(servers)} instance{'s' if len(servers) > 1 else ''}"
    return {
        f"{name}, works/s": many["rate"],
        f"{name}, publish to status p50 ms": many["p50_ms"],
        f"{name}, publish to status p99 ms": many["p99_ms"],
        f"{name}, publish to status of a work alone p50 ms": alone["p50_ms"],
        f"{name}, server CPU ms each": used * 1000 / works,
    }


def resync(rig: Rig, kind: str) -> Report:
    """An agent that comes with nothing gets all works of its cluster through the broker."""
    works = rig.count(10_000, least=400)

    def fill(server: Server) -> None:
        server.add_consumers(measures.ONE)
        server.create(works, consumers=measures.ONE)

    database, ids = rig.filled("resync through Mosquitto", fill)
    with served(rig, kind, database=database) as (servers, port):
        report, gained, used = measures.resynced(servers[0], ids, mqtt=f"127.0.0.1:{port}", seconds=600)
    name = f"resync of {works:,} works through Mosquitto"
    return {
        f"{name}, ms": report["seconds"] * 1000,
        f"{name}, MB": report["bytes"] / 1e6,
        f"{name}, server CPU ms": used * 1000,
        f"{name}, server memory gained MB": gained,
    }
