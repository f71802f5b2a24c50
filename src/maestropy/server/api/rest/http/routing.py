"""Route requests to handlers by path and method.

A handler takes a request and returns an ASGI response, or raises an error. Metrics use the template of a path, so that
there are as many values as routes.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from maestropy.server.api.rest.http import error_catalogue, errors
from maestropy.server.auth import requesters
from maestropy.server.auth.roles import UNRESTRICTED, RestCaller, Role
from maestropy.store import rows
from maestropy.transport import peer_identity

Handler = Callable[[Request], Awaitable[ASGIApp]]

# Keys of the ASGI scope that middleware and routes share.
OPERATION_ID: Final = "maestro.operation_id"
TEMPLATE: Final = "maestro.template"
CLIENT: Final = "maestro.client"

# The path in metrics for a request without a route.
NO_ROUTE: Final = "-"


class Methods:
    """The handlers of one path, by method."""

    def __init__(self, template: str, handlers: Mapping[str, Handler]) -> None:
        self._template = template.replace("{id}", "-")
        self._handlers = handlers
        self._allow = ", ".join(sorted({*handlers, "OPTIONS"}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the handler of the method, or respond with the allowed methods."""
        scope[TEMPLATE] = self._template
        method = scope["method"]
        if method in self._handlers:
            response = await self._handlers[method](Request(scope, receive))
        else:
            # The Go server sends an empty body here.
            response = Response(status_code=200 if method == "OPTIONS" else 405, headers={"Allow": self._allow})
        await response(scope, receive, send)


class Routes:
    """The table of paths. One slash at the end of a path is ignored."""

    def __init__(self, table: Mapping[str, Mapping[str, Handler]]) -> None:
        routes = [Route(path, Methods(path, handlers)) for path, handlers in table.items()]
        self._router = Router(routes, redirect_slashes=False, default=_unknown_path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request to the handlers of its path."""
        path = scope["path"]
        if len(path) > 1 and path.endswith("/"):
            scope["path"] = path[:-1]
        await self._router(scope, receive, send)


def operation_id(request: Request) -> str:
    """Return the operation id of a request."""
    return str(request.scope.get(OPERATION_ID, ""))


def client(request: Request) -> RestCaller:
    """Return the client of a request."""
    rest_client: RestCaller = request.scope.get(CLIENT, UNRESTRICTED)
    return rest_client


def requester(scope: Scope) -> rows.Requester:
    """Return who sent a request, and from where."""
    caller: RestCaller = scope.get(CLIENT, UNRESTRICTED)
    host, _ = scope.get("client") or ("", 0)
    return requesters.named(caller.identity.user, host)


def client_key(request: Request) -> str:
    """Return who shares limits with other requests: the authenticated user, or else the address of the client."""
    identity = client(request).identity
    host, _ = request.scope.get("client") or ("", 0)
    return f"address {peer_identity.host_of(host)}" if identity is peer_identity.ANONYMOUS else f"user {identity.user}"


def needs(role: Role, handler: Handler) -> Handler:
    """Return `handler` for clients that have at least `role`."""

    async def guarded(request: Request) -> ASGIApp:
        has = client(request).role
        if has < role:
            raise errors.RestError(
                error_catalogue.UNAUTHORIZED,
                f"{error_catalogue.UNAUTHORIZED.reason}: it needs the role {role.name.lower()}, and the token has "
                f"{has.name.lower()}",
            )
        return await handler(request)

    return guarded


async def _unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    await errors.no_such_path(scope["path"])(scope, receive, send)


def not_found(noun: str, key: str) -> errors.RestError:
    """Return the error for an unknown ID."""
    return errors.RestError(error_catalogue.NOT_FOUND, f"{noun} with id='{errors.shorten(key)}' not found")
