"""The API as an ASGI application: who asks, what for, and the answer in HTTP.

Decides nothing about objects: `verbs` does. Every refusal is a `Status`, every failure of our own a 500 with one.
"""

import logging
from collections import Counter

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from maestropy.sandbox.kubeapi import discovery, openapi, paths
from maestropy.sandbox.kubeapi.access import Access
from maestropy.sandbox.kubeapi.bodies import MAX_BODY_BYTES, too_large
from maestropy.sandbox.kubeapi.faults import Faults
from maestropy.sandbox.kubeapi.kinds import Registry
from maestropy.sandbox.kubeapi.problems import Problem, no_such_path
from maestropy.sandbox.kubeapi.rbac import User
from maestropy.sandbox.kubeapi.verbs import Asked, Verbs

_log = logging.getLogger(__name__)
JSON = "application/json"


class Api:
    """Serves one cluster."""

    def __init__(self, *, verbs: Verbs, registry: Registry, access: Access, faults: Faults) -> None:
        self._verbs = verbs
        self._registry = registry
        self._access = access
        self._faults = faults
        self.counts: Counter[tuple[str, str]] = Counter()
        """Calls by verb and resource, such as `("patch", "deployments/status.apps")`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            response = await self.answer(Request(scope, receive))
        except ClientDisconnect:
            # Nobody is there to be answered.
            return
        await response(scope, receive, send)

    async def answer(self, request: Request) -> Response:
        """Return the answer to one request, a refusal too; for those who need no HTTP to ask."""
        try:
            return await self._answer(request)
        except Problem as problem:
            return refusal(problem)
        except ClientDisconnect:
            raise
        except Exception:  # noqa: BLE001 - whatever it was, the client is owed an answer
            # A fault of the sandbox itself: the client gets a Status, the trace goes to the log.
            _log.exception("request failed")
            return refusal(Problem(500, "InternalError", "Internal error occurred: the sandbox failed; see its log"))

    async def _answer(self, request: Request) -> Response:
        path = request.scope["path"]
        if path in ("/healthz", "/livez", "/readyz"):
            return Response(b"ok", media_type="text/plain")
        user = self._access.authenticate(request.headers)
        watching = request.query_params.get("watch") in ("true", "1")
        call = paths.parse(request.method, path, watching=watching)
        if call is None:
            return self._describe(request, path)
        self.counts[call.verb, call.qualified] += 1
        self._access.check(user, call)
        await self._faults.meet(call)
        return await self._verbs.serve(await _asked(request, call, user))

    def _describe(self, request: Request, path: str) -> Response:
        parts = path.strip("/").split("/")
        accept = request.headers.get("accept", "")
        if path in ("/api", "/apis") and f"g={discovery.AGGREGATED}" in accept:
            api = "v2" if "v=v2;" in accept + ";" or "v=v2," in accept + "," else "v2beta1"
            document = discovery.aggregated(self._registry, core=path == "/api", api=api)
            media = f"{JSON};g={discovery.AGGREGATED};v={api};as=APIGroupDiscoveryList"
            return Response(orjson.dumps(document), media_type=media)
        match parts:
            case ["version"]:
                found: object = discovery.VERSION
            case ["api"]:
                found = discovery.core_versions(str(request.base_url).rstrip("/"))
            case ["apis"]:
                found = discovery.group_list(self._registry)
            case ["api", version]:
                found = discovery.resource_list("", version, self._registry)
            case ["apis", group]:
                found = discovery.group(group, self._registry)
            case ["apis", group, version]:
                found = discovery.resource_list(group, version, self._registry)
            case ["openapi", *rest]:
                found = self._openapi(rest)
            case _:
                found = None
        if found is None:
            raise no_such_path()
        return Response(orjson.dumps(found), media_type=JSON)

    def _openapi(self, rest: list[str]) -> object:
        match rest:
            case ["v2"]:
                return openapi.version_two(self._registry)
            case ["v3"]:
                return openapi.index(self._registry)
            case ["v3", "api", version]:
                return openapi.document("", version, self._registry)
            case ["v3", "apis", group, version]:
                return openapi.document(group, version, self._registry)
        return None


async def _asked(request: Request, call: paths.Call, user: User) -> Asked:
    return Asked(
        call=call,
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


def refusal(problem: Problem) -> Response:
    """Return the answer that says no."""
    headers = {}
    seconds = (problem.details or {}).get("retryAfterSeconds")
    if seconds is not None:
        headers["Retry-After"] = str(seconds)
    if problem.code == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="sandbox"'
    return Response(orjson.dumps(problem.to_status()), status_code=problem.code, media_type=JSON, headers=headers)
