"""What do notifications cost, one for each event or one for a batch, with 1, 10 and 100 listening instances?

    python -m bench.notifications [--seconds 5]

Four writers create resources in transactions of 1 and of 32 on a real PostgreSQL with fsync on, while other connections
listen, as every server instance does. One for each event is what happens while a Go server is there, so a row of such a
server is the only difference. Both ways alternate, three rounds each; the middle one counts.
"""

import argparse
import asyncio
import contextlib
import statistics
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
from rich.console import Console
from rich.table import Table

from bench import usage
from maestropy.sandbox.postgres import EmbeddedPostgres
from maestropy.store import instances, resources, rows
from maestropy.store.dsn import Dsn
from maestropy.store.migrations import migrate
from maestropy.store.postgres import pool
from maestropy.wire.events import stored_event

WRITERS = 4
ROUNDS = 3
LISTENERS = (1, 10, 100)
BATCHES = (1, 32)
PARTS = stored_event.StoredParts(
    envelope=b'{"specversion":"1.0"}', metadata=b'{"name":"w"}', data=b'{"text":"' + b"x" * 700 + b'"}'
)


@contextlib.asynccontextmanager
async def listening(address: Dsn, count: int) -> AsyncIterator[list[int]]:
    """Listen on `count` connections, and count the notifications."""
    received = [0]

    def count_one(*_: Any) -> None:
        received[0] += 1

    connections = [await asyncpg.connect(**address.connect_kwargs()) for _ in range(count)]
    try:
        for connection in connections:
            await connection.add_listener("events", count_one)
        yield received
    finally:
        for connection in connections:
            await connection.close()


async def write(database: pool.Database, *, batch: int, until: float) -> int:
    """Create resources in transactions of `batch` until a time; return how many."""
    written = 0
    while time.perf_counter() < until:
        specs = [
            rows.NewSpec(id=id_, source="bench", consumer="c", version=1, parts=PARTS, event_id=str(uuid.uuid4()))
            for id_ in (str(uuid.uuid4()) for _ in range(batch))
        ]
        async with database.connection() as connection:
            written += len(await resources.insert_new(connection, specs, now=datetime.now(UTC)))
    return written


async def one_round(database: pool.Database, postmaster: int, *, batch: int, seconds: float) -> tuple[float, float]:
    """Return the writes per second, and the CPU milliseconds of PostgreSQL for each of them."""
    cpu, started = usage.family_cpu_seconds(postmaster), time.perf_counter()
    counts = await asyncio.gather(*(write(database, batch=batch, until=started + seconds) for _ in range(WRITERS)))
    took, used = time.perf_counter() - started, usage.family_cpu_seconds(postmaster) - cpu
    return sum(counts) / took, 1000 * used / sum(counts)


async def set_go_server(database: pool.Database, *, is_there: bool) -> None:
    """Add or remove the row of a Go server."""
    async with database.connection() as connection:
        if is_there:
            await instances.write_heartbeat(connection, "go", now=datetime.now(UTC), ready=True)
        else:
            await connection.execute("DELETE FROM server_instances WHERE id = 'go'")


async def measure(folder: Path, *, seconds: float) -> Table:
    """Return the table of all figures."""
    table = Table(
        "listening", "in one transaction", "each: writes/s", "batch: writes/s", "ratio", "each: CPU ms", "batch: CPU ms"
    )
    async with EmbeddedPostgres(folder / "data") as address:
        await migrate.migrate(address)
        database = await pool.connect(address, max_connections=WRITERS)
        postmaster = int((folder / "data" / "postgres" / "postmaster.pid").read_text().split()[0])
        async with database.connection() as connection:
            await connection.execute(
                "INSERT INTO consumers (id, name, created_at, updated_at) VALUES ('c', 'c', now(), now())"
            )
        for count in LISTENERS:
            for batch in BATCHES:
                figures: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
                for number in range(2 * ROUNDS):
                    is_go = number % 2 == 0
                    await set_go_server(database, is_there=is_go)
                    async with listening(address, count):
                        figures[is_go].append(await one_round(database, postmaster, batch=batch, seconds=seconds))
                each, once = (
                    [statistics.median(column) for column in zip(*figures[go], strict=True)] for go in (True, False)
                )
                table.add_row(
                    str(count),
                    str(batch),
                    f"{each[0]:,.0f}",
                    f"{once[0]:,.0f}",
                    f"{once[0] / each[0]:.2f}",
                    f"{each[1]:.2f}",
                    f"{once[1]:.2f}",
                )
        await database.close()
    return table


def main(words: Sequence[str] | None = None) -> None:
    """Measure once, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.notifications", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each round writes")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="maestropy-bench-") as place:
        Console().print(asyncio.run(measure(Path(place), seconds=options.seconds)))


if __name__ == "__main__":
    main()
