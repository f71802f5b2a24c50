"""Run PostgreSQL's programs on one data directory, under its account and without PG* environment variables."""

import contextlib
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

from maestropy.sandbox import os_account as accounts
from maestropy.sandbox.errors import SandboxError


class Interruption:
    """Ends a program that another thread waits for, and lets no further one start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: subprocess.Popen[bytes] | None = None
        self._is_requested = False

    def request(self) -> None:
        """End the program, if one runs."""
        with self._lock:
            self._is_requested = True
            if self._running is not None and self._running.poll() is None:
                # With its children: it leads a session of its own.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._running.pid, signal.SIGTERM)

    def start(self, *arguments: Any, **options: Any) -> "subprocess.Popen[bytes]":
        """Start a program that can be ended; raises SandboxError if that was requested before."""
        with self._lock:
            if self._is_requested:
                raise SandboxError("PostgreSQL is not started: that was interrupted")
            self._running = subprocess.Popen(*arguments, **options)  # noqa: S603 - our own program
            return self._running


class Programs:
    """Runs PostgreSQL's programs on one data directory under its account."""

    def __init__(self, data: Path, *, runtime: Path) -> None:
        self._data = data
        self._account = accounts.choose(data)
        version = data / "PG_VERSION"
        self._bin = accounts.programs(
            self._account,
            version=version.read_text(encoding="ascii").strip() if version.exists() else None,
            runtime=runtime,
        )
        # The other account may not be able to enter the parent directories, but it inherits the working directory.
        self.directory = str(data) if self._account.is_ours else "/proc/self/cwd"

    def run(self, program: str, *arguments: str, interruption: Interruption | None = None) -> None:
        """Run `program` to its end; raise SandboxError with its error message if it fails, or is interrupted."""
        start = interruption.start if interruption else subprocess.Popen
        # Variables such as PGPORT would change what the programs do.
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
        try:
            process = start(
                [self._bin / program, *arguments, "-D", self.directory],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=self._data,
                env={**environ, "LC_ALL": "C"},
                # Ctrl-C must not reach PostgreSQL: we stop it ourselves, after the server.
                start_new_session=True,
                umask=0o077,
                **self._identity(),
            )
        except OSError as error:
            raise SandboxError(f"PostgreSQL's {program} cannot be run ({error.strerror}); give --db-dsn") from error
        _, complaints = process.communicate()
        if process.returncode:
            messages = complaints.decode(errors="replace").strip().splitlines() or ["no reason given"]
            raise SandboxError(f"PostgreSQL's {program} failed: {messages[0]}")

    def _identity(self) -> dict[str, Any]:
        if self._account.is_ours:
            return {}
        return {"user": self._account.uid, "group": self._account.gid, "extra_groups": []}
