"""How long until every due deletion has been offered to its agent again?

    python -m bench.delete_recovery [--deletions 200000] [--consumers 200] [--batch 1000]

Agents that never confirm are connected to one server process on a real PostgreSQL with fsync on; then the deletions are
put into the database, all of them an hour old and without a schedule. Counted is what the agents receive.
"""

import argparse
import asyncio
import contextlib
import json
import resource
import statistics
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import asyncpg
import grpc.aio

from maestropy.sandbox.postgres import EmbeddedPostgres
from maestropy.sandbox.server_process import ServerProcess
from maestropy.store.dsn import Dsn
from maestropy.wire.events import event, grpc_binding

LIMIT_SECONDS = 3600.0
AT_ONCE = 20_000
CONSUMERS = """
INSERT INTO consumers (id, name, created_at, updated_at)
SELECT 'c' || g, 'consumer-' || g, now(), now() FROM generate_series(0, $1::int - 1) g"""
DELETIONS = """
INSERT INTO resources (id, created_at, updated_at, deleted_at, name, source, consumer_name, version, type, payload)
SELECT 'work-' || g, now() - interval '1 day', now() - interval '1 day', now() - interval '1 hour', 'work-' || g,
       'bench', 'consumer-' || g % $3::int, 1, '', $4::jsonb
FROM generate_series($1::int, $2::int - 1) g"""
DOCUMENT = {
    "id": "e",
    "source": "bench",
    "type": event.SPEC_CREATE,
    "specversion": "1.0",
    "metadata": {"name": "work", "labels": {"team": "web"}},
    "data": {
        "manifests": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "settings", "namespace": "default"},
                "data": {"text": "x" * 700},
            }
        ]
    },
}


class Fleet:
    """What the agents have received."""

    def __init__(self) -> None:
        self.offered: dict[str, int] = {}
        self.at: list[float] = []

    async def listen(self, channel: Any, consumer: str) -> None:
        """Be the agent of one consumer, and never confirm."""
        wanted = grpc_binding.Subscription(cluster_name=consumer, data_type=event.MANIFEST_BUNDLES)
        call = channel.unary_stream(grpc_binding.SUBSCRIBE_METHOD)(grpc_binding.encode_subscription(wanted))
        async for message in call:
            received = grpc_binding.decode_event(message)
            if received.type == event.SPEC_DELETE:
                id_ = received.text(event.RESOURCE_ID)
                if id_ not in self.offered:
                    self.at.append(time.perf_counter())
                self.offered[id_] = self.offered.get(id_, 0) + 1


@contextlib.asynccontextmanager
async def connected(address: str, consumers: int) -> AsyncIterator[Fleet]:
    """Connect one agent for each consumer."""
    fleet = Fleet()
    async with contextlib.AsyncExitStack() as stack:
        channels = [
            await stack.enter_async_context(
                grpc.aio.insecure_channel(address, options=(("grpc.use_local_subchannel_pool", number),))
            )
            for number in range(2)
        ]
        tasks = [
            asyncio.create_task(
                fleet.listen(channels[number % len(channels)], f"consumer-{number}"), name=f"agent {number}"
            )
            for number in range(consumers)
        ]
        try:
            yield fleet
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def fill(address: Dsn, *, deletions: int, consumers: int) -> None:
    """Add the deletions, in one transaction that ends at once."""
    connection = await asyncpg.connect(**address.connect_kwargs())
    try:
        async with connection.transaction():
            for start in range(0, deletions, AT_ONCE):
                end = min(deletions, start + AT_ONCE)
                await connection.execute(DELETIONS, start, end, consumers, json.dumps(DOCUMENT))
    finally:
        await connection.close()


def metric(port: int, name: str) -> float:
    """Return the sum of a metric's series."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
        lines = response.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


async def measure(*, deletions: int, consumers: int, batch: int, folder: Path) -> dict[str, float]:
    """Return the figures of one run."""
    async with EmbeddedPostgres(folder / "data") as address:
        flags = (f"--delete-event-republish-batch-size={batch}", "-v=0")
        async with ServerProcess(address, log=folder / "server.log", flags=flags) as server:
            connection = await asyncpg.connect(**address.connect_kwargs())
            await connection.execute(CONSUMERS, consumers)
            await connection.close()
            async with connected(f"127.0.0.1:{server.ports.agents}", consumers) as fleet:
                await asyncio.sleep(2)
                await fill(address, deletions=deletions, consumers=consumers)
                started = time.perf_counter()
                while len(fleet.offered) < deletions and time.perf_counter() - started < LIMIT_SECONDS:
                    await asyncio.sleep(0.2)
                seconds = time.perf_counter() - started
            rounds = await asyncio.to_thread(
                metric, server.ports.metrics, 'delete_recovery_round_duration_seconds_count{outcome="committed"}'
            )
            working = await asyncio.to_thread(
                metric, server.ports.metrics, 'delete_recovery_round_duration_seconds_sum{outcome="committed"}'
            )
    return {
        "offered": len(fleet.offered),
        "offered more than once": sum(count > 1 for count in fleet.offered.values()),
        "seconds": seconds,
        "a second": len(fleet.offered) / seconds,
        "rounds": rounds,
        "mean round ms": 1000 * working / max(1.0, rounds),
        "half of them offered after, s": statistics.median(fleet.at) - started if fleet.at else 0.0,
        "server CPU s, this process included": sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]),
    }


def main(words: Sequence[str] | None = None) -> None:
    """Measure once, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.delete_recovery", description=__doc__)
    parser.add_argument("--deletions", type=int, default=200_000)
    parser.add_argument("--consumers", type=int, default=200)
    parser.add_argument("--batch", type=int, default=1000)
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="maestropy-bench-") as place:
        figures = asyncio.run(
            measure(deletions=options.deletions, consumers=options.consumers, batch=options.batch, folder=Path(place))
        )
    for name, figure in figures.items():
        print(f"{name:40} {figure:12,.1f}")


if __name__ == "__main__":
    main()
