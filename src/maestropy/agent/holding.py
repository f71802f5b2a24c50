"""Hold back what the watch tells of something while a request of ours about it is under way.

The watch is often quicker than the answer. Told at once, the echo of our own write would look like somebody else's, and
cost its work a turn for nothing. Told after the answer it is recognised. What was held back is always told.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from maestropy.kube.roster import Added, Deleted, Modified

Key = TypeVar("Key", bound=Hashable)
Told = Added | Modified | Deleted


class Holding(Generic[Key]):
    """What waits for answers."""

    def __init__(self, take: Callable[[Key, Told], None]) -> None:
        self._take = take
        self._waiting: dict[Key, list[Told]] = {}
        self._requests: dict[Key, int] = {}

    @contextmanager
    def during(self, key: Key) -> Iterator[None]:
        """Hold back what is told of `key` in this block; note the answer before its end."""
        self._requests[key] = self._requests.get(key, 0) + 1
        try:
            yield
        finally:
            self._requests[key] -= 1
            if not self._requests[key]:
                del self._requests[key]
                for change in self._waiting.pop(key, ()):
                    self._take(key, change)

    def tell(self, key: Key, change: Told) -> None:
        """Pass a change on, now or after the answer."""
        if key in self._requests:
            self._waiting.setdefault(key, []).append(change)
        else:
            self._take(key, change)
