"""Who listens: open subscriptions by what they listen to (a consumer's name, or a source).

Every subscriber has its own mailbox, so a slow one holds up nobody. One that cannot even keep up with the newest
message per bundle is let go with a reason; it comes back and resyncs, which is how it learns what it missed.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from maestropy.aio import mailbox, tasks


class TooSlow(Exception):
    """The subscriber did not read fast enough."""

    def __init__(self) -> None:
        super().__init__("the subscriber is too slow: its queue is full; subscribe again and resync")


class Leaving(Exception):
    """The server is shutting down."""

    def __init__(self) -> None:
        super().__init__("the server is shutting down; subscribe again")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subscriber:
    """One open subscription."""

    id: str
    topic: str
    box: mailbox.Mailbox = field(repr=False)
    let_go: Callable[[], object] = field(repr=False)
    """Ends the stream even while a write to it is stuck."""

    def send(self, key: str, message: bytes) -> None:
        """Queue a message; a newer one under the same key replaces it."""
        try:
            self.box.put(key, message)
        except mailbox.Overflow:
            self.box.close(TooSlow())
            self.let_go()


class Streams:
    """All open subscriptions of one kind."""

    def __init__(self, *, max_items: int, max_bytes: int) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._by_topic: dict[str, dict[str, Subscriber]] = {}
        self._expected: dict[str, asyncio.Event] = {}

    def open(self, topic: str, *, subscription_id: str, let_go: Callable[[], object]) -> Subscriber:
        """Add a subscriber of `topic`; `let_go` is called when it does not keep up."""
        box = mailbox.Mailbox(max_items=self._max_items, max_bytes=self._max_bytes)
        subscriber = Subscriber(id=subscription_id, topic=topic, box=box, let_go=let_go)
        self._by_topic.setdefault(topic, {})[subscription_id] = subscriber
        arrived = self._expected.pop(topic, None)
        if arrived is not None:
            arrived.set()
        return subscriber

    async def wait_for(self, topic: str, *, seconds: float) -> bool:
        """Wait until somebody listens to `topic`; say whether anybody does."""
        if topic not in self._by_topic:
            arrived = self._expected.setdefault(topic, asyncio.Event())
            try:
                async with asyncio.timeout(seconds):
                    await arrived.wait()
            except TimeoutError:
                self._expected.pop(topic, None)
        return topic in self._by_topic

    def close(self, subscriber: Subscriber) -> None:
        """Forget a subscriber whose stream has ended."""
        subscriber.box.close(Leaving())
        of_topic = self._by_topic.get(subscriber.topic, {})
        of_topic.pop(subscriber.id, None)
        if not of_topic:
            self._by_topic.pop(subscriber.topic, None)

    def close_all(self) -> None:
        """End every stream, after what is queued."""
        for of_topic in list(self._by_topic.values()):
            for subscriber in of_topic.values():
                subscriber.box.close(Leaving())

    def of(self, topic: str) -> Collection[Subscriber]:
        """Return the subscribers of `topic`."""
        return self._by_topic.get(topic, {}).values()

    def keeps_up(self, topic: str) -> bool:
        """Say whether somebody of `topic` reads; who does not is let go and must not hold up the others."""
        return any(subscriber.box.has_room for subscriber in self.of(topic))

    async def wait_for_room(self, topic: str) -> None:
        """Wait until somebody of `topic` reads, or has gone."""
        boxes = [subscriber.box for subscriber in self.of(topic)]
        if boxes and not any(box.has_room for box in boxes):
            await tasks.first(box.wait_for_room() for box in boxes)

    def topics(self) -> Collection[str]:
        """Return everything that somebody listens to."""
        return self._by_topic.keys()

    def __contains__(self, topic: object) -> bool:
        return topic in self._by_topic
