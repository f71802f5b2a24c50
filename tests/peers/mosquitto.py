"""Runs Mosquitto, a real MQTT broker, for tests: on a port of its own, in plain text or with certificates.

Where the program is missing and we may install it, Debian's package is taken; its service is not started.
"""

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.peers.peer_processes import end, free_ports, mortal, tail
from tests.waiting import wait_for

TOPICS = """
topics:
  sourceEvents: sources/maestro/consumers/+/sourceevents
  agentEvents: {share}sources/maestro/consumers/+/agentevents
"""


def program() -> str:
    """Return the path of Mosquitto; skips the test when there is none."""
    places = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    found = shutil.which("mosquitto", path=places) or installed(places)
    if found is None:
        pytest.skip("Mosquitto is needed: `apt-get install mosquitto`, or put the program on the PATH")
    return found


def installed(places: str) -> str | None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    # RUNLEVEL=1 keeps the package from starting its service.
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    command = ["apt-get", "install", "-y", "--no-install-recommends", "mosquitto"]
    subprocess.run(command, env=quiet, capture_output=True, check=False, timeout=50)
    return shutil.which("mosquitto", path=places)


@dataclass(kw_only=True)
class Mosquitto:
    """A broker that can be stopped and started again on the same port."""

    folder: Path
    settings: str = ""
    port: int = field(default_factory=lambda: free_ports(1)[0])
    process: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "mosquitto.log"

    def start(self) -> None:
        config = self.folder / "mosquitto.conf"
        anonymous = "" if "allow_anonymous" in self.settings else "allow_anonymous true\n"
        # As root it would become another user, who may not read the test's folder.
        config.write_text(f"user root\nlistener {self.port} 127.0.0.1\n{anonymous}{self.settings}\n")
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [*mortal(), program(), "-c", str(config), "-v"], stdout=output, stderr=subprocess.STDOUT
            )
        wait_for(self._answers, what=f"Mosquitto to listen:\n{tail(self.log)}")

    def stop(self) -> None:
        if self.process is not None:
            end(self.process)
            self.process = None

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"Mosquitto ended:\n{tail(self.log)}"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False

    def config(self, name: str = "mqtt", *, share: str = "", more: str = "") -> Path:
        """Write the file that points a server or an agent here."""
        path = self.folder / f"{name}.yaml"
        prefix = f"$share/{share}/" if share else ""
        path.write_text(f"brokerHost: {self.host}\n{more}\n{TOPICS.format(share=prefix)}")
        return path


@contextlib.contextmanager
def mosquitto(folder: Path, settings: str = "") -> Iterator[Mosquitto]:
    """Run a broker."""
    folder.mkdir(parents=True, exist_ok=True)
    broker = Mosquitto(folder=folder, settings=settings)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
