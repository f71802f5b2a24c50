"""The agent's HTTPS port: is it alive, is it fit for work, what has it counted?

| path | who | answer |
|---|---|---|
| /livez, /healthz | anybody | 200 `ok` while the process turns, whatever is away outside: a restart would not help |
| /readyz | anybody | 200 `ok`, with a note if it waits for its turn, or 503 with what is missing |
| /metrics | whom Kubernetes lets get that path; on a loopback address anybody | 200, 401, 403, or 503: it did not say |

A serving certificate is taken from the place where operators mount one, and followed; without it a self-signed one is
made. This module does not decide what ready means.
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

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from maestropy.agent.metrics import Metrics
from maestropy.agent.settings import Listen
from maestropy.aio.tasks import Crew
from maestropy.kube.address import ClusterAddress
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.errors import KubeError
from maestropy.kube.limits import Patience
from maestropy.kube.reviews import Reviews, TokenHolder
from maestropy.transport import selfsigned, tls
from maestropy.transport.http_listener import HttpListener
from maestropy.transport.identity import bearer_token

SERVING_CERTIFICATE: Final = Path("/var/run/secrets/serving-cert")
_METRICS_PATH: Final = "/metrics"
_REVIEW_SECONDS: Final = 5.0
# Anybody who reaches the port can make us ask Kubernetes; this many at once, and a few a second.
_REVIEWS_AT_ONCE: Final = 4
_REVIEW_LIMITS: Final = ClientSettings(
    user_agent="work-agent", qps=5.0, burst=20, timeout=_REVIEW_SECONDS, patience=Patience(attempts=1)
)
_MOUNTED: Final = tls.Flags(cert="the serving certificate", key="the serving key", client_ca="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitness:
    """Whether the agent is fit for work."""

    missing: tuple[str, ...] = ()
    """What keeps it from working, in words."""
    note: str = ""
    """Why it does not work although nothing is missing."""


class TokenReviews(Protocol):
    """Who a token belongs to and what they may do; both raise `KubeError` when Kubernetes does not say."""

    async def token(self, token: str) -> TokenHolder | None: ...

    async def access(self, *, user: str, groups: tuple[str, ...], path: str, verb: str) -> bool: ...


@asynccontextmanager
async def reviewing(address: ClusterAddress) -> AsyncIterator[Reviews]:
    """Open reviews by the managed cluster, apart from the agent's own client: scrapes must not use up its requests."""
    async with KubeClient(address, settings=_REVIEW_LIMITS) as client:
        yield Reviews(client, deadline=_REVIEW_SECONDS)


class Gate:
    """Decides who sees the metrics."""

    def __init__(self, reviews: TokenReviews) -> None:
        self._reviews = reviews
        self._places = asyncio.Semaphore(_REVIEWS_AT_ONCE)

    async def judge(self, authorization: str | None) -> HTTPStatus:
        """Return OK, or how the holder of this header is refused."""
        token = bearer_token(authorization)
        if not token:
            return HTTPStatus.UNAUTHORIZED
        try:
            async with asyncio.timeout(_REVIEW_SECONDS), self._places:
                return await self._review(token)
        except (KubeError, TimeoutError):
            return HTTPStatus.SERVICE_UNAVAILABLE

    async def _review(self, token: str) -> HTTPStatus:
        holder = await self._reviews.token(token)
        if holder is None:
            return HTTPStatus.UNAUTHORIZED
        may = await self._reviews.access(user=holder.user, groups=holder.groups, path=_METRICS_PATH, verb="get")
        return HTTPStatus.OK if may else HTTPStatus.FORBIDDEN


def create_app(*, fitness: Callable[[], Fitness], metrics: Metrics, gate: Gate | None) -> ASGIApp:
    """Return the ASGI app; without a `gate` metrics are for everybody."""

    async def respond(path: str, headers: Headers) -> Response:
        match path:
            case "/livez" | "/healthz":
                return PlainTextResponse("ok")
            case "/readyz":
                return _readiness(fitness())
            case "/metrics":
                verdict = await gate.judge(headers.get("authorization")) if gate else HTTPStatus.OK
                return _shown(metrics) if verdict is HTTPStatus.OK else _refusal(verdict)
            case _:
                return _refusal(HTTPStatus.NOT_FOUND)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["method"] not in {"GET", "HEAD"}:
            response = _refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        else:
            response = await respond(scope["path"].rstrip("/"), Headers(scope=scope))
        await response(scope, receive, send)

    return app


def _readiness(found: Fitness) -> Response:
    if not found.missing:
        return PlainTextResponse(f"ok\n{found.note}\n" if found.note else "ok")
    text = "".join(f"[-]{each}\n" for each in found.missing)
    return PlainTextResponse(f"{text}readyz check failed\n", HTTPStatus.SERVICE_UNAVAILABLE)


def _shown(metrics: Metrics) -> Response:
    body, content_type = metrics.render()
    return Response(body, media_type=content_type)


def _refusal(status: HTTPStatus) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else None
    return PlainTextResponse(f"{status.phrase}\n", status, headers=headers)


@asynccontextmanager
async def serving(
    listen: Listen | None,
    app: ASGIApp,
    *,
    now: datetime,
    on_problem: tls.OnProblem,
    certificate: Path = SERVING_CERTIFICATE,
) -> AsyncIterator[str]:
    """Answer while entered; yields the address, empty when the port is switched off."""
    if listen is None:
        yield ""
        return
    context = _context(certificate, now=now, on_problem=on_problem)
    listener = HttpListener(app, host=listen.host, port=listen.port)
    task = Crew().start("probes", listener.serve(tls=context))
    # One turn of the loop, after which the listener can be stopped in good order.
    await asyncio.sleep(0)
    try:
        host = f"[{listen.host}]" if ":" in listen.host else listen.host or "*"
        yield f"https://{host}:{listener.port}"
    finally:
        listener.stop()
        await task


def _context(directory: Path, *, now: datetime, on_problem: tls.OnProblem) -> ssl.SSLContext:
    cert, key = directory / "tls.crt", directory / "tls.key"
    if cert.exists() and key.exists():
        files = tls.Files(cert=cert, key=key, client_ca=None, flags=_MOUNTED)
        return tls.https_context(files, on_problem=on_problem)
    return selfsigned.context(["localhost"], now=now)
