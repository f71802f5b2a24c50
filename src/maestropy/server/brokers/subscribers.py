"""Hold the open subscriptions of agents or sources, by topic: a consumer name or a source ID.

Every subscriber has its own mailbox, so a slow one does not delay the others. One that cannot even keep up with the
newest message of each resource is disconnected with a reason. It subscribes again and resyncs what it missed.
"""

import asyncio
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from maestropy.aio import mailbox, tasks

_SLICE_SECONDS = 0.1
"""Streams that are ended gradually end in slices of this time."""


class SubscriberTooSlow(Exception):
    """The subscriber did not read fast enough."""

    def __init__(self) -> None:
        super().__init__("the subscriber is too slow: its queue is full; subscribe again and resync")


class ServerStopping(Exception):
    """The server is shutting down."""

    def __init__(self) -> None:
        super().__init__("the server is shutting down; subscribe again")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subscriber:
    """One open subscription."""

    id: str
    topic: str
    box: mailbox.Mailbox = field(repr=False)
    disconnect: Callable[[], object] = field(repr=False)
    """Ends the stream even while a write to it is blocked."""

    def send(self, key: str, message: bytes) -> None:
        """Queue a message; a newer one under the same key replaces it."""
        try:
            self.box.put(key, message)
        except mailbox.Overflow:
            self.box.close(SubscriberTooSlow())
            self.disconnect()


class Subscribers:
    """All open subscriptions of agents, or all of sources."""

    def __init__(self, *, max_items: int, max_bytes: int) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._by_topic: dict[str, dict[str, Subscriber]] = {}
        self._awaited: dict[str, asyncio.Event] = {}

    def open(self, topic: str, *, subscription_id: str, disconnect: Callable[[], object]) -> Subscriber:
        """Add a subscriber of `topic`; `disconnect` is called when its mailbox overflows."""
        box = mailbox.Mailbox(max_items=self._max_items, max_bytes=self._max_bytes)
        subscriber = Subscriber(id=subscription_id, topic=topic, box=box, disconnect=disconnect)
        self._by_topic.setdefault(topic, {})[subscription_id] = subscriber
        subscribed = self._awaited.pop(topic, None)
        if subscribed is not None:
            subscribed.set()
        return subscriber

    async def wait_for_subscriber(self, topic: str, *, seconds: float) -> bool:
        """Wait until `topic` has a subscriber; return whether it has one."""
        if topic not in self._by_topic:
            subscribed = self._awaited.setdefault(topic, asyncio.Event())
            try:
                async with asyncio.timeout(seconds):
                    await subscribed.wait()
            except TimeoutError:
                self._awaited.pop(topic, None)
        return topic in self._by_topic

    def close(self, subscriber: Subscriber) -> None:
        """Remove a subscriber whose stream has ended."""
        subscriber.box.close(ServerStopping())
        of_topic = self._by_topic.get(subscriber.topic, {})
        of_topic.pop(subscriber.id, None)
        if not of_topic:
            self._by_topic.pop(subscriber.topic, None)

    def close_all(self) -> None:
        """End every stream, after the messages that are queued."""
        for of_topic in list(self._by_topic.values()):
            for subscriber in of_topic.values():
                subscriber.box.close(ServerStopping())

    @property
    def count(self) -> int:
        """How many streams are open."""
        return sum(map(len, self._by_topic.values()))

    async def close_gradually(self, *, seconds: float) -> None:
        """End the streams that are open now, some at a time, within `seconds`.

        All subscribers at once would wait for each other at the instance that they connect to next.
        """
        waiting = [subscriber for of_topic in self._by_topic.values() for subscriber in of_topic.values()]
        slices = 1 + int(seconds / _SLICE_SECONDS)
        at_once = max(1, math.ceil(len(waiting) / slices))
        for start in range(0, len(waiting), at_once):
            if start:
                await asyncio.sleep(_SLICE_SECONDS)
            for subscriber in waiting[start : start + at_once]:
                subscriber.box.close(ServerStopping())

    def close_topic(self, topic: str) -> None:
        """End the streams of `topic`: its subscribers subscribe again and resync."""
        for subscriber in list(self.of(topic)):
            subscriber.box.close(ServerStopping())

    def of(self, topic: str) -> Collection[Subscriber]:
        """Return the subscribers of `topic`."""
        return self._by_topic.get(topic, {}).values()

    def has_room(self, topic: str) -> bool:
        """Return whether at least one subscriber of `topic` reads; the others must not hold it up."""
        return any(subscriber.box.has_room for subscriber in self.of(topic))

    async def wait_for_room(self, topic: str) -> None:
        """Wait until one subscriber of `topic` has room, or has ended."""
        boxes = [subscriber.box for subscriber in self.of(topic)]
        if boxes and not any(box.has_room for box in boxes):
            await tasks.wait_for_first(box.wait_for_room() for box in boxes)

    def topics(self) -> Collection[str]:
        """Return every topic that has a subscriber."""
        return self._by_topic.keys()

    def __contains__(self, topic: object) -> bool:
        return topic in self._by_topic
