"""Answer probes: is this instance fit for work, and is it alive?

`/livez` touches nothing, so a database that is away never gets a server killed. `/healthcheck` asks, and does not wait
for an answer longer than a probe would.
"""

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum, unique
from http import HTTPStatus
from typing import Final

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from maestropy.journal import Journal

ANSWER_SECONDS: Final = 2.0
_LOG_VERBOSITY: Final = 4
_FAILED: Final = "health check failed"


@unique
class Readiness(Enum):
    """What an instance knows of itself; the value is the word of the answer."""

    READY = "ok"
    NOT_READY = "not ready"
    BROKEN = "error"


_STATUS: Final = {
    Readiness.READY: HTTPStatus.OK,
    Readiness.NOT_READY: HTTPStatus.SERVICE_UNAVAILABLE,
    Readiness.BROKEN: HTTPStatus.INTERNAL_SERVER_ERROR,
}


def create_health_app(readiness: Callable[[], Awaitable[Readiness]], *, journal: Journal) -> ASGIApp:
    """Return the ASGI app of the health port."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope["path"].rstrip("/")
        if path == "/livez":
            response = _answer(Readiness.READY)
        elif path == "/healthcheck":
            response = _answer(await _ask(readiness, journal))
        else:
            response = Response(status_code=HTTPStatus.NOT_FOUND)
        if journal.enabled(_LOG_VERBOSITY):
            line = {"request_method": scope["method"], "request_url": path, "response_status": response.status_code}
            journal.info(msgspec.json.encode(line).decode(), v=_LOG_VERBOSITY)
        await response(scope, receive, send)

    return app


async def _ask(readiness: Callable[[], Awaitable[Readiness]], journal: Journal) -> Readiness:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await readiness()
    except Exception as error:  # noqa: BLE001 - whatever went wrong, the probe needs an answer and not a traceback
        journal.warning(_FAILED, err=error)
        return Readiness.BROKEN


def _answer(state: Readiness) -> Response:
    # With the blank, as in the reference: scripts compare the text.
    return Response(f'{{"status": "{state.value}"}}', _STATUS[state], media_type="application/json")
