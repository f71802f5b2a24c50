"""Read `postmaster.pid` of a PostgreSQL data directory, and check whether that server still runs.

A killed server leaves its `postmaster.pid` behind, and another process may have the pid by then. So the pid alone
proves nothing: the process must also listen on the socket that the file names. Nothing is started or stopped here.
"""

import os
import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

FILE_NAME = "postmaster.pid"
SOCKET_NAME = ".s.PGSQL.5432"


@dataclass(frozen=True, slots=True, kw_only=True)
class Postmaster:
    """A PostgreSQL server as its `postmaster.pid` describes it."""

    pid: int
    socket_dir: Path | None
    status: str

    @property
    def is_ready(self) -> bool:
        """Whether it accepts connections."""
        return self.status == "ready"


def parse(text: str) -> Postmaster | None:
    """Return the server that the file describes; None if it is not a `postmaster.pid`."""
    # pid, directory, start time, port, socket directory, TCP address, shared memory, status. The later lines are
    # added while the server starts, so they may be missing.
    lines = [line.strip() for line in text.splitlines()] + [""] * 8
    if not lines[0].isdigit():
        return None
    return Postmaster(pid=int(lines[0]), socket_dir=Path(lines[4]) if lines[4] else None, status=lines[7])


def recorded(directory: Path) -> Postmaster | None:
    """Return the server that was last started in `directory` and was not shut down; it may be dead."""
    try:
        return parse((directory / FILE_NAME).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def is_listening(server: Postmaster) -> bool:
    """Return whether this process listens on its socket, ready or still in recovery."""
    if server.socket_dir is None:
        return False
    with socket.socket(socket.AF_UNIX) as knock:
        knock.settimeout(2)
        try:
            knock.connect(str(server.socket_dir / SOCKET_NAME))
        except TimeoutError:
            return True
        except OSError:
            return False
        return _listener(knock) in {0, server.pid}


def _listener(knock: socket.socket) -> int:
    """Return the pid of the listening process; 0 where the system does not provide it."""
    if sys.platform != "linux":
        return 0
    credentials = knock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[0])


def is_alive(pid: int) -> bool:
    """Return whether a process has this pid; a zombie counts too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def may_be_starting(pid: int) -> bool:
    """Return whether `pid` could be a PostgreSQL server that does not listen yet."""
    try:
        # "pid (name) state …", readable by all users.
        name, _, rest = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
    except OSError:
        return sys.platform != "linux" and is_alive(pid)
    return name.endswith("(postgres") and rest.split()[0] != "Z"
