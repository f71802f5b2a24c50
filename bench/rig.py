"""What a measure is given: programs, a PostgreSQL, a place for files, and the servers it asks for.

Every run gets a database of its own on the same PostgreSQL, with fsync on. Rows that a measure only needs to be there
are put in once and copied for each run, so both servers find the very same ones.
"""

import asyncio
import contextlib
import itertools
import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from tests.peers import kube_build, kube_cluster, peer_build, peer_clients, peer_postgres, peer_servers
from tests.peers.peer_processes import mortal

Report = dict[str, float]

_numbers = itertools.count(1)


@dataclass(kw_only=True)
class Rig:
    """Everything that outlives a single run."""

    programs: peer_build.Programs
    postgres: peer_postgres.Cluster
    postgres_pid: int
    folder: Path
    scale: float
    closing: contextlib.ExitStack
    say: Callable[[str], None]
    _filled: dict[str, tuple[peer_postgres.Database, Path]] = field(default_factory=dict)
    _cluster: kube_cluster.KubeCluster | None = None

    def count(self, full: int, *, least: int = 50) -> int:
        """Return `full`, scaled."""
        return min(full, max(least, round(full * self.scale)))

    def place(self) -> Path:
        """Return a new folder."""
        folder = self.folder / str(next(_numbers))
        folder.mkdir()
        return folder

    def database(self, *, like: peer_postgres.Database | None = None) -> peer_postgres.Database:
        """Make a database: empty, or a copy of one that nobody uses now."""
        name = f"bench{next(_numbers)}"
        if like is None:
            return self.postgres.create(name)
        _execute(like, f'CREATE DATABASE {name} TEMPLATE "{like.name}"')
        return peer_postgres.Database(port=like.port, name=name)

    def drop(self, database: peer_postgres.Database) -> None:
        """Remove a database, and who is still connected to it; one that cannot be removed goes with the folder."""
        with contextlib.suppress(OSError, asyncpg.PostgresError):
            _execute(database, f'DROP DATABASE IF EXISTS "{database.name}" WITH (FORCE)')

    def filled(self, key: str, fill: Callable[["Server"], None]) -> tuple[peer_postgres.Database, Path]:
        """Return a copy of a database into which `fill` has put rows, and the file in which it wrote their ids."""
        if key not in self._filled:
            self.say(f"putting in the rows of {key}")
            database = self.database()
            with self.server("python", database=database) as server:
                fill(server)
                ids = server.ids
            _execute(database, "UPDATE events SET reconciled_date = now()", inside=True)
            # As autovacuum leaves it, so that no run depends on when it came by.
            _execute(database, "VACUUM ANALYZE", inside=True)
            self._filled[key] = (database, ids)
        original, ids = self._filled[key]
        return self.database(like=original), ids

    @contextlib.contextmanager
    def server(
        self,
        kind: str,
        *,
        database: peer_postgres.Database | None = None,
        broker: str = "grpc",
        flags: Sequence[str] = (),
    ) -> Iterator["Server"]:
        """Run a server on its own, or on a given database."""
        folder = self.place()
        own = self.database() if database is None else None
        where = database or own
        assert where is not None
        quiet = ["-v=1", *flags]
        serving = (
            peer_servers.go_server(
                self.programs,
                database=where,
                folder=folder,
                flags=quiet,
                broker=broker,
                program=self.programs.maestro,
            )
            if kind == "go"
            else peer_servers.python_server(database=where, folder=folder, flags=quiet, broker=broker)
        )
        try:
            with serving as running:
                yield Server(rig=self, kind=kind, running=running, folder=folder)
        finally:
            if own is not None:
                self.drop(own)

    def cluster(self) -> kube_cluster.KubeCluster:
        """Return the Kubernetes cluster of this run; both agents work on the same API server."""
        if self._cluster is None:
            self.say("starting the Kubernetes API server")
            control_plane = kube_build.control_plane(self.say)
            starting = kube_cluster.kube_cluster(control_plane, folder=self.place(), durable=True)
            self._cluster = self.closing.enter_context(starting)
        return self._cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server under load."""

    rig: Rig
    kind: str
    running: peer_servers.RunningServer
    folder: Path

    @property
    def pid(self) -> int:
        return self.running.pid

    @property
    def ids(self) -> Path:
        """The bundles that `create` has made."""
        return self.folder / "ids"

    def add_consumers(self, names: Sequence[str]) -> None:
        for name in names:
            peer_clients.rest(self.running, "POST", "/consumers", {"name": name})

    def load(self, mode: str, **flags: object) -> Report:
        """Run the load generator to its end and return its report; a failed request makes the figure worthless."""
        command: list[str | Path] = [*mortal(), self.rig.programs.load, f"-mode={mode}", "-seconds=120"]
        done = subprocess.run(
            [*command, *(f"-{name}={value}" for name, value in flags.items())],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{mode}: the load generator failed: {done.stderr[-500:]}")
        report: Report = json.loads(done.stdout.splitlines()[-1])
        if report["errors"]:
            raise RuntimeError(f"{mode}: {report['errors']} requests failed: {done.stderr[-500:]}")
        return report

    def create(self, requests: int, *, consumers: Sequence[str], size: int = 3000, clients: int = 64) -> Report:
        connections = min(8, clients)
        return self.load(
            "create",
            grpc=self.running.grpc_addr,
            source="bench",
            consumers=",".join(consumers),
            requests=requests,
            size=size,
            connections=connections,
            workers=clients // connections,
            ids=self.ids,
        )

    @contextlib.contextmanager
    def listening(self, mode: str, **flags: object) -> Iterator[peer_clients.Lines]:
        """Start subscribers, or agents, and wait until all of them stand."""
        given = [f"-{name}={value}" for name, value in flags.items()]
        command = [*mortal(), self.rig.programs.load, f"-mode={mode}", "-seconds=600", *given]
        with peer_clients.Lines(command, log=self.folder / f"{mode}.log") as lines:
            lines.wait(lambda line: "subscribed" in line, what=f"the {mode}", seconds=60)
            yield lines


def _execute(database: peer_postgres.Database, statement: str, *, inside: bool = False) -> None:
    where = database.dsn if inside else database.dsn.rpartition("/")[0] + "/postgres"

    async def go() -> None:
        connection = await asyncpg.connect(where)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(go())
