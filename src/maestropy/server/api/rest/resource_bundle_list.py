"""Send a list of resource bundles of any length.

A short list is read, the database connection released, and the list sent. A long one is sent in batches while it is
read, so that neither its length nor a slow client costs memory. A client that disconnects or stops reading loses its
database connection at the next batch.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence, Set
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from maestropy.server.api.rest import representations
from maestropy.server.api.rest.stream_slots import StreamSlots
from maestropy.store import pool, resource_lists

_KIND: Final = "ResourceBundleList"
_SPEC_KEYS: Final = frozenset({"delete_option", "manifest_configs", "manifests"})

# Measured: below a quarter of this the database round trips are visible, above it only memory grows.
BATCH_BYTES: Final = 1024 * 1024
# A client that takes longer for one batch, so less than 35 KiB a second, must not hold a database connection.
STALL_SECONDS: Final = 30.0
# Renditions of resources that a Go server wrote are filled for the next reader, up to this number.
_STALE_ROWS: Final = 500


class ClientStalled(Exception):
    """The client stopped reading its list, or reads it too slowly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """Query, page and keys of one list request."""

    query: resource_lists.ListQuery
    page: int
    keys: Set[str]

    def columns(self) -> resource_lists.ResourceColumns:
        """Return the large columns that must be read."""
        return resource_lists.ResourceColumns(
            data=not _SPEC_KEYS.isdisjoint(self.keys),
            metadata="metadata" in self.keys,
            status="status" in self.keys,
        )


class ResourceBundleList:
    """The response to one list request."""

    def __init__(
        self,
        list_request: ListRequest,
        *,
        database: pool.Database,
        streams: StreamSlots,
        client: str,
        on_stale: Callable[[Sequence[str]], Awaitable[None]],
    ) -> None:
        """`client` has a share of the streams; `on_stale` gets, at the end, the IDs without a valid rendition."""
        self._list_request = list_request
        self._database = database
        self._streams = streams
        self._client = client
        self._on_stale = on_stale
        self._stale: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the list."""
        request = Request(scope, receive)
        if not await self._serve(request, send, has_slot=False):
            # Wait without a database connection, so that long lists can never hold all of them.
            async with self._streams.held(self._client):
                await self._serve(request, send, has_slot=True)
        if self._stale:
            await self._on_stale(self._stale)

    async def _serve(self, request: Request, send: Send, *, has_slot: bool) -> bool:
        """Send the list, or return False if it is long and too many are being sent, to everybody or to this client."""
        async with resource_lists.snapshot(self._database) as snapshot:
            outline = await snapshot.outline(self._list_request.query, self._list_request.columns())
            if not outline.fits(BATCH_BYTES):
                if not has_slot and not self._streams.is_free(self._client):
                    return False
                slot: AbstractAsyncContextManager[None] = (
                    nullcontext() if has_slot else self._streams.held(self._client)
                )
                async with slot:
                    await self._stream(snapshot, outline, request=request, send=send)
                return True
            items = await self._items(snapshot, [resource_id for resource_id, _ in outline.entries])
        body = representations.whole_list(items, kind=_KIND, page=self._list_request.page, total=outline.total)
        await representations.response(body)(request.scope, request.receive, send)
        return True

    async def _stream(
        self,
        snapshot: resource_lists.ResourceSnapshot,
        outline: resource_lists.PageOutline,
        *,
        request: Request,
        send: Send,
    ) -> None:
        prefix = b""
        for ids in outline.batches(BATCH_BYTES):
            items = b",".join(await self._items(snapshot, ids))
            if not prefix:
                # The first batch is read before the first byte is sent: a failure until here gets an error response.
                await send({"type": "http.response.start", "status": 200, "headers": representations.RAW_HEADERS})
                prefix = representations.list_head()
            if await request.is_disconnected():
                raise ClientDisconnect
            await _send_in_time(send, prefix + items, has_more=True)
            prefix = b","
        size = len(outline.entries)
        tail = representations.list_tail(_KIND, page=self._list_request.page, size=size, total=outline.total)
        await _send_in_time(send, tail, has_more=False)

    async def _items(self, snapshot: resource_lists.ResourceSnapshot, ids: Sequence[str]) -> list[bytes]:
        rows = await snapshot.rows(ids, self._list_request.columns())
        capacity = _STALE_ROWS - len(self._stale)
        self._stale += [row.id for row in rows if not row.is_rendered][:capacity]
        return [representations.resource_bundle(row, self._list_request.keys) for row in rows]


async def _send_in_time(send: Send, body: bytes, *, has_more: bool) -> None:
    try:
        async with asyncio.timeout(STALL_SECONDS):
            await send({"type": "http.response.body", "body": body, "more_body": has_more})
    except TimeoutError as error:
        rate = BATCH_BYTES / STALL_SECONDS / 1024
        raise ClientStalled(
            f"the client took less than {rate:.0f} KiB a second for {STALL_SECONDS:.0f} seconds; use shorter pages"
        ) from error
