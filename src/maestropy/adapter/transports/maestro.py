"""Apply works through Maestro: query by labels over REST, write over gRPC, wait with a watch."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.errors import NotFound
from maestropy.sdk.retry import RetryPolicy
from maestropy.sdk.watch_events import EventType
from maestropy.sdk.work import Work
from maestropy.wire.works.work import ManifestWork

ADAPTER_RETRY = RetryPolicy(attempts=60, deadline_seconds=90)
"""For adapters: a server restart may take one minute, and an event has two."""


class MaestroTransport:
    """The transport over a Maestro client; the source ID of the client owns the works."""

    def __init__(self, client: AsyncMaestro) -> None:
        self._client = client

    async def query(self, *, labels: Mapping[str, str], consumer: str, name: str) -> Sequence[Work]:
        """Return works by labels, on all clusters, or one by name."""
        if not name:
            return [work async for work in self._client.all_works().list(labels=dict(labels))]
        try:
            return [await self._client.works(consumer).get(name)]
        except NotFound:
            return []

    async def create(self, work: Work, *, consumer: str) -> Work:
        """Store a new work."""
        return _unreported(await self._client.works(consumer).create(work))

    async def patch(self, work: Work, *, consumer: str, patch: Mapping[str, Any], version: int) -> Work:
        """Change the stored work of this version."""
        return _unreported(await self._client.works(consumer).patch(work.name, patch, version=version))

    async def delete(self, name: str, *, consumer: str) -> None:
        """Request the deletion of a work."""
        await self._client.works(consumer).delete(name)

    async def wait(
        self, *, labels: Mapping[str, str], until: Callable[[Sequence[Work]], bool], seconds: float
    ) -> Sequence[Work]:
        """Watch the works until the condition is true, or the time is over."""
        works: dict[str, Work] = {}
        is_complete = False
        try:
            async with (
                asyncio.timeout(seconds),
                self._client.all_works().watch(labels=dict(labels), bookmarks=True) as events,
            ):
                async for event in events:
                    if event.type is EventType.SYNCED:
                        is_complete = True
                    elif event.type is EventType.DELETED:
                        works.pop(event.work.id, None)
                    else:
                        works[event.work.id] = event.work
                    if is_complete and until(list(works.values())):
                        break
        except TimeoutError:
            if not is_complete:
                return await self.query(labels=labels, consumer="", name="")
        return list(works.values())


def _unreported(sent: Work) -> Work:
    """Return a work that was just written without its status, which belongs to an older version."""
    return Work.wrap(ManifestWork({**sent.manifest_work.body, "status": {}}))
