"""Mount another ASGI app beside the REST API, on its port. The server does not know what it serves.

The app gets the REST API in process and without authentication, for reading only: it shows what it reads to clients
that it has authenticated itself, with the authenticator of the REST API. What its clients change goes through the API
that authenticates, with the credentials of the client.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from maestropy.server.auth.rest import RestAuthenticator
from maestropy.server.auth.roles import RestCaller

_SAFE = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MountContext:
    """What a mounted app gets from the server."""

    api: ASGIApp
    """The REST API without authentication; it rejects every request that could change something."""
    authenticated_api: ASGIApp
    """The REST API as its own clients have it: roles by the `Authorization` header, and a history that names them."""
    authenticate: Callable[[str | None], Awaitable[RestCaller]] | None
    """Checks an `Authorization` header as REST does; None if REST needs none."""
    allows_host: Callable[[str | None], bool]
    authenticator: RestAuthenticator | None = None
    """What `authenticate` is part of; it also checks ID tokens, with the same keys."""
    report: Callable[[str], None] = lambda _: None
    """Logs why a user could not sign in, for the operator; gets no secrets."""
    note_refusal: Callable[[Request, HTTPStatus, str], None] = lambda _request, _status, _reason: None
    """Records a refused sign-in in the history, with its reason; gets no secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """An app and its path."""

    path: str
    open: Callable[[MountContext], AbstractAsyncContextManager[ASGIApp]]


class ReadOnly:
    """An app that gets only requests that change nothing."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a read on."""
        if scope["type"] == "http" and scope["method"] not in _SAFE:
            await Response(status_code=HTTPStatus.METHOD_NOT_ALLOWED)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class PathSwitch:
    """Passes requests below a path to one app, and all others to another."""

    def __init__(self, app: ASGIApp, *, path: str, mounted: ASGIApp) -> None:
        self._app = app
        self._path = path
        self._mounted = mounted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        path = scope.get("path", "")
        is_mounted = path == self._path or path.startswith(f"{self._path}/")
        await (self._mounted if is_mounted else self._app)(scope, receive, send)
