"""Lock a directory for one process; the kernel releases the lock when the process ends, also when it is killed."""

import fcntl
import os
from pathlib import Path
from typing import Self

from maestropy.sandbox.errors import DirectoryInUse


class DirectoryLock:
    """The lock of a directory, held by this process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, directory: Path) -> Self:
        """Take the lock of `directory`, or raise with the process ID of its holder."""
        path = directory / "postgres.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise DirectoryInUse(
                f"The embedded database in {directory} is in use by process {holder}; stop that process, "
                "or use another --data-dir, or let both processes use one PostgreSQL with --db-dsn",
                holder=holder,
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        return cls(descriptor)

    def release(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)
