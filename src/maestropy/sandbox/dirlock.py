"""Keep a directory to one process at a time, even when processes are killed."""

import fcntl
import os
from pathlib import Path
from typing import Self

from maestropy.sandbox.errors import SandboxError


class DirectoryLock:
    """Says that this process uses a directory; the system takes it back when the process ends, however it ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, directory: Path) -> Self:
        """Take the lock of `directory`, or say who holds it."""
        path = directory / "postgres.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise SandboxError(
                f"The embedded database in {directory} is in use by process {holder}; stop that process, "
                "or give this one another --data-dir, or let both use one PostgreSQL with --db-dsn"
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        return cls(descriptor)

    def release(self) -> None:
        """Give the directory up."""
        os.close(self._descriptor)
