"""Ports for processes that are started later, and again: below those the system hands out to outgoing connections.

A port from the system's own range may become the near end of somebody's connection between two starts, and then the
second start fails.
"""

import random
import socket
from collections.abc import Iterable

_FIRST, _LAST = 15000, 30000
_TRIES = 1000


def free(count: int) -> list[int]:
    """Return loopback ports that nobody uses now, no two of them the same."""
    held: dict[int, socket.socket] = {}
    try:
        for _ in range(_TRIES):
            if len(held) == count:
                return list(held)
            port = random.randint(_FIRST, _LAST)  # noqa: S311 - no secret, only spread
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
