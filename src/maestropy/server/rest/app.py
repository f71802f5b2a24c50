"""Put the REST API together: routes inside, layers around them. No logic of its own."""

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from maestropy.server.rest import roots, routing, views
from maestropy.server.rest.bundles import Bundles
from maestropy.server.rest.compression import Compressed
from maestropy.server.rest.consumers import Consumers
from maestropy.server.rest.dependencies import RestDependencies
from maestropy.server.rest.layers import Authenticated, Observed

_METHODS = ("DELETE", "GET", "PATCH", "POST")
_HEADERS = ("Authorization", "Content-Type")
_PREFLIGHT_SECONDS = 600


def create_app(deps: RestDependencies) -> ASGIApp:
    """Return the REST API as an ASGI app."""
    consumers, bundles = Consumers(deps), Bundles(deps)
    base = views.BASE
    routes = routing.Routes(
        {
            "/api/maestro": {"GET": roots.api},
            base: {"GET": roots.version},
            f"{base}/openapi": {"GET": roots.openapi},
            f"{base}/errors": {"GET": roots.errors},
            f"{base}/errors/{{id}}": {"GET": roots.error},
            f"{base}/resource-bundles": {"GET": bundles.page},
            f"{base}/resource-bundles/{{id}}": {"GET": bundles.get, "DELETE": bundles.delete},
            f"{base}/consumers": {"GET": consumers.page, "POST": consumers.create},
            f"{base}/consumers/{{id}}": {
                "GET": consumers.get,
                "PATCH": consumers.relabel,
                "DELETE": consumers.delete,
            },
        }
    )
    served = Observed(Authenticated(Compressed(routes), deps), deps)
    return _HttpOnly(
        CORSMiddleware(
            served,
            allow_origins=["*"],
            allow_methods=_METHODS,
            allow_headers=_HEADERS,
            max_age=_PREFLIGHT_SECONDS,
        )
    )


class _HttpOnly:
    """Serves HTTP; the server's start and end are nobody's business here, and there are no websockets."""

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
