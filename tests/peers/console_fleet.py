"""A real fleet for incidents in the console: a `maestro up` process, more agents, a Go server, and its database."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maestropy.sandbox.postgres import DATABASE, USER
from maestropy.sdk.blocking import Maestro
from maestropy.store.dsn import Dsn
from tests import waiting
from tests.peers.peer_processes import free_ports, mortal, tail
from tests.stack import harness

CLI = (sys.executable, "-m", "maestropy.cli.main")


@dataclass(frozen=True, slots=True, kw_only=True)
class RealFleet:
    """A running `maestro up`."""

    console: str
    api_url: str
    grpc_url: str
    agents_url: str
    folder: Path

    def client(self) -> Maestro:
        """Return a client of its server."""
        return Maestro(environ={}, api_url=self.api_url, grpc_url=self.grpc_url, source="incidents")

    def kubeconfig(self, consumer: str) -> Path:
        """Return the kubeconfig of one of its clusters."""
        return self.folder / "clusters" / consumer / "kubeconfig"

    async def sql(self, statement: str, *params: object) -> None:
        """Change the database behind the server's back, as a restore does."""
        _, _, _, _, sockets, *_ = self._postmaster()
        await harness.sql(Dsn(host=sockets, user=USER, database=DATABASE, sslmode="disable"), statement, *params)

    @contextlib.contextmanager
    def without_database(self) -> Iterator[None]:
        """End PostgreSQL, and end it again whenever `maestro up` has started it again, which takes a second or less."""
        is_over = threading.Event()

        def end() -> None:
            while not is_over.wait(0.02):
                with contextlib.suppress(ProcessLookupError, ValueError, IndexError, FileNotFoundError):
                    os.kill(int(self._postmaster()[0]), signal.SIGQUIT)

        thread = threading.Thread(target=end)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def _postmaster(self) -> list[str]:
        (file,) = self.folder.rglob("postmaster.pid")
        return file.read_text().splitlines()

    @contextlib.contextmanager
    def agent(
        self, consumer: str, folder: Path, *, go: Path | None = None, server: str = ""
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run an agent of another consumer on the second cluster, ours or the Go one."""
        url = server or self.agents_url
        common = [f"--consumer-name={consumer}", f"--kubeconfig={self.kubeconfig('cluster2')}"]
        if go is None:
            command = [*CLI, "agent", *common, f"--grpc-url={url}", "--listen=127.0.0.1:0"]
        else:
            config = folder / f"{consumer}.json"
            config.write_text(json.dumps({"url": url}))
            source = ["--workload-source-driver=grpc", f"--workload-source-config={config}"]
            names = [f"--cloudevents-client-id={consumer}-work-agent", "--namespace=default"]
            (port,) = free_ports(1)
            command = [str(go), "agent", "-v=2", *common, *source, *names, f"--listen=127.0.0.1:{port}"]
        with started(command, folder / f"{consumer}.log") as process:
            try:
                yield process
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGCONT)
                process.kill()


@contextlib.contextmanager
def started(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command with its output in a log; it ends with Ctrl-C."""
    with log.open("ab") as output:
        env = {**os.environ, "COLUMNS": "200"}
        process = subprocess.Popen([*mortal(), *command], stdout=output, stderr=output, env=env)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        process.wait(60)


@contextlib.contextmanager
def up(folder: Path) -> Iterator[RealFleet]:
    """Run `maestro up` with two clusters."""
    log = folder / "up.log"
    flags = ["--agents", "2", "--free-ports", "--data-dir", str(folder / "data")]
    with started([*CLI, "up", *flags], log) as process:
        waiting.wait_for(
            lambda: "Ctrl-C stops" in log.read_text() or process.poll() is not None, what="the fleet", seconds=180
        )
        assert process.poll() is None, tail(log)
        found = dict(re.findall(r"^  (\S.*?)\s{2,}(\S+)", log.read_text(), re.MULTILINE))
        yield RealFleet(
            console=found["console"],
            api_url=found["REST"],
            grpc_url=found["gRPC for sources"],
            agents_url=found["gRPC for agents"],
            folder=folder / "data",
        )


@contextlib.contextmanager
def console_of(rest_url: str, folder: Path) -> Iterator[str]:
    """Run `maestro console --allow-actions`; yield its address."""
    log = folder / "console.log"
    with started([*CLI, "console", "--rest-url", rest_url, "--port", "0", "--allow-actions"], log) as process:
        waiting.wait_for(lambda: "Ctrl-C" in log.read_text() or process.poll() is not None, what="console", seconds=60)
        found = re.search(r"(http://127\.0\.0\.1:\d+/\?key=\S+)\n", log.read_text())
        assert found, tail(log)
        yield found[1]


def config_map(name: str, **fields: Any) -> dict[str, Any]:
    """Return a ConfigMap."""
    metadata = {"name": name, "namespace": "default", **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}
