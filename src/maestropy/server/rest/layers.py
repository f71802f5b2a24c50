"""What happens around every request: its operation id, its log lines, its count, and what becomes of an error.

No layer looks into a body. A response that has begun cannot be taken back: when it fails half-way it ends without its
end, so that the client knows it is not whole.
"""

from collections.abc import MutableMapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from maestropy.journal.fields import Key
from maestropy.server.rest import operation, problems, routing
from maestropy.server.rest.dependencies import RestDependencies

REFUSED: Final = "request refused"
FAILED: Final = "request failed"
CUT_SHORT: Final = "response cut short"

_ACCESS_VERBOSITY: Final = 2
_HEADERS_VERBOSITY: Final = 4
# The bare root is asked by probes; the reference does not log it either.
_UNLOGGED: Final = frozenset({"/api/maestro", "/api/maestro/"})
_METHODS: Final = frozenset({"GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS"})
_SECRET_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})


class Observed:
    """The outermost layer: names the operation, tells the log and the metrics, and turns errors into answers."""

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
        given = headers.get(operation.HEADER.decode())
        op_id = operation.accepted(None if given is None else given.encode("latin-1", "replace"))
        scope[routing.OPERATION_ID] = op_id or operation.ksuid(deps.clock.epoch(), deps.new_id())
        started = deps.clock.monotonic()
        sent: list[int] = []

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent.append(message["status"])
            await send(message)

        self._log_request(scope, headers)
        try:
            await self._app(scope, receive, watched)
            self._tell_unrouted(scope, sent)
        except ClientDisconnect:
            deps.journal.info(CUT_SHORT, {Key.OP_ID: scope[routing.OPERATION_ID], "reason": "the client left"}, v=2)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises, the client gets our error form
            await self._answer_error(error, scope, receive, watched, begun=bool(sent))
        self._finish(scope, status=sent[0] if sent else 499, seconds=deps.clock.monotonic() - started)

    async def _answer_error(self, error: Exception, scope: Scope, receive: Receive, send: Send, *, begun: bool) -> None:
        op_id = scope[routing.OPERATION_ID]
        problem = problems.translate(error)
        journal = self._deps.journal
        if begun:
            journal.warning(CUT_SHORT, {Key.OP_ID: op_id}, err=error)
            return
        fields = {Key.OP_ID: op_id, "status": problem.status, "reason": problem.reason}
        if problem.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            journal.warning(REFUSED, fields)
        else:
            journal.error(FAILED, fields, err=error)
        await problems.answer(problem, operation_id=op_id)(scope, receive, send)

    def _log_request(self, scope: Scope, headers: Headers) -> None:
        journal = self._deps.journal
        if scope["path"] in _UNLOGGED or not journal.enabled(_ACCESS_VERBOSITY):
            return
        query = scope["query_string"].decode("latin-1")
        host, port = scope.get("client") or ("", 0)
        line: MutableMapping[str, Any] = {
            "request_method": scope["method"],
            "request_url": scope["path"] + (f"?{query}" if query else ""),
            "request_remote_ip": f"{host}:{port}",
        }
        if journal.enabled(_HEADERS_VERBOSITY):
            line["request_header"] = {k: v for k, v in headers.items() if k not in _SECRET_HEADERS}
        self._write_access(scope, line)

    def _finish(self, scope: Scope, *, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        path = scope.get(routing.TEMPLATE, routing.NO_ROUTE)
        self._deps.metrics.request_finished(method=method, path=path, code=status, seconds=seconds)
        if scope["path"] not in _UNLOGGED and self._deps.journal.enabled(_ACCESS_VERBOSITY):
            self._write_access(scope, {"response_status": status, "elapsed": f"{seconds * 1000:.3f}ms"})

    def _tell_unrouted(self, scope: Scope, sent: Sequence[int]) -> None:
        """Log what the router refused: its answers are no errors, because their bodies differ from all others."""
        if routing.TEMPLATE not in scope:
            reason = "no such path"
        elif sent and sent[0] == HTTPStatus.METHOD_NOT_ALLOWED:
            reason = "no such method"
        else:
            return
        fields = {Key.OP_ID: scope[routing.OPERATION_ID], "status": sent[0], "reason": reason}
        self._deps.journal.warning(REFUSED, fields)

    def _write_access(self, scope: Scope, line: MutableMapping[str, Any]) -> None:
        text = msgspec.json.encode(line).decode()
        self._deps.journal.info(text, {Key.OP_ID: scope[routing.OPERATION_ID]}, v=_ACCESS_VERBOSITY)


class Authenticated:
    """Lets a request pass when its token is good; without a check to make it lets everybody pass."""

    def __init__(self, app: ASGIApp, deps: RestDependencies) -> None:
        self._app = app
        self._authenticate = deps.authenticate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request and pass it on."""
        if self._authenticate is not None and scope["type"] == "http":
            await self._authenticate(Headers(scope=scope).get("authorization"))
        await self._app(scope, receive, send)
