"""Which handler answers which method of which path.

A handler takes a request and returns an ASGI response; everything that can go wrong it raises. Paths are known by
their template, so that metrics have as many paths as there are routes.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from maestropy.server.rest import catalogue, problems

Handler = Callable[[Request], Awaitable[ASGIApp]]

# Keys of the scope that our layers leave for each other.
OPERATION_ID: Final = "maestro.operation_id"
TEMPLATE: Final = "maestro.template"

# The metrics' path of a request that fits no route.
NO_ROUTE: Final = "-"


class Methods:
    """One path with its handlers by method."""

    def __init__(self, template: str, handlers: Mapping[str, Handler]) -> None:
        self._template = template.replace("{id}", "-")
        self._handlers = handlers
        self._allow = ", ".join(sorted({*handlers, "OPTIONS"}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or say which methods there are."""
        scope[TEMPLATE] = self._template
        method = scope["method"]
        if method in self._handlers:
            response = await self._handlers[method](Request(scope, receive))
        else:
            # The reference answers with an empty body here.
            response = Response(status_code=200 if method == "OPTIONS" else 405, headers={"Allow": self._allow})
        await response(scope, receive, send)


class Routes:
    """The table of paths. One slash at the end of a path is as good as none."""

    def __init__(self, table: Mapping[str, Mapping[str, Handler]]) -> None:
        routes = [Route(path, Methods(path, handlers)) for path, handlers in table.items()]
        self._router = Router(routes, redirect_slashes=False, default=_unknown_path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request to its path."""
        path = scope["path"]
        if len(path) > 1 and path.endswith("/"):
            scope["path"] = path[:-1]
        await self._router(scope, receive, send)


def operation_id(request: Request) -> str:
    """Return the operation id of a request."""
    return str(request.scope.get(OPERATION_ID, ""))


async def _unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    await problems.no_such_path(scope["path"])(scope, receive, send)


def not_found(noun: str, key: str) -> problems.Problem:
    """Return the refusal for an id that leads to nothing."""
    return problems.Problem(catalogue.NOT_FOUND, f"{noun} with id='{problems.shorten(key)}' not found")
