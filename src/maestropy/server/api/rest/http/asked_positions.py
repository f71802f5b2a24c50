"""Read the position that a request asks for, and add that of a write to its response.

With a read replica only: without one the server sends no positions, and every list holds all writes anyway.
"""

from http import HTTPStatus
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from maestropy.server.api.rest.dependencies import RestDependencies
from maestropy.server.api.rest.http import error_catalogue, errors
from maestropy.wire import errors as wire_errors
from maestropy.wire import positions

_WRITES: Final = frozenset({"POST", "PATCH", "DELETE"})


def asked(request: Request) -> positions.Position | None:
    """Return the position that a list must hold; None if the client sent none."""
    headers = request.headers.getlist(positions.HEADER)
    if not headers:
        return None
    try:
        # Several headers are one with commas, which is no position.
        return positions.Position.parse(",".join(headers))
    except wire_errors.MalformedMessage as error:
        raise errors.RestError(error_catalogue.BAD_REQUEST, str(error)) from error


class PositionMiddleware:
    """Adds the position of a write to its response."""

    def __init__(self, app: ASGIApp, deps: RestDependencies) -> None:
        self._app = app
        self._replica = deps.replica

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        replica = self._replica
        if replica is None or scope["type"] != "http" or scope["method"] not in _WRITES:
            await self._app(scope, receive, send)
            return

        async def with_position(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < HTTPStatus.BAD_REQUEST:
                position = await replica.position_after_write()
                if position:
                    MutableHeaders(scope=message)[positions.HEADER] = position
            await send(message)

        await self._app(scope, receive, with_position)
