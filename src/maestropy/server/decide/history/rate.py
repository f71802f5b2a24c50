"""Bound how many entries of one kind a client can cause that changes nothing: refused requests, connects.

A token bucket for each client and one for all. What is left out is counted, so that the history says how much it
lacks. No clock: the time is an argument.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

_MAX_CLIENTS: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How many entries are recorded at once, and then one for each time."""

    burst: int
    seconds: float


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float

    def take(self, now: float, rate: Rate) -> bool:
        self.tokens = min(float(rate.burst), self.tokens + max(0.0, now - self.at) / rate.seconds)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class Budget:
    """What clients may still add to the history."""

    def __init__(self, *, each: Rate, all_clients: Rate) -> None:
        self._each = each
        self._all = all_clients
        self._shared = _Bucket(float(all_clients.burst), 0.0)
        self._clients: OrderedDict[str, _Bucket] = OrderedDict()
        self._left_out = 0

    def allows(self, client: str, now: float) -> bool:
        """Return whether an entry of `client` is recorded; one that is not is counted."""
        bucket = self._clients.pop(client, None) or _Bucket(float(self._each.burst), now)
        self._clients[client] = bucket
        if len(self._clients) > _MAX_CLIENTS:
            self._clients.popitem(last=False)
        if bucket.take(now, self._each) and self._shared.take(now, self._all):
            return True
        self._left_out += 1
        return False

    def take_left_out(self) -> int:
        """Return how many entries were left out since the last call."""
        count, self._left_out = self._left_out, 0
        return count


def for_refusals() -> Budget:
    """Return the budget of refused requests: 86,400 entries a day at most, whatever is sent."""
    return Budget(each=Rate(burst=20, seconds=15), all_clients=Rate(burst=500, seconds=1))


def for_connections() -> Budget:
    """Return the budget of connects and disconnects: all agents of a large fleet may reconnect at once."""
    return Budget(each=Rate(burst=20, seconds=30), all_clients=Rate(burst=40_000, seconds=0.5))
