"""Middleware of the REST API: operation ID, access log, metrics, error responses, host check and authentication.

No middleware reads a body. A response that fails after its start is cut short, so that the client can see that it is
incomplete.
"""

from collections.abc import MutableMapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import RestPhrase, SpecWriterPhrase
from maestropy.server.api.rest.dependencies import RestDependencies
from maestropy.server.api.rest.http import error_catalogue, errors, operation_id, refused_requests, routing
from maestropy.server.auth.roles import UNRESTRICTED
from maestropy.server.telemetry.request_spans import RestCall

_ACCESS_VERBOSITY: Final = 2
_HEADERS_VERBOSITY: Final = 4
# Probes request the root; the Go server does not log it either.
_UNLOGGED: Final = frozenset({"/api/maestro", "/api/maestro/"})
_METHODS: Final = frozenset({"GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS"})
_SECRET_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})


class RequestLogMiddleware:
    """The outermost middleware: sets the operation ID, logs and counts requests, and sends error responses."""

    def __init__(self, app: ASGIApp, deps: RestDependencies) -> None:
        self._app = app
        self._deps = deps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        deps = self._deps
        headers = Headers(scope=scope)
        header = headers.get(operation_id.HEADER.decode())
        op_id = operation_id.accepted(None if header is None else header.encode("latin-1", "replace"))
        scope[routing.OPERATION_ID] = op_id or operation_id.ksuid(deps.clock.epoch(), deps.new_id())
        started = deps.clock.monotonic()
        begun = deps.clock.epoch() if deps.spans.is_on else 0.0
        sent: list[int] = []

        async def observed_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent.append(message["status"])
            await send(message)

        self._log_request(scope, headers)
        try:
            await self._app(scope, receive, observed_send)
            self._log_unrouted(scope, sent)
        except ClientDisconnect:
            deps.journal.info(
                RestPhrase.CUT_SHORT, {LogKey.OP_ID: scope[routing.OPERATION_ID], "reason": "the client left"}, v=2
            )
        except Exception as error:  # noqa: BLE001 - the client gets an error response for every exception
            await self._send_error(error, scope, receive, observed_send, has_started=bool(sent))
        status = sent[0] if sent else 499
        self._finish(scope, status=status, seconds=deps.clock.monotonic() - started)
        if deps.spans.is_on:
            call = RestCall(
                method=scope["method"] if scope["method"] in _METHODS else "OTHER",
                path=scope.get(routing.TEMPLATE, routing.NO_ROUTE),
                operation_id=scope[routing.OPERATION_ID],
                trace_parent=headers.get("traceparent", ""),
            )
            deps.spans.rest_answered(call, status=status, start=begun, now=deps.clock.epoch())

    async def _send_error(
        self, error: Exception, scope: Scope, receive: Receive, send: Send, *, has_started: bool
    ) -> None:
        op_id = scope[routing.OPERATION_ID]
        problem = errors.translate(error)
        journal = self._deps.journal
        if has_started:
            journal.warning(RestPhrase.CUT_SHORT, {LogKey.OP_ID: op_id}, err=error)
            return
        fields = {LogKey.OP_ID: op_id, "status": problem.status, "reason": problem.reason}
        if problem.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            journal.warning(SpecWriterPhrase.REJECTED, fields)
        else:
            journal.error(SpecWriterPhrase.FAILED, fields, err=error)
        refused_requests.record(self._deps, scope, problem)
        await errors.response(problem, operation_id=op_id)(scope, receive, send)

    def _log_request(self, scope: Scope, headers: Headers) -> None:
        journal = self._deps.journal
        if scope["path"] in _UNLOGGED or not journal.is_enabled(_ACCESS_VERBOSITY):
            return
        query = scope["query_string"].decode("latin-1")
        host, port = scope.get("client") or ("", 0)
        line: MutableMapping[str, Any] = {
            "request_method": scope["method"],
            "request_url": scope["path"] + (f"?{query}" if query else ""),
            "request_remote_ip": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
        }
        if journal.is_enabled(_HEADERS_VERBOSITY):
            line["request_header"] = {k: v for k, v in headers.items() if k not in _SECRET_HEADERS}
        self._write_access(scope, line)

    def _finish(self, scope: Scope, *, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        path = scope.get(routing.TEMPLATE, routing.NO_ROUTE)
        self._deps.metrics.request_finished(method=method, path=path, code=status, seconds=seconds)
        if scope["path"] not in _UNLOGGED and self._deps.journal.is_enabled(_ACCESS_VERBOSITY):
            self._write_access(scope, {"response_status": status, "elapsed": f"{seconds * 1000:.3f}ms"})

    def _log_unrouted(self, scope: Scope, sent: Sequence[int]) -> None:
        """Log the rejections of the router, which sends its own responses instead of raising errors."""
        if routing.TEMPLATE not in scope:
            reason = "no such path"
        elif sent and sent[0] == HTTPStatus.METHOD_NOT_ALLOWED:
            reason = "no such method"
        else:
            return
        fields = {LogKey.OP_ID: scope[routing.OPERATION_ID], "status": sent[0], "reason": reason}
        self._deps.journal.warning(SpecWriterPhrase.REJECTED, fields)

    def _write_access(self, scope: Scope, line: MutableMapping[str, Any]) -> None:
        text = msgspec.json.encode(line).decode()
        self._deps.journal.info(text, {LogKey.OP_ID: scope[routing.OPERATION_ID]}, v=_ACCESS_VERBOSITY)


class AuthenticationMiddleware:
    """Authenticates requests; without an authenticator all requests pass."""

    def __init__(self, app: ASGIApp, deps: RestDependencies) -> None:
        self._app = app
        self._authenticate = deps.authenticate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Authenticate the request and pass it on."""
        if scope["type"] == "http":
            scope[routing.CLIENT] = UNRESTRICTED
            if self._authenticate is not None:
                scope[routing.CLIENT] = await self._authenticate(Headers(scope=scope).get("authorization"))
        await self._app(scope, receive, send)


class HostMiddleware:
    """Rejects requests that name another server."""

    def __init__(self, app: ASGIApp, deps: RestDependencies) -> None:
        self._app = app
        self._hosts = deps.hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the `Host` header of the request and pass it on."""
        if scope["type"] == "http":
            headers = Headers(scope=scope).getlist("host")
            if not any(header.strip() for header in headers):
                raise errors.RestError(error_catalogue.BAD_REQUEST, "The request has no Host header")
            if len(headers) > 1 or not self._hosts.allows(headers[0]):
                shown = errors.shorten(headers[0])
                reason = f"This server is not '{shown}'; if it is, add the name to --http-allowed-hosts"
                raise errors.RestError(error_catalogue.BAD_REQUEST, reason, status=HTTPStatus.MISDIRECTED_REQUEST)
        await self._app(scope, receive, send)
