"""Metrics of gRPC calls, the readiness check, and the metrics endpoint."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import LifecyclePhrase, SpecWriterPhrase
from maestropy.server.context import Context
from maestropy.server.controllers.instances.membership import Membership
from maestropy.server.primary_watch import PrimaryWatch
from maestropy.server.runtime.health import NotReady, Readiness
from maestropy.server.telemetry.metrics import CallMetrics, Metrics, Rpc

_LINE_SECONDS: Final = 60.0


class RpcObserver:
    """Counts the calls of one gRPC service, and logs unexpected errors."""

    def __init__(self, context: Context, calls: CallMetrics) -> None:
        self._context = context
        self._calls = calls

    def called(self, method: Rpc, source: str) -> None:
        """Count a call and its message."""
        self._calls.called(method, source)
        self._calls.received(method, source)

    def finished(self, method: Rpc, source: str, *, code: str, seconds: float) -> None:
        """Count a finished call."""
        self._calls.finished(method, source, code=_go_name(code), seconds=seconds if method == "Publish" else None)
        if method == "Publish" and code == "OK":
            self._calls.sent(method, source)

    def sent(self, method: Rpc, source: str, *, count: int) -> None:
        """Count messages sent to the caller."""
        self._calls.sent(method, source, count=count)

    def crashed(self, method: str, error: Exception) -> None:
        """Log an unexpected error of a call."""
        self._context.journal.error(SpecWriterPhrase.CALL_FAILED, {LogKey.ACTION: method}, err=error)


class ClosedConnections:
    """Counts and logs connections that were closed without an authenticated call; one line a minute for each reason."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._unlogged: Counter[str] = Counter()
        self._next_line: dict[str, float] = {}

    def closed(self, reason: str, address: str, count: int) -> None:
        """Count connections of one address."""
        self._context.metrics.connections_closed(count)
        self._unlogged[reason] += count
        now = self._context.clock.monotonic()
        if now < self._next_line.get(reason, now):
            return
        self._next_line[reason] = now + _LINE_SECONDS
        fields = {LogKey.REASON: reason, LogKey.ADDRESS: address, LogKey.COUNT: self._unlogged.pop(reason)}
        self._context.journal.warning(LifecyclePhrase.CONNECTIONS_CLOSED, fields)


def _go_name(code: str) -> str:
    """Return a status code in the spelling of Go: RESOURCE_EXHAUSTED is ResourceExhausted."""
    return code if code == "OK" else code.title().replace("_", "")


def readiness(membership: Membership, primary_watch: PrimaryWatch) -> Callable[[], Awaitable[Readiness]]:
    """Return the readiness check of the health port."""

    async def check() -> Readiness:
        problem = await primary_watch.check()
        if problem:
            raise NotReady(problem)
        return Readiness.READY if await membership.is_ready() else Readiness.NOT_READY

    return check


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
