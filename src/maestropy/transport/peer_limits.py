"""Limit what one peer may use: failed attempts per time, and things that are open at once.

The tables are bounded. A full table forgets the peer that was active longest ago. For one event loop.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


class TooMany(Exception):
    """A peer, or all peers together, have reached a limit."""


@dataclass(slots=True)
class AttemptLimit:
    """A token bucket per peer: `burst` attempts at once, then one every `seconds`."""

    burst: int
    seconds: float
    clock: Callable[[], float]
    capacity: int = 4096
    _used: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    """Attempts in use and the time of the last change, per peer; the least recently active peer first."""

    def __len__(self) -> int:
        return len(self._used)

    def take(self, peer: str) -> bool:
        """Use up one attempt of the peer; return False if it has none left."""
        used = self._current(peer)
        if used > self.burst - 1:
            return False
        self._store(peer, used + 1)
        return True

    def give_back(self, peer: str) -> None:
        """Return one attempt, because it has succeeded."""
        self._store(peer, self._current(peer) - 1)

    def _current(self, peer: str) -> float:
        used, changed_at = self._used.get(peer, (0.0, 0.0))
        return max(0.0, used - (self.clock() - changed_at) / self.seconds)

    def _store(self, peer: str, used: float) -> None:
        self._used.pop(peer, None)
        if used > 0:
            self._used[peer] = (used, self.clock())
        if len(self._used) > self.capacity:
            self._used.popitem(last=False)


class OpenLimit:
    """Counts what is open, in total and per peer."""

    def __init__(self, *, total: int, per_peer: int) -> None:
        self._total = total
        self._per_peer = per_peer
        self._open: Counter[str] = Counter()
        self._count = 0

    @contextmanager
    def held(self, peer: str) -> Iterator[None]:
        """Count one more while the block runs; raise `TooMany` at a limit."""
        if self._open[peer] >= self._per_peer:
            raise TooMany(f"this client has {self._per_peer} open subscriptions")
        if self._count >= self._total:
            raise TooMany(f"the server has {self._total} open subscriptions")
        self._open[peer] += 1
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
            self._open[peer] -= 1
            if not self._open[peer]:
                del self._open[peer]
