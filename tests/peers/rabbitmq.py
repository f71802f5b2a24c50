"""Runs RabbitMQ, a real AMQP broker, for tests: on loopback ports of its own, with its data in the test's folder.

Where the program is missing and we may install it, Debian's package is taken; its service is not started.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.peers.peer_processes import end, free_ports, mortal, tail
from tests.waiting import wait_for

_PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""Debian's wrapper in /usr/sbin changes the user; this one runs as we do."""


def program() -> Path:
    """Return the path of RabbitMQ's server; skips the test when there is none."""
    if not _PROGRAM.exists() and os.geteuid() == 0 and shutil.which("apt-get"):
        # RUNLEVEL=1 keeps the package from starting its service.
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        command = ["apt-get", "install", "-y", "--no-install-recommends", "rabbitmq-server"]
        subprocess.run(command, env=quiet, capture_output=True, check=False, timeout=180)
    if not _PROGRAM.exists():
        pytest.skip("RabbitMQ is needed: `apt-get install rabbitmq-server`")
    return _PROGRAM


@dataclass(kw_only=True)
class Rabbitmq:
    """A broker that can be stopped and started again on the same port, with its queues."""

    folder: Path
    ports: list[int] = field(default_factory=lambda: free_ports(3))
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.ports[0]}/"

    @property
    def log(self) -> Path:
        return self.folder / "rabbitmq.log"

    def start(self) -> None:
        """Start the port mapper of Erlang and the broker, and wait until it listens."""
        port, distribution, mapper = self.ports
        plugins = self.folder / "enabled_plugins"
        plugins.write_text("[].\n")
        environment = {
            **os.environ,
            "HOME": str(self.folder),
            "ERL_EPMD_PORT": str(mapper),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"test{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder / "logs"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq"),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "rabbitmq-env.conf"),
            "LANG": "C.UTF-8",
        }
        with self.log.open("ab") as output:
            for command in (["epmd", "-port", str(mapper), "-address", "127.0.0.1"], [str(program())]):
                process = subprocess.Popen(
                    [*mortal(), *command],
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    cwd=self.folder,
                    start_new_session=True,
                )
                self.processes.append(process)
        wait_for(self._answers, what=f"RabbitMQ to listen:\n{tail(self.log)}", seconds=90)

    def stop(self) -> None:
        """Stop both, the broker first."""
        for process in reversed(self.processes):
            end(process)
            # The broker runs behind a shell, which may end before it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self.processes.clear()

    def _answers(self) -> bool:
        assert self.processes[-1].poll() is None, f"RabbitMQ ended:\n{tail(self.log)}"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.ports[0]), timeout=1) as peer:
            # A broker that is not ready accepts the connection and closes it.
            peer.settimeout(2)
            peer.sendall(b"AMQP\x00\x00\x09\x01")
            return bool(peer.recv(8))
        return False


@contextlib.contextmanager
def rabbitmq(folder: Path) -> Iterator[Rabbitmq]:
    """Run a broker."""
    program()
    folder.mkdir(parents=True, exist_ok=True)
    broker = Rabbitmq(folder=folder)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
