"""Works through Maestro: found by labels on the server, written over gRPC, waited for by watching."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.errors import NotFound
from maestropy.sdk.observed import EventType
from maestropy.sdk.retry import RetryPolicy
from maestropy.sdk.work import Work
from maestropy.wire.work import ManifestWork

PATIENT = RetryPolicy(attempts=60, deadline_seconds=90)
"""For adapters: a server that is replaced is away for a minute, and an event has two."""


class MaestroTransport:
    """The transport over a Maestro client; the client's source is what makes works its own."""

    def __init__(self, client: AsyncMaestro) -> None:
        self._client = client

    async def query(self, *, labels: Mapping[str, str], consumer: str, name: str) -> Sequence[Work]:
        """Return works by labels, on all clusters, or one by name."""
        if not name:
            return [each async for each in self._client.all_works().list(labels=dict(labels))]
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
        """Ask for a work's end."""
        await self._client.works(consumer).delete(name)

    async def wait(
        self, *, labels: Mapping[str, str], until: Callable[[Sequence[Work]], bool], seconds: float
    ) -> Sequence[Work]:
        """Follow the works until they are as wanted."""
        found: dict[str, Work] = {}
        is_complete = False
        try:
            async with (
                asyncio.timeout(seconds),
                self._client.all_works().watch(labels=dict(labels), bookmarks=True) as events,
            ):
                async for told in events:
                    if told.type is EventType.SYNCED:
                        is_complete = True
                    elif told.type is EventType.DELETED:
                        found.pop(told.work.id, None)
                    else:
                        found[told.work.id] = told.work
                    if is_complete and until(list(found.values())):
                        break
        except TimeoutError:
            if not is_complete:
                return await self.query(labels=labels, consumer="", name="")
        return list(found.values())


def _unreported(sent: Work) -> Work:
    """Return what was just written without the status it had before: that one speaks of something older."""
    return Work.wrap(ManifestWork({**sent.manifest_work.body, "status": {}}))
