"""Build the REST API: routes and middleware. No logic of its own."""

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from maestropy.server.api.rest import api_metadata, continuation, representations
from maestropy.server.api.rest.actions import ActionHandlers
from maestropy.server.api.rest.consumers import ConsumerHandlers
from maestropy.server.api.rest.data_safety import DataSafetyHandlers
from maestropy.server.api.rest.dependencies import RestDependencies
from maestropy.server.api.rest.history import HistoryHandlers
from maestropy.server.api.rest.http import asked_actions, routing
from maestropy.server.api.rest.http.asked_positions import PositionMiddleware
from maestropy.server.api.rest.http.compression import CompressionMiddleware
from maestropy.server.api.rest.http.middleware import AuthenticationMiddleware, HostMiddleware, RequestLogMiddleware
from maestropy.server.api.rest.resource_bundles import ResourceBundleHandlers
from maestropy.server.auth.roles import Role
from maestropy.wire import positions

_METHODS = ("DELETE", "GET", "PATCH", "POST")
_HEADERS = ("Authorization", "Content-Type", positions.HEADER)
_PREFLIGHT_SECONDS = 600


def create_app(deps: RestDependencies) -> ASGIApp:
    """Return the REST API as an ASGI app."""
    consumers, resource_bundles = ConsumerHandlers(deps), ResourceBundleHandlers(deps)
    holds, history, actions = DataSafetyHandlers(deps), HistoryHandlers(deps), ActionHandlers(deps)
    base = representations.BASE
    routes = routing.Routes(
        {
            "/api/maestro": {"GET": _reads(api_metadata.api)},
            base: {"GET": _reads(api_metadata.version)},
            f"{base}/openapi": {"GET": _reads(api_metadata.openapi)},
            f"{base}/errors": {"GET": _reads(api_metadata.errors)},
            f"{base}/errors/{{id}}": {"GET": _reads(api_metadata.error)},
            f"{base}/resource-bundles": {"GET": _reads(resource_bundles.page)},
            f"{base}/resource-bundles/{{id}}": {
                "GET": _reads(resource_bundles.get),
                "DELETE": routing.needs(Role.WRITE, resource_bundles.delete),
            },
            f"{base}/consumers": {
                "GET": _reads(consumers.page),
                "POST": routing.needs(Role.WRITE, consumers.create),
            },
            f"{base}/consumers/{{id}}": {
                "GET": _reads(consumers.get),
                "PATCH": routing.needs(Role.WRITE, consumers.relabel),
                "DELETE": routing.needs(Role.ADMIN, consumers.delete),
            },
            f"{base}/resource-bundles/{{id}}/history": {"GET": _reads(history.of_work)},
            f"{base}/consumers/{{id}}/history": {"GET": _reads(history.of_consumer)},
            f"{base}/history": {"GET": routing.needs(Role.ADMIN, history.everything)},
            f"{base}/data-safety-holds": {"GET": _reads(holds.page)},
            f"{base}/consumers/{{id}}/data-safety-hold": {"GET": _reads(holds.get)},
            f"{base}/consumers/{{id}}/data-safety-hold/adoption": {
                "POST": asked_actions.needs(Role.ADMIN, holds.adopt)
            },
            f"{base}/resource-bundles/{{id}}/resend": {"POST": asked_actions.needs(Role.WRITE, actions.resend)},
            f"{base}/consumers/{{id}}/resync": {"POST": asked_actions.needs(Role.WRITE, actions.resync)},
            f"{base}/consumers/{{id}}/pause": {"POST": asked_actions.needs(Role.ADMIN, actions.pause)},
            f"{base}/consumers/{{id}}/resume": {"POST": asked_actions.needs(Role.ADMIN, actions.resume)},
            f"{base}/consumers/{{id}}/retirement": {"POST": asked_actions.needs(Role.ADMIN, actions.retire)},
            f"{base}/delivery-pauses": {"GET": _reads(actions.pauses)},
            f"{base}/sweep": {"POST": asked_actions.needs(Role.ADMIN, actions.sweep)},
        }
    )
    authenticated = AuthenticationMiddleware(CompressionMiddleware(PositionMiddleware(routes, deps)), deps)
    served: ASGIApp = RequestLogMiddleware(HostMiddleware(authenticated, deps), deps)
    if deps.allowed_origins:
        served = CORSMiddleware(
            served,
            allow_origins=deps.allowed_origins,
            allow_methods=_METHODS,
            allow_headers=_HEADERS,
            expose_headers=(continuation.HEADER, continuation.TOTAL_HEADER, positions.HEADER),
            max_age=_PREFLIGHT_SECONDS,
        )
    return _HttpOnly(served)


def _reads(handler: routing.Handler) -> routing.Handler:
    return routing.needs(Role.READ, handler)


class _HttpOnly:
    """Passes HTTP on, closes websockets, and confirms lifespan messages."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        else:
            await _lifespan(receive, send)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
