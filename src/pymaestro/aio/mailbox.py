"""One writer, one slow reader, bounded memory: a queue in which the newest value of a key replaces the older one."""

import asyncio
from collections.abc import Sequence


class Overflow(Exception):
    """The reader is too slow for even the newest value of every key."""


class Mailbox:
    """Messages for one reader, at most one per key, in the order in which their keys first came.

    Values are bytes that many mailboxes may share. `put` never waits: a mailbox that is full refuses, and its owner
    decides whether to wait for room (`wait_for_room`) or to give the reader up.
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

    def has_room(self, size: int) -> bool:
        """Say whether a message of `size` bytes under a new key fits; the first message always does."""
        if not self._messages:
            return True
        return len(self._messages) < self._max_items and self._bytes + size <= self._max_bytes

    def put(self, key: str, message: bytes) -> None:
        """Queue `message`, in place of an older one under the same key."""
        if self._closed is not None:
            return
        older = self._messages.get(key)
        if older is None and not self.has_room(len(message)):
            raise Overflow
        self._messages[key] = message
        self._bytes += len(message) - (len(older) if older is not None else 0)
        if not self.has_room(1):
            self._room.clear()
        self._readable.set()

    async def wait_for_room(self) -> None:
        """Wait until the reader has taken something out, or has gone."""
        await self._room.wait()

    async def take(self) -> Sequence[bytes]:
        """Wait for messages and return all of them; raises what `close` was given."""
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
