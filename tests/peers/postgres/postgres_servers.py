"""PostgreSQL servers on loopback TCP ports that tests kill, freeze and promote; a pair replicates by streaming."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maestropy.sandbox import os_account as accounts
from maestropy.store.dsn import Dsn, Host
from tests.peers.peer_processes import end, free_ports, mortal, tail
from tests.waiting import wait_for

USER = "postgres"
DATABASE = "maestro"


@dataclass(kw_only=True)
class Installation:
    """PostgreSQL's programs, run by an account that is not root, in a directory of that account."""

    folder: Path
    account: accounts.Account
    programs: Path

    def run(self, program: str, *arguments: str) -> str:
        """Run a program to its end and return its output."""
        done = subprocess.run(
            [str(self.programs / program), *arguments],
            capture_output=True,
            check=False,
            text=True,
            cwd=self.folder,
            env=self.environ(),
            **self.identity(),
        )
        assert done.returncode == 0, f"{program} failed: {done.stderr}"
        return str(done.stdout)

    def environ(self) -> dict[str, str]:
        return {name: text for name, text in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}

    def identity(self) -> dict[str, Any]:
        if self.account.is_ours:
            return {}
        return {"user": self.account.uid, "group": self.account.gid, "extra_groups": []}


@dataclass(kw_only=True)
class PostgresServer:
    """One PostgreSQL server."""

    name: str
    installed: Installation
    port: int = field(default_factory=lambda: free_ports(1)[0])
    process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.installed.folder / self.name

    @property
    def log(self) -> Path:
        return self.installed.folder / f"{self.name}.log"

    @property
    def host(self) -> Host:
        return Host("127.0.0.1", self.port)

    @property
    def dsn(self) -> Dsn:
        """The address of its Maestro database."""
        return Dsn(host=self.host.name, port=self.port, user=USER, database=DATABASE, sslmode="disable")

    def start(self, settings: Mapping[str, str] | None = None) -> None:
        """Start it and wait until it accepts connections."""
        chosen = {"fsync": "off", "max_connections": "100", "wal_level": "replica", **(settings or {})}
        options = [part for name, text in chosen.items() for part in ("-c", f"{name}={text}")]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [
                    *(*mortal(), self.installed.programs / "postgres", "-D", str(self.data)),
                    *("-h", "127.0.0.1", "-p", str(self.port), "-k", "", *options),
                ],
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                cwd=self.installed.folder,
                env=self.installed.environ(),
                **self.installed.identity(),
            )
        wait_for(self._accepts, what=f"PostgreSQL {self.name}:\n{tail(self.log)}")

    def _accepts(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"PostgreSQL {self.name} ended:\n{tail(self.log)}"
        ready = [str(self.installed.programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(ready, check=False).returncode == 0

    def sql(self, statement: str, *, database: str = "postgres") -> str:
        """Run a statement, and return what it yields."""
        address = ("-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", database)
        return self.installed.run("psql", *address, "-X", "-A", "-t", "-c", statement).strip()

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self.process is not None
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(10)

    def freeze(self) -> None:
        """Let it answer nothing any more; connections stay open."""
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def detach(self) -> None:
        """Let a standby receive nothing any more."""
        self.sql("ALTER SYSTEM SET primary_conninfo = ''")
        self.sql("SELECT pg_reload_conf()")
        wait_for(lambda: self.sql("SELECT count(*) FROM pg_stat_wal_receiver") == "0", what="the end of replication")

    def promote(self) -> None:
        """Make a standby the primary."""
        self.installed.run("pg_ctl", "promote", "-w", "-D", str(self.data))

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            for pid in self._processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            self.process.send_signal(signal.SIGINT)
            end(self.process)

    def _processes(self) -> list[int]:
        """Return the postmaster and its children."""
        assert self.process is not None
        pid = self.process.pid
        with contextlib.suppress(OSError):
            return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
        return []


@contextlib.contextmanager
def installation() -> Iterator[Installation]:
    """Yield PostgreSQL's programs and a directory for data."""
    # Not below pytest's own folder, which PostgreSQL's account may not enter.
    folder = Path(tempfile.mkdtemp(prefix="peer-postgres-"))
    try:
        account = accounts.choose(folder / "none")
        if not account.is_ours:
            os.chown(folder, account.uid, account.gid)
        yield Installation(
            folder=folder, account=account, programs=accounts.programs(account, version=None, runtime=folder)
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def single(installed: Installation, name: str = "single") -> Iterator[PostgresServer]:
    """Run a server with an empty database."""
    server = PostgresServer(name=name, installed=installed)
    installed.run("initdb", "-D", str(server.data), "-U", USER, "--auth=trust", "--encoding=UTF8", "--no-instructions")
    try:
        server.start()
        server.sql(f"CREATE DATABASE {DATABASE}")
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def pair(installed: Installation, *, is_synchronous: bool = True) -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """Run a primary, and a standby that has every transaction before its client is told that it is committed."""
    with single(installed, "primary") as primary:
        standby = PostgresServer(name="standby", installed=installed)
        installed.run(
            *("pg_basebackup", "-h", "127.0.0.1", "-p", str(primary.port), "-U", USER),
            *("-D", str(standby.data), "-R", "-X", "stream", "--checkpoint=fast"),
        )
        try:
            standby.start()
            if is_synchronous:
                primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
                primary.sql("SELECT pg_reload_conf()")
            sync = f"SELECT count(*) FROM pg_stat_replication WHERE (sync_state = 'sync') = {is_synchronous}"
            wait_for(lambda: primary.sql(sync) == "1", what="replication")
            yield primary, standby
        finally:
            standby.stop()
