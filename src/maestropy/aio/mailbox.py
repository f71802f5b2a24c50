"""One writer, one slow reader, bounded memory: a queue in which the newest value of a key replaces the older one."""

import asyncio
from collections.abc import Sequence


class Overflow(Exception):
    """The reader is too slow for even the newest value of every key."""


class Mailbox:
    """Messages for one reader, at most one per key, in the order in which they were last written.

    Values are bytes that many mailboxes may share. `put` never waits: a full mailbox refuses, and its owner decides
    whether to wait for room beforehand (`wait_for_room`) or to give the reader up.
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
        """Whether a writer that cares should write now; half of the space is kept for those that cannot wait."""
        return 2 * len(self._messages) <= self._max_items and 2 * self._bytes <= self._max_bytes

    @property
    def is_closed(self) -> bool:
        """Whether nothing new is taken."""
        return self._closed is not None

    def put(self, key: str, message: bytes) -> None:
        """Queue `message`, in place of an older one under the same key."""
        if self._closed is not None:
            return
        self.discard(key)
        # A single message may be as large as it likes: refusing it would refuse it for ever.
        crowded = len(self._messages) >= self._max_items or self._bytes + len(message) > self._max_bytes
        if self._messages and crowded:
            raise Overflow
        self._messages[key] = message
        self._bytes += len(message)
        if not self.has_room:
            self._room.clear()
        self._readable.set()

    def discard(self, key: str) -> None:
        """Forget the message under `key`, if any: something newer makes it pointless."""
        older = self._messages.pop(key, None)
        if older is not None:
            self._bytes -= len(older)

    async def wait_for_room(self) -> None:
        """Wait until the reader has taken something out, or has gone."""
        await self._room.wait()

    async def take(self) -> Sequence[bytes]:
        """Wait for messages and return all of them; raises what `close` was given once nothing is left."""
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
        """Refuse new messages; the reader gets what is queued and then `reason`."""
        if self._closed is None:
            self._closed = reason
        self._readable.set()
        self._room.set()
