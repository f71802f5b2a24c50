"""Runs PgBouncer, a real connection pooler, before a PostgreSQL of the test's own.

Where the program is missing and we may install it, Debian's package is taken; its service is not started.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from maestropy.store.dsn import Dsn
from tests.peers.peer_processes import end, free_ports, mortal, tail
from tests.peers.postgres.postgres_servers import DATABASE, USER, PostgresServer
from tests.waiting import wait_for

PLACES = ":/usr/sbin:/usr/local/sbin"


def program() -> str:
    """Return the path of PgBouncer; skips the test when there is none."""
    places = os.environ.get("PATH", "") + PLACES
    path = shutil.which("pgbouncer", path=places) or installed(places)
    if path is None:
        pytest.skip("PgBouncer is needed: `apt-get install pgbouncer`, or put the program on the PATH")
    return path


def installed(places: str) -> str | None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    # RUNLEVEL=1 keeps the package from starting its service.
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for command in (
        ["apt-get", "install", "-y", "--no-install-recommends", "pgbouncer"],
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "--no-install-recommends", "pgbouncer"],
    ):
        subprocess.run(command, env=quiet, capture_output=True, check=False, timeout=120)
        path = shutil.which("pgbouncer", path=places)
        if path is not None:
            return path
    return None


@dataclass(kw_only=True)
class PgBouncer:
    """A pooler that can be killed and started again on the same port."""

    server: PostgresServer
    mode: str
    backends: int
    port: int = field(default_factory=lambda: free_ports(1)[0])
    process: subprocess.Popen[bytes] | None = None

    @property
    def folder(self) -> Path:
        return self.server.installed.folder / f"pgbouncer-{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "pgbouncer.log"

    @property
    def dsn(self) -> Dsn:
        """The address of the database behind it."""
        return replace(self.server.dsn, port=self.port)

    def lead_to(self, server: PostgresServer) -> None:
        """Lead to another server from now on; clients stay connected."""
        assert self.process is not None
        self._write_config(server)
        self.process.send_signal(signal.SIGHUP)

    def start(self) -> None:
        """Start it and wait until it listens."""
        config = self._write_config(self.server)
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [*mortal(), program(), str(config)],
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                **self.server.installed.identity(),
            )
        wait_for(self._listens, what=f"PgBouncer:\n{tail(self.log)}")

    def _write_config(self, server: PostgresServer) -> Path:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "users.txt").write_text(f'"{USER}" ""\n')
        config = self.folder / "pgbouncer.ini"
        config.write_text(
            f"[databases]\n{DATABASE} = host=127.0.0.1 port={server.port} dbname={DATABASE}\n"
            "[pgbouncer]\nlisten_addr = 127.0.0.1\n"
            f"listen_port = {self.port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {self.folder}/users.txt\n"
            f"pool_mode = {self.mode}\ndefault_pool_size = {self.backends}\nmax_client_conn = 200\n"
            "server_login_retry = 1\n"
        )
        return config

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            end(self.process)

    def _listens(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"PgBouncer ended:\n{tail(self.log)}"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False


@contextlib.contextmanager
def pgbouncer(server: PostgresServer, *, mode: str, backends: int = 3) -> Iterator[PgBouncer]:
    """Run a pooler with few backends, so that clients have to share them."""
    pooler = PgBouncer(server=server, mode=mode, backends=backends)
    pooler.start()
    try:
        yield pooler
    finally:
        pooler.stop()
