"""Send a list of bundles of any length.

A short list is read, the connection given back, and then sent. A long one is sent while it is read, a batch at a time,
at the pace of its reader: neither its length nor a slow reader costs memory. A reader that leaves or takes nothing any
more loses its connection and its snapshot at the next batch.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence, Set
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from maestropy.server.rest import views
from maestropy.store import listing, pool

_KIND: Final = "ResourceBundleList"
_SPEC_KEYS: Final = frozenset({"delete_option", "manifest_configs", "manifests"})

# Measured: below a quarter of this the round trips to the database show, above it only memory grows.
BATCH_BYTES: Final = 1024 * 1024
# A reader that takes nothing for so long is gone or means harm; its connection is needed.
STALL_SECONDS: Final = 30.0
# Bundles written by a Go server are rendered for the next reader, but not without bound.
_STALE_ROWS: Final = 500


class Stalled(Exception):
    """The client stopped reading its list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the client asked for."""

    question: listing.Question
    page: int
    shown: Set[str]

    def columns(self) -> listing.Columns:
        """Return the heavy columns that have to be read."""
        return listing.Columns(
            data=not _SPEC_KEYS.isdisjoint(self.shown),
            metadata="metadata" in self.shown,
            status="status" in self.shown,
        )


class BundleList:
    """The response to one list request."""

    def __init__(
        self,
        wanted: Wanted,
        *,
        database: pool.Database,
        streams: asyncio.Semaphore,
        on_stale: Callable[[Sequence[str]], Awaitable[None]],
    ) -> None:
        """Answer `wanted`; `on_stale` is told, after the last byte, which bundles had no valid rendition."""
        self._wanted = wanted
        self._database = database
        self._streams = streams
        self._on_stale = on_stale
        self._stale: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the list."""
        request = Request(scope, receive)
        if not await self._serve(request, send, has_place=False):
            # The line is waited in without a connection, so long lists can never take all of them.
            async with self._streams:
                await self._serve(request, send, has_place=True)
        if self._stale:
            await self._on_stale(self._stale)

    async def _serve(self, request: Request, send: Send, *, has_place: bool) -> bool:
        """Send the list, or return False: it is long, and too many long ones are under way."""
        async with listing.snapshot(self._database) as snapshot:
            outline = await snapshot.outline(self._wanted.question, self._wanted.columns())
            if not outline.fits(BATCH_BYTES):
                if self._streams.locked() and not has_place:
                    return False
                place: AbstractAsyncContextManager[None] = nullcontext() if has_place else self._streams
                async with place:
                    await self._stream(snapshot, outline, request=request, send=send)
                return True
            items = await self._items(snapshot, [bundle_id for bundle_id, _ in outline.entries])
        body = views.whole_list(items, kind=_KIND, page=self._wanted.page, total=outline.total)
        await views.response(body)(request.scope, request.receive, send)
        return True

    async def _stream(
        self, snapshot: listing.Snapshot, outline: listing.Outline, *, request: Request, send: Send
    ) -> None:
        before = b""
        for ids in outline.batches(BATCH_BYTES):
            piece = b",".join(await self._items(snapshot, ids))
            if not before:
                # The first batch is read before the first byte is sent: until here a failure gets a proper answer.
                await send({"type": "http.response.start", "status": 200, "headers": views.RAW_HEADERS})
                before = views.list_head()
            if await request.is_disconnected():
                raise ClientDisconnect
            await _send_in_time(send, before + piece, more=True)
            before = b","
        size = len(outline.entries)
        tail = views.list_tail(_KIND, page=self._wanted.page, size=size, total=outline.total)
        await _send_in_time(send, tail, more=False)

    async def _items(self, snapshot: listing.Snapshot, ids: Sequence[str]) -> list[bytes]:
        rows = await snapshot.rows(ids, self._wanted.columns())
        room = _STALE_ROWS - len(self._stale)
        self._stale += [row.id for row in rows if not row.rendered][:room]
        return [views.bundle(row, self._wanted.shown) for row in rows]


async def _send_in_time(send: Send, body: bytes, *, more: bool) -> None:
    try:
        async with asyncio.timeout(STALL_SECONDS):
            await send({"type": "http.response.body", "body": body, "more_body": more})
    except TimeoutError as error:
        raise Stalled(f"the client took nothing for {STALL_SECONDS:.0f} seconds") from error
