"""Run `maestro server` as a child process on free ports, which can be killed and restarted."""

import asyncio
import dataclasses
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from maestropy.sandbox import ports
from maestropy.sandbox.errors import SandboxError
from maestropy.store.dsn import Dsn

_READY_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The loopback ports of a server."""

    rest: int
    health: int
    metrics: int
    sources: int
    agents: int

    @classmethod
    def free(cls) -> Self:
        """Return free ports, reserved for this process."""
        rest, health, metrics, sources, agents = ports.free(5)
        return cls(rest=rest, health=health, metrics=metrics, sources=sources, agents=agents)


class ServerProcess:
    """A `maestro server` process that can be killed and restarted on the same ports and database."""

    def __init__(self, dsn: Dsn, *, log: Path, ports: Ports | None = None, flags: Sequence[str] = ()) -> None:
        self._dsn = dsn
        self._flags = tuple(flags)
        self._log = log
        self.ports = ports or Ports.free()
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start the server and wait until it is ready."""
        listen = self.ports
        # Otherwise another process on the health port could answer the readiness check.
        used_ports = ports.in_use(dataclasses.astuple(listen))
        if used_ports:
            raise SandboxError(
                f"port {used_ports[0]} of this computer is in use; stop the process that uses it, or use --free-ports"
            )
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "maestropy.cli.main", "server", "--server-hostname=127.0.0.1", "--auto-migrate"),
                f"--http-server-bindport={listen.rest}",
                f"--health-check-server-bindport={listen.health}",
                f"--metrics-server-bindport={listen.metrics}",
                f"--grpc-server-bindport={listen.sources}",
                f"--grpc-broker-bindport={listen.agents}",
                # A worker ends when its standard input closes, so it ends with this process.
                "--worker-index=0",
                *self._flags,
                env={**os.environ, "MAESTRO_DB_DSN": str(self._dsn), "MAESTRO_ENV": ""},
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        try:
            await self._until_ready(self._process)
        except BaseException:
            # Nobody else will: what failed to start, or is interrupted, is not entered.
            await self.stop()
            raise

    async def _until_ready(self, process: asyncio.subprocess.Process) -> None:
        try:
            async with asyncio.timeout(_READY_SECONDS):
                while not await _is_ready(self.ports.health):
                    if process.returncode is not None:
                        raise SandboxError(f"the server did not start{self._last_error()}; its log is {self._log}")
                    await asyncio.sleep(0.05)
        except TimeoutError as error:
            raise SandboxError(f"the server was not ready in {_READY_SECONDS:g} s; its log is {self._log}") from error

    @property
    def pid(self) -> int:
        """The process ID of the running server."""
        assert self._process
        return self._process.pid

    async def wait_for_exit(self) -> None:
        """Wait until the server ends unexpectedly, and raise."""
        assert self._process
        code = await self._process.wait()
        raise SandboxError(f"the server has ended with code {code}{self._last_error()}; its log is {self._log}")

    def _last_error(self) -> str:
        """Return the error in the last line of the log, as the end of a sentence; empty if there is none."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-1:]
        return "".join(f": {line.removeprefix('Error: ')}" for line in lines if line.startswith("Error: "))

    async def kill(self) -> None:
        """Kill the server with SIGKILL."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """Stop the server with SIGTERM and wait until it ends."""
        await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        self._process.send_signal(number)
        await self._process.wait()


async def _is_ready(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthcheck HTTP/1.0\r\n\r\n")
        status = await reader.readline()
        writer.close()
    except OSError:
        return False
    return b" 200 " in status
