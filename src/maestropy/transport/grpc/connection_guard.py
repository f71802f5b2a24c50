"""Close gRPC connections whose clients are not authenticated and use too much.

The gRPC library does not give its connections away, so the guard finds their sockets among the open files of the
process. It reads addresses and counters and disconnects sockets; the library then closes them. On systems without
/proc nothing happens.
"""

import asyncio
import contextlib
import ctypes
import os
import resource
import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from maestropy.transport import peer_identity
from maestropy.transport.grpc import connection_rules
from maestropy.transport.grpc.connection_rules import Connection, MemoryGrowth, PendingLimits

_MEMORY_PAUSE_SECONDS: Final = 0.01
_SUDDEN_GROWTH_BYTES: Final = 8 * 2**20
"""Growth between two looks at the memory after which the connections are looked at at once."""
_SHORTEST_PAUSE_SECONDS: Final = 0.02
_PAUSE_PER_SCAN: Final = 50
"""A scan is followed by a pause this many times as long, so that the guard takes at most 2 % of a processor."""
_LONGEST_PAUSE_SECONDS: Final = 0.5
_FULL_SCAN_SECONDS: Final = 10.0
"""File descriptors are used again: what was no connection, or an authenticated one, is looked at again."""
_MANY: Final = 2_000
"""Up to this number of open files a full scan takes a few milliseconds, and is done every second."""
_OPEN_FILES: Final = "/proc/self/fd"
_MEMORY: Final = Path("/proc/self/statm")
_BYTES_RECEIVED: Final = 128
"""The offset of tcpi_bytes_received in struct tcp_info of Linux."""
_UNSPECIFIED: Final = bytes(16)
"""An address of the family AF_UNSPEC; connecting a TCP socket to it ends its connection."""

Peer = tuple[str, int]


class ConnectionGuard:
    """Watches the connections of some ports of this process."""

    def __init__(
        self,
        *,
        limits: PendingLimits,
        monotonic: Callable[[], float],
        on_closed: Callable[[str, str, int], None],
    ) -> None:
        """`on_closed` gets a reason, an address and the number of connections."""
        self._limits = limits
        self._monotonic = monotonic
        self._on_closed = on_closed
        self._ports: set[int] = set()
        self._connections: dict[int, Connection] = {}
        self._others: set[int] = set()
        self._called: deque[str] = deque()
        self._reviewed: Counter[str] = Counter()
        self._authenticated: set[Peer] = set()
        self._under_review: set[Peer] = set()
        self._next_full_scan = 0.0
        self._growth = MemoryGrowth()
        self._size = _resident_bytes()

    def watch(self, port: int) -> None:
        """Watch the connections of a port."""
        self._ports.add(port)

    @contextmanager
    def authenticating(self, peer: str) -> Iterator[None]:
        """Authenticate a call of a peer such as `ipv4:10.0.0.1:4711` in the block; it fails if the block raises."""
        self._reviewed[peer] += 1
        try:
            yield
            self._called.append(peer)
        finally:
            self._reviewed[peer] -= 1
            if not self._reviewed[peer]:
                del self._reviewed[peer]

    async def run(self) -> None:
        """Watch until cancelled, in a thread of its own: an attack may hold up the event loop."""
        loop, stop = asyncio.get_running_loop(), threading.Event()
        threading.Thread(target=self._watch, args=(loop, stop), name="connection guard", daemon=True).start()
        try:
            await asyncio.Event().wait()
        finally:
            stop.set()

    def _watch(self, loop: asyncio.AbstractEventLoop, stop: threading.Event) -> None:
        next_scan = 0.0
        while not stop.wait(_MEMORY_PAUSE_SECONDS):
            now = self._monotonic()
            if not self._measure_memory(now) and now < next_scan:
                continue
            began = time.thread_time()
            with contextlib.suppress(RuntimeError):  # the event loop is closed
                self._guard_once(loop, now)
            spent = time.thread_time() - began
            next_scan = now + min(max(_SHORTEST_PAUSE_SECONDS, spent * _PAUSE_PER_SCAN), _LONGEST_PAUSE_SECONDS)

    def _guard_once(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        try:
            for (reason, host), count in self._scan(now).items():
                loop.call_soon_threadsafe(self._on_closed, reason, host, count)
        except Exception as error:  # noqa: BLE001 - sockets of others may change at any moment; the guard must go on
            context = {"message": "the guard of gRPC connections failed, and goes on", "exception": error}
            loop.call_soon_threadsafe(loop.call_exception_handler, context)

    def _measure_memory(self, now: float) -> bool:
        """Return whether the process grows so much that waiting for the next scan would be too long."""
        size = _resident_bytes()
        is_sudden = size - self._size > _SUDDEN_GROWTH_BYTES
        self._size = size
        return self._growth.measure(size, now=now) > self._limits.growth_bytes and is_sudden

    def _scan(self, now: float) -> Counter[tuple[str, str]]:
        self._under_review = self._reviewed_peers()
        self._look(now)
        self._note_calls()
        counts: Counter[tuple[str, str]] = Counter()
        excess = connection_rules.closed(
            self._connections.values(), self._limits, now=now, grown_since=self._growth.since()
        )
        for connection, reason in [*excess]:
            if self._close(connection):
                counts[reason, connection.host] += 1
        return counts

    def _reviewed_peers(self) -> set[Peer]:
        return set(filter(None, map(_peer, list(self._reviewed))))

    def _note_calls(self) -> None:
        """Note which connections are authenticated, or under review, by now.

        After the bytes were read: this thread may wait for a core in between, and what a client sends after its first
        authenticated call must not count against it.
        """
        while self._called:
            self._authenticated.update(filter(None, (_peer(self._called.popleft()),)))
        reviewed = self._reviewed_peers()
        for connection in self._connections.values():
            if not connection.is_authenticated:
                peer = (connection.host, connection.port)
                connection.is_authenticated = peer in self._authenticated
                if peer in reviewed:
                    connection.received_bytes = 0

    def _look(self, now: float) -> None:
        try:
            descriptors = {int(name) for name in os.listdir(_OPEN_FILES)}  # noqa: PTH208 - ten thousand names
        except OSError:
            return
        is_full = now >= self._next_full_scan
        if is_full:
            self._next_full_scan = now + (_FULL_SCAN_SECONDS if len(descriptors) > _MANY else 1.0)
            self._others.clear()
        for descriptor in self._connections.keys() - descriptors:
            del self._connections[descriptor]
        for descriptor in descriptors - self._others:
            known = self._connections.get(descriptor)
            if is_full or known is None or not known.is_authenticated:
                self._read(descriptor, now)
        if is_full:
            self._authenticated &= {(connection.host, connection.port) for connection in self._connections.values()}

    def _read(self, descriptor: int, now: float) -> None:
        with _opened(descriptor) as opened:
            endpoints = _endpoints(opened) if opened is not None else None
            if opened is None or endpoints is None or endpoints[0] not in self._ports:
                self._connections.pop(descriptor, None)
                # One that is closed again, as that of the list of open files, will be that of the next connection.
                if opened is not None or _is_open(descriptor):
                    self._others.add(descriptor)
                return
            received = _received_bytes(opened)
        local_port, host, port = endpoints
        connection = self._connections.get(descriptor)
        if connection is None or (connection.host, connection.port) != (host, port):
            connection = Connection(file_descriptor=descriptor, local_port=local_port, host=host, port=port, since=now)
            self._connections[descriptor] = connection
        # A good client sends on while Kubernetes reviews its token.
        connection.received_bytes = 0 if (host, port) in self._under_review else received
        connection.is_authenticated = (host, port) in self._authenticated

    def _close(self, connection: Connection) -> bool:
        self._connections.pop(connection.file_descriptor, None)
        with _opened(connection.file_descriptor) as opened, contextlib.suppress(OSError):
            if opened is not None and _endpoints(opened) == (connection.local_port, connection.host, connection.port):
                _disconnect(opened)
                return True
        return False


@contextmanager
def _opened(descriptor: int) -> Iterator[socket.socket | None]:
    """Yield the socket of a file descriptor that belongs to someone else, or None; it is never closed here."""
    try:
        opened = socket.socket(fileno=descriptor)
    except OSError:
        yield None
        return
    try:
        yield opened
    finally:
        opened.detach()


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _endpoints(opened: socket.socket) -> tuple[int, str, int] | None:
    """Return local port, host and port of the peer of a connection."""
    if opened.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    try:
        peer = opened.getpeername()
        return opened.getsockname()[1], peer_identity.host_of(peer[0]), peer[1]
    except OSError:
        return None  # it listens, or is closed


def _disconnect(opened: socket.socket) -> None:
    """End a connection and drop what it has received: after a shutdown the library would still parse all of it."""
    libc = ctypes.CDLL(None)
    if libc.connect(opened.fileno(), _UNSPECIFIED, len(_UNSPECIFIED)) != 0:
        opened.shutdown(socket.SHUT_RDWR)


def _received_bytes(opened: socket.socket) -> int:
    try:
        info = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    except (OSError, AttributeError):
        return 0
    if len(info) < _BYTES_RECEIVED + 8:
        return 0
    return int(struct.unpack_from("Q", info, _BYTES_RECEIVED)[0])


def _resident_bytes() -> int:
    try:
        return int(_MEMORY.read_bytes().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def _peer(address: str) -> Peer | None:
    port = address.rpartition(":")[2]
    return (peer_identity.host_of(address), int(port)) if port.isdecimal() else None
