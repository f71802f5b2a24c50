"""Events over HTTP: `POST /` with a CloudEvent; the answer is the acknowledgement.

| answer | means |
|---|---|
| 204 | done |
| 400 | no event that can be dealt with: do not send it again |
| 413 | too large for an event |
| 503 with Retry-After | not now: send it again |

`/healthz` says that the process lives, `/readyz` that it takes events.
"""

import asyncio
from typing import assert_never

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from maestropy.adapter.service import Again, Delivery, Done, Refused, Settlement

_RETRY_AFTER_SECONDS = "5"
_LARGEST_EVENT = 2**20


class HttpInbox:
    """An inbox that is an ASGI application."""

    def __init__(self, *, waiting: int = 256) -> None:
        self._waiting: asyncio.Queue[Delivery] = asyncio.Queue(maxsize=waiting)
        self.app = Starlette(
            routes=[
                Route("/", self._receive, methods=["POST"]),
                Route("/healthz", _alive, methods=["GET"]),
                Route("/readyz", self._ready, methods=["GET"]),
            ]
        )

    async def next(self) -> Delivery:
        """Wait for the next event."""
        return await self._waiting.get()

    async def _receive(self, request: Request) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _LARGEST_EVENT:
                return JSONResponse({"error": f"an event has at most {_LARGEST_EVENT} bytes"}, status_code=413)
        settled: asyncio.Future[Settlement] = asyncio.get_running_loop().create_future()

        async def settle(found: Settlement) -> None:
            # The sender may have hung up; it will send the event again, and finds the work done.
            if not settled.done():
                settled.set_result(found)

        try:
            self._waiting.put_nowait(Delivery(body=bytes(body), headers=dict(request.headers), settle=settle))
        except asyncio.QueueFull:
            return _answer(Again("too many events wait already"))
        return _answer(await settled)

    async def _ready(self, _: Request) -> Response:
        return PlainTextResponse("busy\n", status_code=503) if self._waiting.full() else PlainTextResponse("ok\n")


async def _alive(_: Request) -> Response:
    return PlainTextResponse("ok\n")


def _answer(found: Settlement) -> Response:
    match found:
        case Done():
            return Response(status_code=204)
        case Refused(reason):
            return JSONResponse({"error": reason}, status_code=400)
        case Again(reason):
            return JSONResponse({"error": reason}, status_code=503, headers={"Retry-After": _RETRY_AFTER_SECONDS})
        case _:
            assert_never(found)
