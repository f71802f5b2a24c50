"""Run PostgreSQL's programs on one data directory, under its account and without PG* environment variables."""

import os
import subprocess
from pathlib import Path
from typing import Any

from maestropy.sandbox import os_account as accounts
from maestropy.sandbox.errors import SandboxError


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

    def run(self, program: str, *arguments: str) -> None:
        """Run `program` to its end; raise SandboxError with its error message if it fails."""
        # Variables such as PGPORT would change what the programs do.
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
        try:
            done = subprocess.run(  # noqa: S603 - our own program with arguments made here
                [self._bin / program, *arguments, "-D", self.directory],
                check=False,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                cwd=self._data,
                env={**environ, "LC_ALL": "C"},
                # Ctrl-C must not reach PostgreSQL: we stop it ourselves, after the server.
                start_new_session=True,
                umask=0o077,
                **self._identity(),
            )
        except OSError as error:
            raise SandboxError(f"PostgreSQL's {program} cannot be run ({error.strerror}); give --db-dsn") from error
        if done.returncode:
            messages = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
            raise SandboxError(f"PostgreSQL's {program} failed: {messages[0]}")

    def _identity(self) -> dict[str, Any]:
        if self._account.is_ours:
            return {}
        return {"user": self._account.uid, "group": self._account.gid, "extra_groups": []}
