"""Serve the agent's HTTPS port: liveness, readiness and metrics.

| path | client | response |
|---|---|---|
| /livez, /healthz | any | 200 `ok` while the process runs, also when dependencies are away: a restart would not help |
| /readyz | any | 200 `ok`, with a note while another agent leads, or 503 with the missing dependencies |
| /readyz?verbose | any | the same status, and every dependency with its reason |
| /metrics | a token that may get this path; any client on a loopback address | 200, 401, 403, 429, 503 if unreviewed |

The serving certificate is read from the mount path of operators and reloaded on change; without it a self-signed one
is created. This module does not decide what ready means.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from maestropy.agent.settings import ListenAddress
from maestropy.agent.telemetry.metrics import AgentMetrics
from maestropy.aio import checks
from maestropy.aio.tasks import TaskOwner
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config.address import ClusterAddress
from maestropy.kube.errors import KubeError
from maestropy.kube.rate_limit import RetryLimits
from maestropy.kube.reviews import Reviews, TokenUser
from maestropy.transport import peer_identity
from maestropy.transport.http.limits import HttpLimits
from maestropy.transport.http.listener import HttpListener
from maestropy.transport.tls import credentials, self_signed
from maestropy.transport.token_attempts import TokenAttempts, digest

SERVING_CERTIFICATE: Final = Path("/var/run/secrets/serving-cert")
_METRICS_PATH: Final = "/metrics"
_REVIEW_SECONDS: Final = 5.0
# Every client of the port can cause reviews, so their number and rate are limited.
_REVIEWS_AT_ONCE: Final = 4
_REVIEW_LIMITS: Final = ClientSettings(
    user_agent="work-agent", qps=5.0, burst=20, timeout=_REVIEW_SECONDS, retries=RetryLimits(attempts=1)
)
# Probes and scrapes are small, and few clients send them.
_LIMITS: Final = HttpLimits(header_bytes=32 * 1024, connections=200, idle_seconds=120.0)
_MOUNTED_FILES: Final = credentials.TlsFlags(cert="the serving certificate", key="the serving key", client_ca="")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReadiness:
    """Whether the agent is ready."""

    missing: tuple[str, ...] = ()
    """Dependencies that are missing, in words."""
    note: str = ""
    """Why the agent does nothing although no dependency is missing."""
    dependencies: tuple[checks.Check, ...] = ()
    """Every dependency with its reason."""


class TokenReviews(Protocol):
    """Token and access reviews; both raise `KubeError` when the API server does not answer."""

    async def token(self, token: str) -> TokenUser | None: ...

    async def access(self, *, user: str, groups: tuple[str, ...], path: str, verb: str) -> bool: ...


@asynccontextmanager
async def reviewing(address: ClusterAddress) -> AsyncIterator[Reviews]:
    """Open reviews with a client of their own, so that scrapes do not use up the agent's rate limit."""
    async with KubeClient(address, settings=_REVIEW_LIMITS) as client:
        yield Reviews(client, deadline=_REVIEW_SECONDS)


class MetricsAccess:
    """Decides which clients may read the metrics."""

    def __init__(self, reviews: TokenReviews) -> None:
        self._reviews = reviews
        self._attempts = TokenAttempts(clock=asyncio.get_running_loop().time)
        self._slots = asyncio.Semaphore(_REVIEWS_AT_ONCE)

    async def check(self, authorization: str | None, *, address: str) -> HTTPStatus:
        """Return OK, or the status that rejects the holder of this header."""
        token = peer_identity.bearer_token(authorization)
        if not token:
            return HTTPStatus.UNAUTHORIZED
        key = digest(token)
        if not self._attempts.may_start(key, address=address):
            return HTTPStatus.TOO_MANY_REQUESTS
        try:
            async with asyncio.timeout(_REVIEW_SECONDS), self._slots:
                holder = await self._reviews.token(token)
                if holder is None:
                    self._attempts.rejected(key)
                    return HTTPStatus.UNAUTHORIZED
                self._attempts.accepted(key, address=address)
                return await self._review(holder)
        except (KubeError, TimeoutError):
            self._attempts.unanswered(key, address=address)
            return HTTPStatus.SERVICE_UNAVAILABLE

    async def _review(self, holder: TokenUser) -> HTTPStatus:
        may = await self._reviews.access(user=holder.user, groups=holder.groups, path=_METRICS_PATH, verb="get")
        return HTTPStatus.OK if may else HTTPStatus.FORBIDDEN


def create_app(
    *, readiness: Callable[[], AgentReadiness], metrics: AgentMetrics, metrics_access: MetricsAccess | None
) -> ASGIApp:
    """Return the ASGI app; without `metrics_access` every client may read the metrics."""

    async def respond(path: str, query: str, headers: Headers, address: str) -> Response:
        match path:
            case "/livez" | "/healthz":
                return PlainTextResponse("ok")
            case "/readyz":
                is_verbose = "verbose" in parse_qs(query, keep_blank_values=True)
                return _verbose_response(readiness()) if is_verbose else _readiness_response(readiness())
            case "/metrics":
                verdict = HTTPStatus.OK
                if metrics_access:
                    verdict = await metrics_access.check(headers.get("authorization"), address=address)
                return _metrics_response(metrics) if verdict is HTTPStatus.OK else _error_response(verdict)
            case _:
                return _error_response(HTTPStatus.NOT_FOUND)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["method"] not in {"GET", "HEAD"}:
            response = _error_response(HTTPStatus.METHOD_NOT_ALLOWED)
        else:
            address = peer_identity.host_of((scope.get("client") or ("", 0))[0])
            query = scope["query_string"].decode("latin-1")
            response = await respond(scope["path"].rstrip("/"), query, Headers(scope=scope), address)
        await response(scope, receive, send)

    return app


def _readiness_response(readiness: AgentReadiness) -> Response:
    if not readiness.missing:
        return PlainTextResponse(f"ok\n{readiness.note}\n" if readiness.note else "ok")
    text = "".join(f"[-]{dependency}\n" for dependency in readiness.missing)
    return PlainTextResponse(f"{text}readyz check failed\n", HTTPStatus.SERVICE_UNAVAILABLE)


def _verbose_response(readiness: AgentReadiness) -> Response:
    status = HTTPStatus.SERVICE_UNAVAILABLE if readiness.missing else HTTPStatus.OK
    note = f"{readiness.note}\n" if readiness.note else ""
    return PlainTextResponse(note + checks.verbose(readiness.dependencies, title="readyz"), status)


def _metrics_response(metrics: AgentMetrics) -> Response:
    body, content_type = metrics.render()
    return Response(body, media_type=content_type)


def _error_response(status: HTTPStatus) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else None
    return PlainTextResponse(f"{status.phrase}\n", status, headers=headers)


@asynccontextmanager
async def serving(
    listen: ListenAddress | None,
    app: ASGIApp,
    *,
    now: datetime,
    on_problem: credentials.OnProblem,
    certificate: Path = SERVING_CERTIFICATE,
) -> AsyncIterator[str]:
    """Serve while entered; yield the address, empty when the port is disabled."""
    if listen is None:
        yield ""
        return
    context = _context(certificate, now=now, on_problem=on_problem)
    listener = HttpListener(app, host=listen.host, port=listen.port, limits=_LIMITS)
    task = TaskOwner().start("probes", listener.serve(tls=context))
    # The listener can be stopped cleanly only after its task has started.
    await asyncio.sleep(0)
    try:
        host = f"[{listen.host}]" if ":" in listen.host else listen.host or "*"
        yield f"https://{host}:{listener.port}"
    finally:
        listener.stop()
        await task


def _context(directory: Path, *, now: datetime, on_problem: credentials.OnProblem) -> ssl.SSLContext:
    cert, key = directory / "tls.crt", directory / "tls.key"
    if cert.exists() and key.exists():
        files = credentials.TlsFiles(cert=cert, key=key, client_ca=None, flags=_MOUNTED_FILES)
        return credentials.https_context(files, on_problem=on_problem)
    return self_signed.context(["localhost"], now=now)
