"""Serve the probes `/livez`, `/healthcheck` and `/readyz`.

`/livez` checks nothing, so that an unavailable database never restarts a server. `/healthcheck` checks readiness, with
a timeout shorter than that of a probe. An instance that cannot work for a reason that an operator can remove says so.
`/readyz` is the same for people: with `?verbose`, and whenever it fails, it lists every dependency with its reason.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum, unique
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs

import msgspec
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from maestropy.aio import checks
from maestropy.journal import Journal
from maestropy.journal.phrases import RestPhrase

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


async def _no_checks() -> Sequence[checks.Check]:
    return ()


def create_health_app(
    readiness: Callable[[], Awaitable[Readiness]],
    *,
    journal: Journal,
    note: Callable[[], str] = lambda: "",
    dependencies: Callable[[], Awaitable[Sequence[checks.Check]]] = _no_checks,
) -> ASGIApp:
    """Return the ASGI app of the health port.

    `note` says what an operator has to change although it is ready; `dependencies` checks each dependency by itself.
    """

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope["path"].rstrip("/")
        if path == "/livez":
            response = _response(Readiness.READY)
        elif path == "/healthcheck":
            response = await _check(readiness, journal, note=note)
        elif path == "/readyz":
            is_verbose = "verbose" in parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            response = await _explain(dependencies, is_verbose=is_verbose)
        else:
            response = Response(status_code=HTTPStatus.NOT_FOUND)
        if journal.is_enabled(_LOG_VERBOSITY):
            line = {"request_method": scope["method"], "request_url": path, "response_status": response.status_code}
            journal.info(msgspec.json.encode(line).decode(), v=_LOG_VERBOSITY)
        await response(scope, receive, send)

    return app


async def _explain(dependencies: Callable[[], Awaitable[Sequence[checks.Check]]], *, is_verbose: bool) -> Response:
    results = await dependencies()
    has_failed = checks.has_failed(results)
    text = checks.verbose(results, title="readyz") if is_verbose or has_failed else "ok"
    return PlainTextResponse(text, HTTPStatus.SERVICE_UNAVAILABLE if has_failed else HTTPStatus.OK)


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
