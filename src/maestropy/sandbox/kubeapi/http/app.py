"""Serve the API as an ASGI application: authenticate, parse the request, authorize, dispatch to its handler.

Every rejection is a `Status` response; so is an internal error, with code 500.
"""

import logging
from collections import Counter
from collections.abc import Mapping

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from maestropy.sandbox.kubeapi import request_paths
from maestropy.sandbox.kubeapi.access.authorizer import AccessControl
from maestropy.sandbox.kubeapi.access.rbac import User
from maestropy.sandbox.kubeapi.errors import StatusError, no_such_path
from maestropy.sandbox.kubeapi.faults import Faults
from maestropy.sandbox.kubeapi.http import discovery, openapi, openapi_v2
from maestropy.sandbox.kubeapi.http.bodies import MAX_BODY_BYTES, too_large
from maestropy.sandbox.kubeapi.http.handlers import HandlerRequest, RequestHandlers
from maestropy.sandbox.kubeapi.schemas.kinds import Registry
from maestropy.sandbox.kubeapi.storage.store import StoredObject

_log = logging.getLogger(__name__)
JSON = "application/json"


class ApiServer:
    """The API server of one cluster."""

    def __init__(self, *, handlers: RequestHandlers, registry: Registry, access: AccessControl, faults: Faults) -> None:
        self._handlers = handlers
        self._registry = registry
        self._access = access
        self._faults = faults
        self.request_counts: Counter[tuple[str, str]] = Counter()
        """Requests by verb and resource, such as `("patch", "deployments/status.apps")`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI request."""
        if scope["type"] != "http":
            return
        try:
            response = await self.respond(Request(scope, receive))
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def respond(self, request: Request) -> Response:
        """Return the response to one request, rejections included. Callers without HTTP use it directly."""
        try:
            return await self._dispatch(request)
        except StatusError as error:
            return status_response(error)
        except ClientDisconnect:
            raise
        except Exception:  # noqa: BLE001 - the client needs a response to any failure
            # A bug of the sandbox: the client receives a Status, the log gets the traceback.
            _log.exception("request failed")
            return status_response(
                StatusError(500, "InternalError", "Internal error occurred: the sandbox failed; see its log")
            )

    async def forwarded_pod(self, method: str, path: str, headers: Mapping[str, str]) -> StoredObject:
        """Return the pod that a WebSocket request may be forwarded to; raises StatusError."""
        user = self._access.authenticate(headers)
        info = request_paths.parse(method, path)
        if info is None:
            raise no_such_path()
        self.request_counts[info.verb, info.qualified] += 1
        self._access.authorize(user, info)
        await self._faults.inject(info)
        return self._handlers.forwarded_pod(info)

    async def _dispatch(self, request: Request) -> Response:
        path = request.scope["path"]
        if path in ("/healthz", "/livez", "/readyz"):
            return Response(b"ok", media_type="text/plain")
        user = self._access.authenticate(request.headers)
        is_watch = request.query_params.get("watch") in ("true", "1")
        info = request_paths.parse(request.method, path, is_watch=is_watch)
        if info is None and path == "/openapi/v2":
            return self._openapi_v2(request.headers.get("accept", ""))
        if info is None:
            return self._serve_discovery(request, path)
        self.request_counts[info.verb, info.qualified] += 1
        self._access.authorize(user, info)
        await self._faults.inject(info)
        return await self._handlers.serve(await _read_request(request, info, user))

    def _serve_discovery(self, request: Request, path: str) -> Response:
        parts = path.strip("/").split("/")
        accept = request.headers.get("accept", "")
        if path in ("/api", "/apis") and f"g={discovery.AGGREGATED}" in accept:
            api = "v2" if "v=v2;" in accept + ";" or "v=v2," in accept + "," else "v2beta1"
            document = discovery.aggregated(self._registry, core=path == "/api", api=api)
            media = f"{JSON};g={discovery.AGGREGATED};v={api};as=APIGroupDiscoveryList"
            return Response(orjson.dumps(document), media_type=media)
        match parts:
            case ["version"]:
                content: object = discovery.VERSION
            case ["api"]:
                content = discovery.core_versions(str(request.base_url).rstrip("/"))
            case ["apis"]:
                content = discovery.group_list(self._registry)
            case ["api", version]:
                content = discovery.resource_list("", version, self._registry)
            case ["apis", group]:
                content = discovery.group(group, self._registry)
            case ["apis", group, version]:
                content = discovery.resource_list(group, version, self._registry)
            case ["openapi", *rest]:
                content = self._openapi(rest)
            case _:
                content = None
        if content is None:
            raise no_such_path()
        return Response(orjson.dumps(content), media_type=JSON)

    def _openapi_v2(self, accept: str) -> Response:
        content = openapi_v2.document(self._registry)
        if any(media in accept for media in openapi_v2.ACCEPTED):
            return Response(openapi_v2.protobuf(content), media_type=openapi_v2.PROTOBUF)
        return Response(orjson.dumps(content), media_type=JSON)

    def _openapi(self, rest: list[str]) -> object:
        match rest:
            case ["v3"]:
                return openapi.index(self._registry)
            case ["v3", "api", version]:
                return openapi.document("", version, self._registry)
            case ["v3", "apis", group, version]:
                return openapi.document(group, version, self._registry)
        return None


async def _read_request(request: Request, info: request_paths.RequestInfo, user: User) -> HandlerRequest:
    return HandlerRequest(
        info=info,
        user=user,
        query=dict(request.query_params),
        content_type=request.headers.get("content-type", ""),
        accept=request.headers.get("accept", ""),
        user_agent=request.headers.get("user-agent", ""),
        body=await _body(request),
    )


async def _body(request: Request) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise too_large()
    return b"".join(parts)


def status_response(error: StatusError) -> Response:
    """Return the HTTP response of an error."""
    headers = {}
    seconds = (error.details or {}).get("retryAfterSeconds")
    if seconds is not None:
        headers["Retry-After"] = str(seconds)
    if error.code == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="sandbox"'
    return Response(orjson.dumps(error.to_status()), status_code=error.code, media_type=JSON, headers=headers)
