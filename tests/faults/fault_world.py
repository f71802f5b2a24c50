"""Read what there is at the end of a test, and wait until it is what clients were told."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping

from maestropy.store.dsn import Dsn
from maestropy.transport.grpc.agent import GrpcTransport
from maestropy.transport.grpc.client import GrpcEndpoint
from tests.faults.fault_ledger import Difference, Ledger, Row, World, untold
from tests.faults.fault_parties import LightAgent, Listener
from tests.stack import harness

SETTLE_SECONDS = 40.0
_SHOWN = 20

ROWS = """SELECT id, version, payload -> 'data' -> 'manifests' -> 0 -> 'data' ->> 'k' AS text,
                 deleted_at IS NOT NULL AS deleting, coalesce(status ->> 'sequenceid', '') AS sequence,
                 coalesce((status ->> 'resourceversion')::bigint, 0) AS status_version
          FROM resources"""
PENDING = "SELECT source_id, count(*) FROM events WHERE reconciled_date IS NULL GROUP BY 1"
LAST_WORDS = "SELECT resource_id, count(*) FROM status_events WHERE status_event_type = 'StatusDelete' GROUP BY 1"

# What every server of these tests is told: signs of life that suit a test, and a queue that can be read afterwards.
FLAGS = (
    "--heartbeat-check-interval=500ms",
    "--event-retention=1h",
    "--sweep-interval=1s",
    "--heartbeat-interval=3",
    "--delete-event-republish-interval=5",
)
HEARTBEAT_TIMEOUT_SECONDS = 3.0

Objects = Callable[[], Awaitable[Mapping[str, Mapping[str, str]]]]


def light_agent(
    address: str,
    consumer: str,
    ledger: Ledger,
    *,
    seed: int = 0,
    heartbeat_timeout_seconds: float = HEARTBEAT_TIMEOUT_SECONDS,
) -> LightAgent:
    """Return an agent in memory for a port of a server."""
    endpoint = GrpcEndpoint(url=address, heartbeat_timeout_seconds=heartbeat_timeout_seconds)
    return LightAgent(GrpcTransport(endpoint, consumer=consumer), consumer=consumer, ledger=ledger, seed=seed)


def objects_of(agents: Iterable[LightAgent]) -> Objects:
    """Return how to look into the clusters of light agents."""

    async def look() -> Mapping[str, Mapping[str, str]]:
        return {agent.consumer: dict(agent.objects) for agent in agents}

    return look


async def read(address: Dsn, objects: Objects) -> World:
    """Return what there is."""
    rows = {
        row["id"]: Row(
            version=row["version"],
            text=row["text"],
            deleting=row["deleting"],
            sequence=row["sequence"],
            status_version=row["status_version"],
        )
        for row in await harness.sql(address, ROWS)
    }
    return World(
        rows=rows,
        objects=await objects(),
        pending=dict(map(tuple, await harness.sql(address, PENDING))),
        last_words=dict(map(tuple, await harness.sql(address, LAST_WORDS))),
    )


async def settles(
    ledger: Ledger,
    *,
    address: Dsn,
    objects: Objects,
    listeners: Iterable[Listener] = (),
    seconds: float = SETTLE_SECONDS,
) -> World:
    """Wait until the world is what clients were told; fails with the differences that stay."""
    deadline = time.monotonic() + seconds
    while True:
        world = await read(address, objects)
        found = ledger.differences(world)
        for listener in listeners:
            found += untold(world.rows, listener.sequences)
        if not found:
            return world
        assert not ledger.noticed, explain(found)
        assert time.monotonic() < deadline, explain(found)
        await asyncio.sleep(0.1)


def explain(found: list[Difference]) -> str:
    """Return the first differences as lines."""
    shown = "\n".join(map(str, found[:_SHOWN]))
    return f"{len(found)} differences between what was told and what is:\n{shown}"
