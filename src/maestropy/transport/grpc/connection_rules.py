"""Decide which gRPC connections are closed because none of their calls has been authenticated.

The gRPC library limits connections only in total, and it parses headers before a client has acknowledged any limit. So
a client without credentials could use up all connections, or memory. Connections with an authenticated call are never
closed here. Pure.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

_NEARLY_FULL: Final = 0.9
_ROOM: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingLimits:
    """Limits of connections without an authenticated call."""

    connections: int = 10_000
    """All connections of one port; near this number pending ones are closed."""
    per_address: int = 1_000
    seconds: float = 60.0
    received_bytes: int = 2**21
    """More than the headers and first data of 500 calls, which a good client may send before one is answered."""
    growth_bytes: int = 48 * 2**20
    """The growth of the process since a connection began, from which less is accepted on it."""
    growth_seconds_before: float = 1.0
    """Growth this long before a connection was noticed counts too: it may have been the cause."""
    bytes_of_a_client: int = 2**17
    """What an authenticated connection makes the process grow by: a fleet that reconnects is no attack."""
    received_bytes_while_growing: int = 2**15
    """More than a TLS handshake and a call with a large token."""
    total_bytes_while_growing: int = 2**21
    """Of all connections together: the library may hold 150 bytes of memory for one byte of a header."""


@dataclass(slots=True, kw_only=True)
class Connection:
    """One open connection."""

    file_descriptor: int
    local_port: int
    host: str
    port: int
    since: float
    received_bytes: int = 0
    is_authenticated: bool = False


class MemoryGrowth:
    """Remembers the sizes of the process within a minute."""

    SECONDS: Final = 60.0

    def __init__(self) -> None:
        self._smallest: deque[tuple[float, int]] = deque()
        """Sizes that no later one is below, the oldest first."""

    def measure(self, size: int, *, now: float) -> int:
        """Return by how many bytes the process is larger than its smallest size within the last minute."""
        while self._smallest and self._smallest[-1][1] >= size:
            self._smallest.pop()
        self._smallest.append((now, size))
        while now - self._smallest[0][0] > self.SECONDS:
            self._smallest.popleft()
        return size - self._smallest[0][1]

    def since(self) -> Callable[[float], int]:
        """Return a function of a time that tells by how many bytes the process has grown since then."""
        sizes = [*self._smallest]

        def grown(moment: float) -> int:
            # The smallest size since a moment is the first that is left of it, because no later one is below.
            first = min(bisect_left(sizes, (moment, 0)), len(sizes) - 1)
            return sizes[-1][1] - sizes[first][1] if sizes else 0

        return grown


def closed(
    connections: Collection[Connection],
    limits: PendingLimits,
    *,
    now: float,
    grown_since: Callable[[float], int] = lambda _: 0,
) -> Iterator[tuple[Connection, str]]:
    """Yield the connections that are to be closed, with the reason.

    A few headers can stand for hundreds of megabytes, so less is accepted on a connection since which the process has
    grown. Growth from before it is not its own: a client that sends much at once, to a server that has just started or
    to which a fleet returns, is served.
    """
    ordered = sorted(connections, key=lambda connection: connection.since)
    clients = [connection.since for connection in ordered if connection.is_authenticated]

    def is_growing(connection: Connection) -> bool:
        began = connection.since - limits.growth_seconds_before
        explained = limits.bytes_of_a_client * (len(clients) - bisect_left(clients, began))
        return grown_since(began) - explained > limits.growth_bytes

    pending, growing = [], []
    for connection in ordered:
        if connection.is_authenticated:
            continue
        is_strict = is_growing(connection)
        max_bytes = limits.received_bytes_while_growing if is_strict else limits.received_bytes
        if connection.received_bytes > max_bytes:
            yield connection, f"more than {max_bytes} bytes without an authenticated call"
        elif now - connection.since > limits.seconds:
            yield connection, f"no authenticated call within {limits.seconds:g}s"
        else:
            pending.append(connection)
            if is_strict:
                growing.append(connection)
    excess = _beyond_total(growing, limits.total_bytes_while_growing)
    yield from ((connection, "memory grows, and no authenticated call on this one") for connection in excess)
    ended = {connection.file_descriptor for connection in excess}
    pending = [connection for connection in pending if connection.file_descriptor not in ended]
    yield from _beyond_limits(
        pending, limits, open_connections=Counter(connection.local_port for connection in connections)
    )


def _beyond_total(pending: Collection[Connection], max_bytes: int) -> list[Connection]:
    """Return the connections that received most, so that the others have received at most `max_bytes`."""
    total = sum(connection.received_bytes for connection in pending)
    excess = []
    for connection in sorted(pending, key=lambda connection: -connection.received_bytes):
        if total <= max_bytes:
            break
        total -= connection.received_bytes
        excess.append(connection)
    return excess


def _beyond_limits(
    pending: Collection[Connection], limits: PendingLimits, *, open_connections: Counter[int]
) -> Iterator[tuple[Connection, str]]:
    """Yield the oldest connections of each address and each port that has too many."""
    excess_of_host = {
        host: count - limits.per_address for host, count in Counter(connection.host for connection in pending).items()
    }
    excess_of_port = {
        port: count - round(_ROOM * limits.connections)
        for port, count in open_connections.items()
        if count >= _NEARLY_FULL * limits.connections
    }
    for connection in pending:
        if excess_of_host[connection.host] > 0:
            reason = f"more than {limits.per_address} connections of one address without an authenticated call"
        elif excess_of_port.get(connection.local_port, 0) > 0:
            reason = f"nearly {limits.connections} connections, and no authenticated call on this one"
        else:
            continue
        excess_of_host[connection.host] -= 1
        excess_of_port[connection.local_port] = excess_of_port.get(connection.local_port, 0) - 1
        yield connection, reason
