"""Ports for processes that are started later, and again: below those the system hands out to outgoing connections.

A port from the system's own range may become the near end of somebody's connection between two starts, and then the
second start fails. What one process of this user was given, no other is given while that process lives: between the
choice and the start, or between two starts, nobody listens there, and whoever chose then would meet it.
"""

import contextlib
import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Iterable
from pathlib import Path

_FIRST, _LAST = 15000, 30000
_TRIES = 1000
_given: set[int] = set()
_lock: int | None = None


def free(count: int) -> list[int]:
    """Return loopback ports that nobody uses now, no two of them the same."""
    held: dict[int, socket.socket] = {}
    # Who lives long enough to see them all may have the first ones again.
    if len(_given) > (_LAST - _FIRST) // 2:
        _given.clear()
    try:
        for _ in range(_TRIES):
            if len(held) == count:
                _given.update(held)
                return list(held)
            port = random.randint(_FIRST, _LAST)  # noqa: S311 - no secret, only spread
            if port in _given or not _is_ours(port):
                continue
            probe = socket.socket()
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                probe.close()
            else:
                held[port] = probe
    finally:
        for probe in held.values():
            probe.close()
    raise OSError(f"no {count} free ports between {_FIRST} and {_LAST}")


def _is_ours(port: int) -> bool:
    """Return whether this process has the port, or has it now: a lock on one byte of a file, which ends with us."""
    global _lock  # noqa: PLW0603 - closing the file would give all locks back
    with contextlib.suppress(OSError):
        if _lock is None:
            place = Path(tempfile.gettempdir()) / f"maestropy-ports-{os.getuid()}"
            _lock = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if _lock is None:
        return True  # where there is no place for such a file, luck must do
    try:
        fcntl.lockf(_lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


def taken(wanted: Iterable[int]) -> list[int]:
    """Return which of these loopback ports somebody listens on."""
    return [port for port in wanted if not _can_listen(port)]


def _can_listen(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do it: connections that are still being forgotten are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
