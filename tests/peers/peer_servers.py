"""Starts a Maestro server, the Go one or ours, with the same flags on a database of its own.

What a test may know of a server is `Server`; everything else about the two is told apart here.
"""

import contextlib
import functools
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.peers.peer_build import Programs
from tests.peers.peer_postgres import Database
from tests.peers.peer_processes import free_ports, running, tail
from tests.waiting import wait_for

PYTHON_CLI = [sys.executable, "-m", "maestropy.cli.main"]
REPUBLISH_INTERVAL = "--delete-event-republish-interval"


class Server(Protocol):
    """Where a server can be reached."""

    @property
    def rest_url(self) -> str: ...
    @property
    def grpc_addr(self) -> str: ...
    @property
    def broker_addr(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """A server we started, with what a test may need beyond the protocol."""

    kind: str
    rest_url: str
    grpc_addr: str
    broker_addr: str
    health_url: str
    metrics_url: str
    database: Database
    log: Path
    pid: int


@contextlib.contextmanager
def go_server(
    programs: Programs,
    *,
    database: Database,
    folder: Path,
    flags: Sequence[str] = (),
    broker: str = "grpc",
    program: Path | None = None,
    ports: Sequence[int] = (),
) -> Iterator[RunningServer]:
    """Migrate the database with the newest Go Maestro, or `program`, and serve; `broker` is its --message-broker-type.

    Who starts a server again where it was gives `ports`, five of them.
    """
    maestro = str(program or programs.newest)
    secrets = database_files(database, folder)
    migrate([maestro, "migration", *secrets])
    command = [maestro, "server", "--v=4", *secrets, *rest_without_tokens(maestro)]
    with serving("go", command, broker=broker, database=database, folder=folder, flags=flags, ports=ports) as server:
        yield server


@functools.cache
def rest_without_tokens(maestro: str) -> list[str]:
    """Return the flags for it; versions of the Go Maestro since March 2026 have neither tokens nor these flags."""
    known = subprocess.run([maestro, "server", "--help"], capture_output=True, text=True, check=True).stdout
    return [f"{flag}=false" for flag in ("--enable-jwt", "--enable-authz") if flag in known]


@contextlib.contextmanager
def python_server(
    *, database: Database, folder: Path, flags: Sequence[str] = (), broker: str = "grpc", ports: Sequence[int] = ()
) -> Iterator[RunningServer]:
    """The same with our own server.

    A Go agent loses one in five deletions that come at once. With the default interval each would take a minute more.
    """
    where = ["--db-dsn", database.dsn]
    migrate([*PYTHON_CLI, "migration", *where])
    command = [*PYTHON_CLI, "server", "--v=4", *where]
    if not any(flag.startswith(REPUBLISH_INTERVAL) for flag in flags):
        command.append(f"{REPUBLISH_INTERVAL}=5")
    with serving(
        "python", command, broker=broker, database=database, folder=folder, flags=flags, ports=ports
    ) as server:
        yield server


def python_server_exists() -> bool:
    """Tell whether our command line already has a server."""
    asked = subprocess.run([*PYTHON_CLI, "server", "--help"], capture_output=True, check=False)
    return asked.returncode == 0


@contextlib.contextmanager
def serving(
    kind: str,
    command: list[str],
    *,
    broker: str,
    database: Database,
    folder: Path,
    flags: Sequence[str],
    ports: Sequence[int] = (),
) -> Iterator[RunningServer]:
    rest, grpc, agents, health, metrics = ports or free_ports(5)
    server_flags = [
        f"--message-broker-type={broker}",
        "--client-id=maestro",
        "--server-hostname=127.0.0.1",
        f"--http-server-bindport={rest}",
        f"--grpc-server-bindport={grpc}",
        f"--grpc-broker-bindport={agents}",
        f"--health-check-server-bindport={health}",
        f"--metrics-server-bindport={metrics}",
        "--enable-https=false",
        "--enable-metrics-https=false",
        "--enable-health-check-https=false",
        "--disable-grpc-tls=true",
        # An instance counts as ready at the first liveness check, a third of this many seconds after its heartbeat.
        "--heartbeat-interval=3",
        # The Go source service says nothing on a new stream before its first heartbeat.
        "--heartbeat-check-interval=1s",
    ]
    log = folder / f"{kind}-server.log"
    with running([*command, *server_flags, *flags], log=log, env=environment()) as process:
        server = RunningServer(
            kind=kind,
            rest_url=f"http://127.0.0.1:{rest}",
            grpc_addr=f"127.0.0.1:{grpc}",
            broker_addr=f"127.0.0.1:{agents}",
            health_url=f"http://127.0.0.1:{health}/healthcheck",
            metrics_url=f"http://127.0.0.1:{metrics}/metrics",
            database=database,
            log=log,
            pid=process.pid,
        )
        wait_for(healthy(server, process), what=f"the {kind} server to be healthy (see {log})", seconds=120)
        yield server


def healthy(server: RunningServer, process: subprocess.Popen[bytes]) -> Callable[[], bool]:
    def look() -> bool:
        assert process.poll() is None, f"the {server.kind} server ended:\n{tail(server.log)}"
        try:
            with urllib.request.urlopen(server.health_url, timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    return look


def database_files(database: Database, folder: Path) -> list[str]:
    """Write the five files the Go server wants; absolute, because it resolves relative ones against its source tree."""
    contents = {
        "host": database.host,
        "port": str(database.port),
        "name": database.name,
        "user": database.user,
        "password": database.password,
    }
    flags = []
    for name, content in contents.items():
        path = (folder / f"db.{name}").absolute()
        path.write_text(content)
        flags.append(f"--db-{name}-file={path}")
    unused = (folder / "db.rootcert").absolute()
    unused.touch()
    return [*flags, f"--db-rootcert={unused}", "--db-sslmode=disable"]


def migrate(command: list[str]) -> None:
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    assert outcome.returncode == 0, f"{command[0]} migration failed:\n{outcome.stdout}{outcome.stderr}"


def environment() -> dict[str, str]:
    # The Go Maestro's other environments choose ports and log levels of their own.
    return {**os.environ, "MAESTRO_ENV": "production"}
