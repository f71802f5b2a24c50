"""How the outside sees this instance: calls counted, readiness answered, metrics shown."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from maestropy.journal.fields import Key
from maestropy.server.health import Readiness
from maestropy.server.membership import Membership
from maestropy.server.metrics import Metrics, Rpc
from maestropy.server.world import World


class RpcObserver:
    """Counts gRPC calls, and tells of bugs that surfaced in one."""

    def __init__(self, world: World, *, by_source: bool) -> None:
        """Count each source for itself, or all callers as one: agents are too many, and no sources."""
        self._world = world
        self._by_source = by_source

    def called(self, method: Rpc, source: str) -> None:
        """A call came in, and with it one message."""
        source = source if self._by_source else ""
        self._world.metrics.rpc_called(method, source)
        self._world.metrics.messages_received(method, source)

    def finished(self, method: Rpc, source: str, *, code: str, seconds: float) -> None:
        """A call ended."""
        source = source if self._by_source else ""
        self._world.metrics.rpc_finished(
            method, source, code=_go_name(code), seconds=seconds if method == "Publish" else None
        )
        if method == "Publish" and code == "OK":
            self._world.metrics.messages_sent(method, source)

    def sent(self, method: Rpc, source: str, *, count: int) -> None:
        """Messages went out to the caller."""
        self._world.metrics.messages_sent(method, source if self._by_source else "", count=count)

    def crashed(self, method: str, error: Exception) -> None:
        """A bug of ours surfaced in a call."""
        self._world.journal.error("a call failed unexpectedly", {Key.ACTION: method}, err=error)


def _go_name(code: str) -> str:
    """Write a status as dashboards know it: RESOURCE_EXHAUSTED is ResourceExhausted there."""
    return code if code == "OK" else code.title().replace("_", "")


def readiness(membership: Membership) -> Callable[[], Awaitable[Readiness]]:
    """Return what the health port asks."""

    async def ask() -> Readiness:
        return Readiness.READY if await membership.is_ready() else Readiness.NOT_READY

    return ask


def metrics_app(metrics: Metrics) -> ASGIApp:
    """Return the ASGI app of the metrics port."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        if request.url.path.rstrip("/") != "/metrics":
            response = Response(status_code=404)
        else:
            body, content_type = metrics.render(request.headers.get("accept", ""))
            response = Response(body, media_type=content_type)
        await response(scope, receive, send)

    return app
