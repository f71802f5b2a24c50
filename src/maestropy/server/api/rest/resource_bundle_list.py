"""Send a list of resource bundles of any length.

A short list is read, the database connection released, and the list sent. A long one is sent in batches while it is
read, so that neither its length nor a slow client costs memory. When the client disconnects, the statement that runs
for it is cancelled; a client that stops reading loses its database connection. A search that no index serves waits for
one of the slots of long lists, and is stopped after some seconds with a reason.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence, Set
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope, Send

from maestropy.aio import tasks
from maestropy.server.api.rest import continuation, representations
from maestropy.server.api.rest.dependencies import ListReads
from maestropy.server.api.rest.http import error_catalogue
from maestropy.server.api.rest.http import errors as rest_errors
from maestropy.server.api.rest.stream_slots import NoSlot, StreamSlots
from maestropy.store import errors
from maestropy.store.lists import resource_lists
from maestropy.store.lists.query import ListQuery
from maestropy.store.postgres import pool
from maestropy.store.search import serving
from maestropy.wire import positions

_KIND: Final = "ResourceBundleList"
_SPEC_KEYS: Final = frozenset({"delete_option", "manifest_configs", "manifests"})

# Measured: below a quarter of this the database round trips are visible, above it only memory grows.
BATCH_BYTES: Final = 1024 * 1024
# A client that takes longer for one batch, so less than 35 KiB a second, must not hold a database connection.
STALL_SECONDS: Final = 30.0
_BUSY: Final = (
    "Other long lists, of this client or of others, left no room for this one; try again later, use shorter pages, or "
    "search by what an index serves (docs/search.md)"
)
# Renditions of resources that a Go server wrote are filled for the next reader, up to this number.
_STALE_ROWS: Final = 500


class ClientStalled(Exception):
    """The client stopped reading its list, or reads it too slowly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """Query, page and keys of one list request."""

    query: ListQuery
    page: int
    keys: Set[str]
    fingerprint: str = ""
    """What ties the token for the next page to this list."""

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
        reads: ListReads,
        position: positions.Position | None,
        streams: StreamSlots,
        client: str,
        on_stale: Callable[[Sequence[str]], Awaitable[None]],
    ) -> None:
        """`client` has a share of the streams; `on_stale` gets, at the end, the IDs without a valid rendition."""
        self._list_request = list_request
        self._reads = reads
        self._position = position
        self._streams = streams
        self._client = client
        self._on_stale = on_stale
        self._stale: list[str] = []
        self._is_started = False
        self._is_sent = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the list."""

        async def observed_send(message: Message) -> None:
            self._is_started = True
            self._is_sent = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        try:
            await tasks.run_while(
                self._read(Request(scope, receive), observed_send), ending=self._disconnection(receive)
            )
        except tasks.Abandoned:
            raise ClientDisconnect from None
        except errors.StatementTimeout as error:
            if not self._list_request.query.unserved:
                raise
            raise _unserved(self._list_request.query) from error
        except NoSlot:
            raise rest_errors.RestError(error_catalogue.GENERAL, _BUSY, status=503) from None
        if self._stale:
            await self._on_stale(self._stale)

    async def _read(self, request: Request, send: Send) -> None:
        """Send the list; what has begun cannot be read again from another database."""

        async def attempt(snapshots: pool.Snapshots) -> None:
            self._stale.clear()
            await self._respond(request, send, snapshots)

        await self._reads.read(self._position, attempt, may_repeat=lambda: not self._is_started)

    async def _respond(self, request: Request, send: Send, snapshots: pool.Snapshots) -> None:
        # A search that reads every row must not take the connections of others either.
        needs_slot = bool(self._list_request.query.unserved)
        if needs_slot or not await self._serve(request, send, snapshots=snapshots, has_slot=False):
            # Wait without a database connection, so that long lists can never hold all of them.
            async with self._streams.held(self._client):
                await self._serve(request, send, snapshots=snapshots, has_slot=True)

    async def _disconnection(self, receive: Receive) -> None:
        """Return when the client has left; a response that was sent completely counts as a disconnection too."""
        while (await receive())["type"] != "http.disconnect":
            pass
        if self._is_sent:
            await asyncio.get_running_loop().create_future()

    async def _serve(self, request: Request, send: Send, *, snapshots: pool.Snapshots, has_slot: bool) -> bool:
        """Send the list, or return False if it is long and too many are being sent, to everybody or to this client."""
        async with resource_lists.snapshot(snapshots) as snapshot:
            outline = await snapshot.outline(self._list_request.query, self._list_request.columns())
            if not outline.fits(BATCH_BYTES):
                if not has_slot and not self._streams.is_free(self._client):
                    return False
                slot: AbstractAsyncContextManager[None] = (
                    nullcontext() if has_slot else self._streams.held(self._client)
                )
                async with slot:
                    await self._stream(snapshot, outline, send=send)
                return True
            items = await self._items(snapshot, [resource_id for resource_id, _ in outline.entries])
        body = representations.whole_list(items, kind=_KIND, page=self._list_request.page, total=outline.total)
        await representations.response(body, headers=self._headers(outline))(request.scope, request.receive, send)
        return True

    def _headers(self, outline: resource_lists.PageOutline) -> dict[str, str]:
        """Return what a Go client has no key for: the token for the next page, and whether the total was counted."""
        headers = {} if outline.is_exact else {continuation.TOTAL_HEADER: "estimate"}
        if outline.last is not None:
            page = max(self._list_request.page, 1) + 1
            following = continuation.Continuation(page=page, position=outline.last)
            token = continuation.encode(following, fingerprint=self._list_request.fingerprint)
            headers[continuation.HEADER] = token
        return headers

    async def _stream(
        self,
        snapshot: resource_lists.ResourceSnapshot,
        outline: resource_lists.PageOutline,
        *,
        send: Send,
    ) -> None:
        prefix = b""
        for ids in outline.batches(BATCH_BYTES):
            items = b",".join(await self._items(snapshot, ids))
            if not prefix:
                # The first batch is read before the first byte is sent: a failure until here gets an error response.
                headers = representations.raw_headers(self._headers(outline))
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                prefix = representations.list_head()
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


def _unserved(query: ListQuery) -> rest_errors.RestError:
    """Return the error for a search that was stopped and that the client can change."""
    seconds = pool.READER_STATEMENT_MS // 1000
    expressions = rest_errors.shorten(", ".join(query.unserved))
    reason = f"The search was stopped after {seconds} seconds: no index serves {expressions}; {serving.REMEDY}"
    return rest_errors.RestError(error_catalogue.BAD_REQUEST, reason)


async def _send_in_time(send: Send, body: bytes, *, has_more: bool) -> None:
    try:
        async with asyncio.timeout(STALL_SECONDS):
            await send({"type": "http.response.body", "body": body, "more_body": has_more})
    except TimeoutError as error:
        rate = BATCH_BYTES / STALL_SECONDS / 1024
        raise ClientStalled(
            f"the client took less than {rate:.0f} KiB a second for {STALL_SECONDS:.0f} seconds; use shorter pages"
        ) from error
