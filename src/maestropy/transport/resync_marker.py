"""Tell when a spec resync is answered, behind a message broker.

A spec resync request has no response of its own: the server sends the specs that the agent does not have, and that may
be none. So every request also names a work that does not exist, with the ID of the request as its resource ID. After
all specs the server sends a delete request for it; that marks the end of the response. The agent drops it.
A Go server without any resource of this consumer does not send it. Such a server is recognised by an empty status
resync request, which it sends at its start.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

from maestropy.wire import errors, resync
from maestropy.wire.events import event


class ResyncMarker:
    """The markers of the requests of one connection, and whether one came back since the last request."""

    def __init__(self, *, settle_seconds: float = 0.0) -> None:
        """With `settle_seconds`, wait that long after the marker: a broker that keeps no order may send specs later."""
        self._settle_seconds = settle_seconds
        self._request_ids: set[str] = set()
        """The IDs of the resync requests, which are the resource IDs of works that do not exist."""
        self._answered = asyncio.Event()

    def mark(self, request: event.CloudEvent) -> event.CloudEvent:
        """Return the request with a marker; earlier answers do not count for it."""
        self._answered.clear()
        self._request_ids.add(request.id)
        return replace(request, data=resync.with_marker(request.data, request.id))

    def receive(self, received: event.CloudEvent) -> None:
        """Note whether an event for this agent ends a resync."""
        if received.optional_text(event.RESOURCE_ID) in self._request_ids or _is_from_empty_server(received):
            asyncio.get_running_loop().call_later(self._settle_seconds, self._answered.set)

    async def is_answered(self, *, within: float) -> bool:
        """Wait up to `within` seconds for the end of a response; return whether it came."""
        try:
            async with asyncio.timeout(within):
                await self._answered.wait()
        except TimeoutError:
            return False
        return True


def parts(request: event.CloudEvent, *, max_bytes: int) -> Iterator[event.CloudEvent]:
    """Split a resync request that is too large for the broker.

    Each part is a complete request: the server sends the specs that a part does not name again, which is redundant but
    correct.
    """
    count = -(-len(request.data) // max(1, max_bytes))
    for number, data in enumerate(resync.split_request(request.data, count=count)):
        yield replace(request, id=f"{request.id}-{number}", data=data)


def _is_from_empty_server(received: event.CloudEvent) -> bool:
    """Return whether the event tells that the server has no resource of this consumer."""
    try:
        return received.type == event.STATUS_RESYNC_REQUEST and not resync.decode_hashes(received.data)
    except errors.WireError:
        return False
