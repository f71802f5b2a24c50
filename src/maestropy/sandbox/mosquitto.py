"""Run a Mosquitto broker on loopback, for fleets with the MQTT message broker."""

import asyncio
import os
import shutil
import signal
from pathlib import Path
from typing import Self

from maestropy.sandbox import ports
from maestropy.sandbox.errors import SandboxError

_ATTEMPTS = 100
# Debian installs it outside the PATH of ordinary users.
_DIRECTORIES = ("/usr/sbin", "/usr/local/sbin")

_CONFIG = """\
brokerHost: {host}
topics:
  sourceEvents: sources/maestro/consumers/+/sourceevents
  agentEvents: sources/maestro/consumers/+/agentevents
"""


class Mosquitto:
    """A broker while entered; `config` is its message broker configuration file for servers and agents."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        (self.port,) = ports.free(1)
        self.config = folder / "mqtt.yaml"

    async def __aenter__(self) -> Self:
        program = shutil.which("mosquitto", path=os.pathsep.join((os.environ.get("PATH", ""), *_DIRECTORIES)))
        if program is None:
            raise SandboxError(
                "Mosquitto is not installed on this computer; install it (Debian: apt-get install mosquitto)"
            )
        settings = self._folder / "mosquitto.conf"
        # Started by root, Mosquitto switches to a user that cannot read our folder.
        user = "user root\n" if os.geteuid() == 0 else ""
        settings.write_text(f"{user}listener {self.port} 127.0.0.1\nallow_anonymous true\n")
        self.config.write_text(_CONFIG.format(host=f"127.0.0.1:{self.port}"))
        with (self._folder / "mosquitto.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                program, "-c", str(settings), stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            await self._until_it_answers()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def _until_it_answers(self) -> None:
        for _ in range(_ATTEMPTS):
            if await _answers(self.port):
                return
            await asyncio.sleep(0.05)
        raise SandboxError(f"Mosquitto does not answer; its log is {self._folder / 'mosquitto.log'}")

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
            await self._process.wait()


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
