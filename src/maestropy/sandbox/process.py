"""A server of its own process, on ports nobody else uses: for the demo, and for whoever wants to kill one."""

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
    """Where a server listens, all on loopback."""

    rest: int
    health: int
    metrics: int
    sources: int
    agents: int

    @classmethod
    def free(cls) -> Self:
        """Return ports that were free a moment ago."""
        rest, health, metrics, sources, agents = ports.free(5)
        return cls(rest=rest, health=health, metrics=metrics, sources=sources, agents=agents)


class ServerProcess:
    """A `maestro server` that can be killed and started again on the same ports and database."""

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
        """Start and wait until the server says it is ready."""
        where = self.ports
        # Else whoever has the port would answer in its place that it is ready.
        taken = ports.taken(dataclasses.astuple(where))
        if taken:
            raise SandboxError(f"port {taken[0]} of this computer is in use; stop who has it, or take --free-ports")
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "maestropy.cli.main", "server", "--server-hostname=127.0.0.1", "--auto-migrate"),
                f"--http-server-bindport={where.rest}",
                f"--health-check-server-bindport={where.health}",
                f"--metrics-server-bindport={where.metrics}",
                f"--grpc-server-bindport={where.sources}",
                f"--grpc-broker-bindport={where.agents}",
                # As a worker it ends when its input does: with us, however we end.
                "--worker-index=0",
                *self._flags,
                env={**os.environ, "MAESTRO_DB_DSN": str(self._dsn), "MAESTRO_ENV": ""},
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        try:
            async with asyncio.timeout(_READY_SECONDS):
                while not await _is_ready(where.health):
                    if self._process.returncode is not None:
                        raise SandboxError(f"the server ended at once{self._last_words()}; its log is {self._log}")
                    await asyncio.sleep(0.05)
        except TimeoutError as error:
            raise SandboxError(f"the server was not ready in {_READY_SECONDS:g} s; its log is {self._log}") from error

    async def watch_over(self) -> None:
        """Wait until the server ends, and raise: nobody asked it to."""
        assert self._process
        code = await self._process.wait()
        raise SandboxError(f"the server has ended with code {code}{self._last_words()}; its log is {self._log}")

    def _last_words(self) -> str:
        """Return what the server said when it gave up, to be put behind a sentence."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-1:]
        return "".join(f": {line.removeprefix('Error: ')}" for line in lines if line.startswith("Error: "))

    async def kill(self) -> None:
        """Kill -9."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """Ask it to stop and wait."""
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
