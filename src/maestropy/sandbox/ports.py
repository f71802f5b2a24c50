"""Reserve free ports for processes that start later and restart.

The ports are below the ephemeral range: an ephemeral port may become the local port of an outgoing connection between
two starts, and the second start would fail. Between choice and start no process listens on the port, so every port is
reserved, by a lock, for the process that chose it.
"""

import contextlib
import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Iterable
from pathlib import Path

_random = random.Random()  # noqa: S311 - no secret, only spread; not the numbers that a program may seed
_FIRST, _LAST = 15000, 30000
_TRIES = 1000
_given: set[int] = set()
_lock: int | None = None


def free(count: int) -> list[int]:
    """Return `count` different loopback ports that are free and not reserved."""
    probes: dict[int, socket.socket] = {}
    # A long-lived process reuses its ports after half of the range.
    if len(_given) > (_LAST - _FIRST) // 2:
        _given.clear()
    try:
        for _ in range(_TRIES):
            if len(probes) == count:
                _given.update(probes)
                return list(probes)
            port = _random.randint(_FIRST, _LAST)
            if port in _given or not _is_ours(port):
                continue
            probe = socket.socket()
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                probe.close()
            else:
                probes[port] = probe
    finally:
        for probe in probes.values():
            probe.close()
    raise OSError(f"no {count} free ports between {_FIRST} and {_LAST}")


def _is_ours(port: int) -> bool:
    """Reserve the port by a lock on one byte of a file; return whether this process holds it."""
    global _lock  # noqa: PLW0603 - closing the file would release all locks
    with contextlib.suppress(OSError):
        if _lock is None:
            lock_file = Path(tempfile.gettempdir()) / f"maestropy-ports-{os.getuid()}"
            _lock = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if _lock is None:
        return True  # without a lock file, ports are not reserved
    try:
        fcntl.lockf(_lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


def in_use(candidates: Iterable[int]) -> list[int]:
    """Return those of these loopback ports that are in use."""
    return [port for port in candidates if not _can_listen(port)]


def _can_listen(port: int) -> bool:
    with socket.socket() as probe:
        # Servers set it too: connections in TIME_WAIT do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
