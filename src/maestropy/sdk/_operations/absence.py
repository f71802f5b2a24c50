"""Find out which of many works do not exist yet, with one request for some of them at a time.

Reading every work costs several times what creating it does. An answer may be outdated when it is used: a create that
finds the work is repeated as an update by the caller.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

_AT_ONCE = 100


class AbsentWorks:
    """Says of each of these IDs whether it had no work when its part of them was read."""

    def __init__(self, ids: Iterable[str], existing: Callable[[Sequence[str]], Awaitable[Collection[str]]]) -> None:
        """`existing` returns those of some IDs that have a work."""
        # An ID that is given twice has a work after its first one is applied.
        ids_given_once = [id_ for id_, count in Counter(ids).items() if count == 1]
        self._existing = existing
        self._parts = {id_: number // _AT_ONCE for number, id_ in enumerate(ids_given_once)}
        self._ids = ids_given_once
        self._read: dict[int, Collection[str]] = {}
        self._locks: dict[int, asyncio.Lock] = {}

    async def is_absent(self, id_: str) -> bool:
        """Return whether there was no work with this ID; False if that is not known."""
        part = self._parts.get(id_)
        if part is None:
            return False
        async with self._locks.setdefault(part, asyncio.Lock()):
            if part not in self._read:
                self._read[part] = await self._existing(self._ids[part * _AT_ONCE : (part + 1) * _AT_ONCE])
        return id_ not in self._read[part]
