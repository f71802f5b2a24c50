"""Queue messages for one slow reader with bounded memory: a newer message replaces the older one of the same key."""

import asyncio
from collections.abc import Sequence


class Overflow(Exception):
    """The mailbox is full: the reader is too slow even for the newest message of every key."""


class Mailbox:
    """Messages for one reader, at most one per key, in the order in which they were last written.

    Messages are bytes that many mailboxes may share. `put` never waits: a full mailbox raises `Overflow`, and its owner
    decides whether to wait for room beforehand (`wait_for_room`) or to disconnect the reader.
    """

    def __init__(self, *, max_items: int, max_bytes: int) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._messages: dict[str, bytes] = {}
        self._bytes = 0
        self._readable = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._closed: BaseException | None = None

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def has_room(self) -> bool:
        """Whether a writer that can wait should write now; half of the space is reserved for those that cannot."""
        return 2 * len(self._messages) <= self._max_items and 2 * self._bytes <= self._max_bytes

    @property
    def is_closed(self) -> bool:
        """Whether new messages are ignored."""
        return self._closed is not None

    def put(self, key: str, message: bytes) -> None:
        """Queue `message`; it replaces an older one of the same key."""
        if self._closed is not None:
            return
        self.discard(key)
        # An empty mailbox takes a message of any size: otherwise a large one could never be sent.
        crowded = len(self._messages) >= self._max_items or self._bytes + len(message) > self._max_bytes
        if self._messages and crowded:
            raise Overflow
        self._messages[key] = message
        self._bytes += len(message)
        if not self.has_room:
            self._room.clear()
        self._readable.set()

    def discard(self, key: str) -> None:
        """Remove the message of `key`, if any: something newer makes it obsolete."""
        older = self._messages.pop(key, None)
        if older is not None:
            self._bytes -= len(older)

    async def wait_for_room(self) -> None:
        """Wait until the reader has taken messages, or the mailbox is closed."""
        await self._room.wait()

    async def take(self) -> Sequence[bytes]:
        """Wait for messages and return all of them; raise the reason of `close` once none is left."""
        while not self._messages:
            if self._closed is not None:
                raise self._closed
            self._readable.clear()
            await self._readable.wait()
        taken = list(self._messages.values())
        self._messages = {}
        self._bytes = 0
        self._room.set()
        return taken

    def close(self, reason: BaseException) -> None:
        """Ignore new messages; the reader gets the queued ones and then `reason` is raised."""
        if self._closed is None:
            self._closed = reason
        self._readable.set()
        self._room.set()
