"""Starts processes for tests and ends them: ports, logs, waiting for a state."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from maestropy.sandbox import ports

Found = TypeVar("Found")


def free_ports(count: int) -> list[int]:
    """Return that many loopback ports nobody listens on."""
    return ports.free(count)


@contextlib.contextmanager
def running(
    command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None, user: str | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run `command` with all its output in `log`, and end it with the block."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*mortal(), *command], stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env, user=user
        )
    try:
        yield process
    finally:
        end(process)


def mortal() -> list[str | Path]:
    """Return a prefix that lets a command die with the thread that started it, even where we are killed."""
    return ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []


def end(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """Ask the process to stop, and insist after five seconds."""
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tail(log: Path, *, lines: int = 60) -> str:
    """Return the last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
