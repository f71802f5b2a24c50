"""Serve the probes `/livez` and `/healthcheck`.

`/livez` checks nothing, so that an unavailable database never restarts a server. `/healthcheck` checks readiness, with
a timeout shorter than that of a probe. An instance that cannot work for a reason that an operator can remove says so.
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
from maestropy.journal.fields import RestPhrase

CHECK_TIMEOUT_SECONDS: Final = 2.0
_LOG_VERBOSITY: Final = 4


@unique
class Readiness(Enum):
    """Readiness of an instance; the value is the `status` of the response."""

    READY = "ok"
    NOT_READY = "not ready"
    BROKEN = "error"


class NotReady(Exception):
    """The instance is not ready; the message says why, for an operator."""


_STATUS: Final = {
    Readiness.READY: HTTPStatus.OK,
    Readiness.NOT_READY: HTTPStatus.SERVICE_UNAVAILABLE,
    Readiness.BROKEN: HTTPStatus.INTERNAL_SERVER_ERROR,
}


def create_health_app(
    readiness: Callable[[], Awaitable[Readiness]], *, journal: Journal, note: Callable[[], str] = lambda: ""
) -> ASGIApp:
    """Return the ASGI app of the health port; `note` says what an operator has to change although it is ready."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope["path"].rstrip("/")
        if path == "/livez":
            response = _response(Readiness.READY)
        elif path == "/healthcheck":
            response = await _check(readiness, journal, note=note)
        else:
            response = Response(status_code=HTTPStatus.NOT_FOUND)
        if journal.is_enabled(_LOG_VERBOSITY):
            line = {"request_method": scope["method"], "request_url": path, "response_status": response.status_code}
            journal.info(msgspec.json.encode(line).decode(), v=_LOG_VERBOSITY)
        await response(scope, receive, send)

    return app


async def _check(
    readiness: Callable[[], Awaitable[Readiness]], journal: Journal, *, note: Callable[[], str]
) -> Response:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
            state = await readiness()
            return _response(state, reason=note() if state is Readiness.READY else "")
    except NotReady as problem:
        return _response(Readiness.NOT_READY, reason=str(problem))
    except Exception as error:  # noqa: BLE001 - the probe needs a response for every error
        journal.warning(RestPhrase.HEALTH_CHECK_FAILED, err=error)
        return _response(Readiness.BROKEN)


def _response(state: Readiness, *, reason: str = "") -> Response:
    # With the space, as in the Go server: scripts compare the text.
    detail = f', "reason": {msgspec.json.encode(reason).decode()}' if reason else ""
    return Response(f'{{"status": "{state.value}"{detail}}}', _STATUS[state], media_type="application/json")
