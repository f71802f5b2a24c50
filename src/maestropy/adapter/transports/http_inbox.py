"""Receive events over HTTP: `POST /` with a CloudEvent; the response is the acknowledgement.

| response | meaning |
|---|---|
| 204 | the event was handled |
| 400 | the event is malformed: do not send it again |
| 401 | the bearer token is missing or wrong |
| 413 | the event is too large |
| 503 with Retry-After | the event was not handled: send it again |

`/healthz` is for liveness probes, and fails once too many functions of the adapter have not returned. `/readyz` fails
while the queue is full, and after `close`. Probes need no token.
"""

import asyncio
import hmac
from collections.abc import Callable
from typing import assert_never

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from maestropy.adapter import liveness
from maestropy.adapter.service import Delivery, EventDone, EventRejected, EventRetry, Settlement

_RETRY_AFTER_SECONDS = "5"
_MAX_EVENT_BYTES = 2**20
_SHUTTING_DOWN = "server is shutting down"


class HttpInbox:
    """An event inbox that is an ASGI application."""

    def __init__(self, *, waiting: int = 256, token: Callable[[], str] | None = None) -> None:
        self._waiting: asyncio.Queue[Delivery] = asyncio.Queue(maxsize=waiting)
        self._token = token
        """Returns the bearer token that events must carry; without it, anybody who can connect may send events."""
        self._is_closed = False
        self._in_progress: set[asyncio.Future[Settlement]] = set()
        self.app = Starlette(
            routes=[
                Route("/", self._receive, methods=["POST"]),
                Route("/healthz", liveness.alive, methods=["GET"]),
                Route("/readyz", self._ready, methods=["GET"]),
            ]
        )

    async def next(self) -> Delivery:
        """Wait for the next event."""
        return await self._waiting.get()

    async def close(self) -> None:
        """Accept no more events, and let those that are queued be sent again."""
        self._is_closed = True
        while not self._waiting.empty():
            await self._waiting.get_nowait().settle(EventRetry(_SHUTTING_DOWN))

    def abandon(self) -> None:
        """Let the events in progress be sent again too: their handlers have not returned."""
        for settled in self._in_progress:
            if not settled.done():
                settled.set_result(EventRetry(_SHUTTING_DOWN))

    async def _receive(self, request: Request) -> Response:
        if not self._is_authenticated(request):
            return JSONResponse(
                {"error": "the bearer token is missing or wrong"},
                status_code=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MAX_EVENT_BYTES:
                return JSONResponse({"error": f"an event has at most {_MAX_EVENT_BYTES} bytes"}, status_code=413)
        if self._is_closed:
            return _response(EventRetry(_SHUTTING_DOWN))
        settled: asyncio.Future[Settlement] = asyncio.get_running_loop().create_future()

        async def settle(settlement: Settlement) -> None:
            # The sender may have disconnected; it sends the event again, which changes nothing.
            if not settled.done():
                settled.set_result(settlement)

        try:
            self._waiting.put_nowait(Delivery(body=bytes(body), headers=dict(request.headers), settle=settle))
        except asyncio.QueueFull:
            return _response(EventRetry("too many events are queued"))
        self._in_progress.add(settled)
        try:
            return _response(await settled)
        finally:
            self._in_progress.discard(settled)

    def _is_authenticated(self, request: Request) -> bool:
        if self._token is None:
            return True
        expected = self._token()
        scheme, _, presented = request.headers.get("authorization", "").partition(" ")
        # An empty token file admits nobody.
        is_same = hmac.compare_digest(presented.strip().encode(), expected.encode())
        return bool(expected) and scheme.lower() == "bearer" and is_same

    async def _ready(self, _: Request) -> Response:
        if self._is_closed:
            return PlainTextResponse(f"{_SHUTTING_DOWN}\n", status_code=503)
        return PlainTextResponse("busy\n", status_code=503) if self._waiting.full() else PlainTextResponse("ok\n")


def _response(settlement: Settlement) -> Response:
    match settlement:
        case EventDone():
            return Response(status_code=204)
        case EventRejected(reason):
            return JSONResponse({"error": reason}, status_code=400)
        case EventRetry(reason):
            return JSONResponse({"error": reason}, status_code=503, headers={"Retry-After": _RETRY_AFTER_SECONDS})
        case _:
            assert_never(settlement)
