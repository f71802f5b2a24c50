"""Hold back watch events about an object while a request about it is under way.

The watch is often quicker than the response. The event of our own write would then look like another client's write and
cost an extra reconcile. Delivered after the response it is recognised. Every held event is delivered.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from maestropy.kube.watch_changes import Added, Deleted, Modified

Key = TypeVar("Key", bound=Hashable)
ObjectChange = Added | Modified | Deleted


class WatchHold(Generic[Key]):
    """Watch events that wait for responses."""

    def __init__(self, handle: Callable[[Key, ObjectChange], None]) -> None:
        self._handle = handle
        self._held_back: dict[Key, list[ObjectChange]] = {}
        self._requests: dict[Key, int] = {}

    @contextmanager
    def during(self, key: Key) -> Iterator[None]:
        """Hold back events about `key` in this block; store the response before its end."""
        self._requests[key] = self._requests.get(key, 0) + 1
        try:
            yield
        finally:
            self._requests[key] -= 1
            if not self._requests[key]:
                del self._requests[key]
                for change in self._held_back.pop(key, ()):
                    self._handle(key, change)

    def deliver(self, key: Key, change: ObjectChange) -> None:
        """Deliver an event, now or after the response."""
        if key in self._requests:
            self._held_back.setdefault(key, []).append(change)
        else:
            self._handle(key, change)
