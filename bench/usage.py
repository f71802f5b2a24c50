"""What processes and databases have used up: CPU seconds, memory, transactions. Reads only, measures nothing itself."""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import asyncpg

from tests.peers import peer_postgres

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return what a process has used, in user and system mode, with the children it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICK


def family_cpu_seconds(pid: int) -> float:
    """Return what a process and those of its children that still live have used."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = cpu_seconds(pid)
    for child in children:
        try:
            found += cpu_seconds(int(child))
        except OSError:
            continue  # it ended while we looked
    return found


def run_seconds(pid: int) -> float:
    """Return how long the threads of a process have run, to the nanosecond; what has ended is not counted."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9


def family_run_seconds(pid: int) -> float:
    """Return the same of a process and its children."""
    found = run_seconds(pid)
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            found += run_seconds(int(child))
        except OSError:
            continue  # it ended while we looked
    return found


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    raise RuntimeError(f"process {pid} has no VmRSS")


class Peak:
    """The most memory a process had while the block ran; looked at twenty times a second."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.mb = memory_mb(pid)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            try:
                self.mb = max(self.mb, memory_mb(self._pid))
            except OSError:
                return


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a database did since it was made."""

    transactions: int
    rows_read: int


_WORK = """
SELECT xact_commit + xact_rollback AS transactions, tup_fetched + tup_returned AS rows_read
FROM pg_stat_database WHERE datname = $1
"""


def database_work(database: peer_postgres.Database) -> Work:
    """End all sessions of a database, which makes them hand in their counts, and return the sum."""

    async def ask() -> Work:
        elsewhere = database.dsn.rpartition("/")[0] + "/postgres"
        connection = await asyncpg.connect(elsewhere)
        try:
            await connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1", database.name
            )
            row = await connection.fetchrow(_WORK, database.name)
        finally:
            await connection.close()
        return Work(**{name: int(value) for name, value in row.items()})

    return asyncio.run(ask())


@contextmanager
def counted(pid: int) -> Iterator[list[float]]:
    """Put the CPU seconds that a process uses in the block into the list, when the block ends."""
    used: list[float] = []
    before = cpu_seconds(pid)
    yield used
    used.append(cpu_seconds(pid) - before)
