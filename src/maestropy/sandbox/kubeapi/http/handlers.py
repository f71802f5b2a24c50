"""Handle requests for objects: read the options from the query, call `objects`, render the response."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson
from starlette.responses import Response, StreamingResponse

from maestropy.sandbox.kubeapi import errors
from maestropy.sandbox.kubeapi.access import reviews
from maestropy.sandbox.kubeapi.access.authorizer import AccessControl
from maestropy.sandbox.kubeapi.access.rbac import User, service_account
from maestropy.sandbox.kubeapi.errors import Cause, StatusError
from maestropy.sandbox.kubeapi.http import bodies, pod_logs, scale
from maestropy.sandbox.kubeapi.http.representations import Representation, negotiate
from maestropy.sandbox.kubeapi.objects import Objects, ObjectWriteOptions
from maestropy.sandbox.kubeapi.request_paths import RequestInfo
from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind
from maestropy.sandbox.kubeapi.storage import lists, watch
from maestropy.sandbox.kubeapi.storage.deletion import DeletionRequest
from maestropy.sandbox.kubeapi.storage.store import StoredObject

Json = dict[str, Any]
JSON = "application/json"
# The timeout of a watch without timeoutSeconds.
_WATCH_SECONDS = 1800
_MAX_MANAGER = 128
_RETURN_DELETED = {
    "csidrivers",
    "namespaces",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "resourcequotas",
    "serviceaccounts",
    "services",
    "storageclasses",
}
_DELETE_OPTIONS = ServedKind(group="meta.k8s.io", version="v1", kind="DeleteOptions", plural="")


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerRequest:
    """One authorized request for objects, with its undecoded body."""

    info: RequestInfo
    user: User
    query: dict[str, str]
    content_type: str
    accept: str
    user_agent: str
    body: bytes


class RequestHandlers:
    """The handlers of all verbs and subresources."""

    def __init__(
        self, *, objects: Objects, access: AccessControl, list_reader: lists.ListReader, now: Callable[[], datetime]
    ) -> None:
        self._objects = objects
        self._access = access
        self._lists = list_reader
        self._now = now

    async def serve(self, request: HandlerRequest) -> Response:
        """Return the response to one request."""
        kind = self._kind(request.info)
        if request.info.subresource:
            return self._serve_subresource(kind, request)
        if request.info.verb not in kind.verbs:
            raise _not_allowed()
        match request.info.verb:
            case "get":
                return self._one(kind, self._objects.get(kind, request.info.namespace, request.info.name), request)
            case "list":
                return self._list(kind, request)
            case "watch":
                return self._watch(kind, request)
            case "create":
                return self._create(kind, request)
            case "update" | "patch":
                return self._change(kind, request)
            case "delete":
                return self._delete(kind, request)
            case _:
                return self._delete_many(kind, request)

    def _kind(self, info: RequestInfo) -> ServedKind:
        kind = self._objects.registry.find(info.group, info.version, info.resource)
        if kind is None or (info.namespace and not kind.namespaced):
            raise errors.no_such_path()
        if kind.namespaced and not info.namespace and info.verb not in ("list", "watch", "deletecollection"):
            raise errors.no_such_path()
        return kind

    def _one(
        self,
        kind: ServedKind,
        stored: StoredObject,
        request: HandlerRequest,
        *,
        status: int = 200,
        options: ObjectWriteOptions | None = None,
    ) -> Response:
        form = negotiate(kind, request.accept, self._now())
        response = Response(form.one(stored), status_code=status, media_type=JSON)
        for warning in dict.fromkeys(options.warnings if options else ()):
            response.headers.append("Warning", f'299 - "{warning.replace(chr(34), chr(92) + chr(34))}"')
        return response

    def _list(self, kind: ServedKind, request: HandlerRequest) -> Response:
        page = self._lists.page(kind, request.info.namespace, request.query)
        form = negotiate(kind, request.accept, self._now())
        return Response(form.many(page.items, metadata=page.metadata, version=page.version), media_type=JSON)

    def _watch(self, kind: ServedKind, request: HandlerRequest) -> Response:
        query = dict(request.query)
        if request.info.name:
            query["fieldSelector"] = f"metadata.name={request.info.name}"
        form = negotiate(kind, request.accept, self._now())
        watch_request = _watch_request(kind, request.info.namespace, query, form)
        return StreamingResponse(watch.stream(self._objects.store, watch_request), media_type=JSON)

    def _create(self, kind: ServedKind, request: HandlerRequest) -> Response:
        sent = bodies.read(request.content_type, request.body)
        if kind.verbs == ("create",):
            review = reviews.review(kind, sent, user=request.user, store=self._objects.store, access=self._access)
            return Response(orjson.dumps(review), status_code=201, media_type=JSON)
        if request.info.name:
            raise _not_allowed()
        options = self._options(request)
        stored = self._objects.create(kind, request.info.namespace, sent, options)
        return self._one(kind, stored, request, status=201, options=options)

    def _change(self, kind: ServedKind, request: HandlerRequest) -> Response:
        options = self._options(request)
        info = request.info
        if not info.name:
            raise _not_allowed()
        existed = self._objects.store.get(kind.resource, info.namespace if kind.namespaced else "", info.name)
        if info.verb == "update":
            sent = bodies.read(request.content_type, request.body)
            stored = self._objects.replace(kind, info.namespace, info.name, sent, options)
        else:
            patch = bodies.read_patch(request.content_type, request.body, is_custom=kind.is_custom)
            stored = self._objects.patch(kind, info.namespace, info.name, patch=patch, options=options)
        return self._one(kind, stored, request, status=200 if existed else 201, options=options)

    def _delete(self, kind: ServedKind, request: HandlerRequest) -> Response:
        deletion = _deletion(request)
        stored, is_deleted = self._objects.delete(kind, request.info.namespace, request.info.name, deletion)
        if not is_deleted or kind.plural in _RETURN_DELETED:
            return self._one(kind, stored, request)
        details = {"name": stored.name, "group": kind.group, "kind": kind.plural, "uid": stored.uid}
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {name: value for name, value in details.items() if value},
        }
        return Response(orjson.dumps(status), media_type=JSON)

    def _delete_many(self, kind: ServedKind, request: HandlerRequest) -> Response:
        deletion = _deletion(request)
        page = self._lists.page(kind, request.info.namespace, {**request.query, "limit": "", "continue": ""})
        for stored in page.items:
            self._objects.delete(kind, stored.namespace, stored.name, deletion)
        form = negotiate(kind, request.accept, self._now())
        return Response(form.many(page.items, metadata=page.metadata, version=page.version), media_type=JSON)

    def _serve_subresource(self, kind: ServedKind, request: HandlerRequest) -> Response:
        info = request.info
        match info.subresource, info.verb:
            case "status", "get" if kind.has_status:
                return self._one(kind, self._objects.get(kind, info.namespace, info.name), request)
            case "status", "update" | "patch" if kind.has_status:
                return self._change(kind, request)
            case "finalize", "update" if kind.plural == "namespaces":
                return self._change(kind, request)
            case "scale", "get" | "update" | "patch" if kind.scale:
                return self._scale(kind, request)
            case "token", "create" if kind.resource == ("", "serviceaccounts"):
                return self._token(kind, request)
            case "log", "get" if kind.resource == ("", "pods"):
                pod = self._objects.get(kind, info.namespace, info.name)
                return Response(pod_logs.text(pod, request.query.get("container", "")), media_type="text/plain")
            case "portforward" | "exec" | "attach", _ if kind.resource == ("", "pods"):
                self.forwarded_pod(info)
                raise errors.bad_request(
                    "Upgrade request required: the sandbox forwards ports over WebSocket, as kubectl does since 1.31"
                )
        raise errors.no_such_path()

    def forwarded_pod(self, info: RequestInfo) -> StoredObject:
        """Return the pod of a port-forward; raises StatusError for everything else that needs an upgrade."""
        kind = self._kind(info)
        if kind.resource != ("", "pods") or info.subresource not in ("portforward", "exec", "attach"):
            raise errors.bad_request("only port-forwards to pods are served over WebSocket")
        pod = self._objects.get(kind, info.namespace, info.name)
        if info.subresource != "portforward":
            raise StatusError(
                501, "NotImplemented", f"the sandbox runs no containers: pods/{info.subresource} is not served"
            )
        return pod

    def _scale(self, kind: ServedKind, request: HandlerRequest) -> Response:
        info = request.info
        stored = self._objects.get(kind, info.namespace, info.name)
        if info.verb != "get":
            view = scale.view(kind, stored.obj)
            if info.verb == "update":
                sent = bodies.read(request.content_type, request.body)
            else:
                _, patch = bodies.read_patch(request.content_type, request.body, is_custom=False)
                sent = {**view, "spec": {**view["spec"], **(patch.get("spec") or {})}}
            options = replace(self._options(request), subresource="scale")
            scaled = scale.changed(kind, stored.obj, sent)
            stored = self._objects.replace(kind, info.namespace, info.name, scaled, options)
        return Response(orjson.dumps(scale.view(kind, stored.obj)), media_type=JSON)

    def _token(self, kind: ServedKind, request: HandlerRequest) -> Response:
        info = request.info
        account = self._objects.get(kind, info.namespace, info.name)
        sent = bodies.read(request.content_type, request.body)
        token = f"sandbox-{self._objects.new_id()}"
        self._access.add(token, replace(service_account(info.namespace, info.name), uid=account.uid))
        spec = sent.get("spec") if isinstance(sent, dict) else None
        token_request = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": info.name, "namespace": info.namespace},
            "spec": spec or {},
            # Tokens of the sandbox do not expire, but clients require an expiration.
            "status": {"token": token, "expirationTimestamp": "2099-01-01T00:00:00Z"},
        }
        return Response(orjson.dumps(token_request), status_code=201, media_type=JSON)

    def _options(self, request: HandlerRequest) -> ObjectWriteOptions:
        query = request.query
        mode = query.get("fieldValidation") or "Warn"
        if mode not in ("Ignore", "Warn", "Strict"):
            raise errors.bad_request(f'fieldValidation: Unsupported value: "{mode}"')
        applying = request.content_type.startswith("application/apply-patch")
        manager = query.get("fieldManager") or ("" if applying else request.user_agent.partition("/")[0])
        force = query.get("force")
        return ObjectWriteOptions(
            manager=manager[:_MAX_MANAGER],
            dry_run=_dry_run(query.get("dryRun")),
            field_validation=mode,
            force=None if force is None else force in ("true", "1"),
            subresource=request.info.subresource,
            admit=lambda kind, obj: self._access.check_escalation(request.user, kind, obj),
        )


def _not_allowed() -> StatusError:
    text = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", text, details={})


def _dry_run(value: Any) -> bool:
    values = [value] if isinstance(value, str) else value or []
    if any(item != "All" for item in values if item):
        raise errors.bad_request(f'dryRun: Unsupported value: "{values[0]}": supported values: "All"')
    return "All" in values


def _deletion(request: HandlerRequest) -> DeletionRequest:
    sent = bodies.read(request.content_type, request.body) if request.body.strip() else {}
    if not isinstance(sent, dict):
        raise errors.bad_request("the body must be DeleteOptions")
    options = {
        **sent,
        **{
            name: request.query[name]
            for name in ("propagationPolicy", "dryRun", "orphanDependents")
            if name in request.query
        },
    }
    policy = options.get("propagationPolicy")
    if policy not in (None, "Foreground", "Background", "Orphan"):
        text = f'Unsupported value: "{policy}": supported values: "Foreground", "Background", "Orphan", "nil"'
        raise errors.invalid(
            _DELETE_OPTIONS, "", [Cause(field="propagationPolicy", message=text, reason="FieldValueNotSupported")]
        )
    orphan = options.get("orphanDependents")
    if orphan is not None and policy is None:
        policy = "Orphan" if orphan in (True, "true") else "Background"
    preconditions = options.get("preconditions") or {}
    return DeletionRequest(
        propagation=policy,
        uid=preconditions.get("uid"),
        version=preconditions.get("resourceVersion"),
        dry_run=_dry_run(options.get("dryRun")),
    )


def _watch_request(kind: ServedKind, namespace: str, query: dict[str, str], form: Representation) -> watch.WatchRequest:
    version = lists.number(query, "resourceVersion") or 0
    initial = query.get("sendInitialEvents")
    from_the_start = initial in ("true", "1") or (version == 0 and initial is None)
    test = lists.predicate(kind, query)
    return watch.WatchRequest(
        resource=kind.resource,
        api_version=kind.api_version,
        kind=kind.kind,
        namespace=namespace,
        matches=test or (lambda _obj: True),
        version=None if from_the_start else version,
        allows_bookmarks=query.get("allowWatchBookmarks") in ("true", "1"),
        sends_initial_events_end=initial in ("true", "1"),
        seconds=float(lists.number(query, "timeoutSeconds") or _WATCH_SECONDS),
        render=form.one,
    )
