"""One call about objects in, one HTTP answer out: options are read from the query, the work is done by `objects`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson
from starlette.responses import Response, StreamingResponse

from maestropy.sandbox.kubeapi import bodies, lists, problems, reviews, scale, watch
from maestropy.sandbox.kubeapi.access import Access
from maestropy.sandbox.kubeapi.deleting import Deletion
from maestropy.sandbox.kubeapi.kinds import Kind
from maestropy.sandbox.kubeapi.objects import Objects, Options
from maestropy.sandbox.kubeapi.paths import Call
from maestropy.sandbox.kubeapi.problems import Cause, Problem
from maestropy.sandbox.kubeapi.rbac import User, service_account
from maestropy.sandbox.kubeapi.render import Form, form_for
from maestropy.sandbox.kubeapi.store import Stored

Json = dict[str, Any]
JSON = "application/json"
# As long as an API server lets a watch live that does not say.
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
_DELETE_OPTIONS = Kind(group="meta.k8s.io", version="v1", kind="DeleteOptions", plural="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request about objects, read but not judged."""

    call: Call
    user: User
    query: dict[str, str]
    content_type: str
    accept: str
    user_agent: str
    body: bytes


class Verbs:
    """Carries out calls."""

    def __init__(self, *, objects: Objects, access: Access, pages: lists.Lists, now: Callable[[], datetime]) -> None:
        self._objects = objects
        self._access = access
        self._lists = pages
        self._now = now

    async def serve(self, asked: Asked) -> Response:
        """Answer one call."""
        kind = self._kind(asked.call)
        if asked.call.subresource:
            return self._serve_subresource(kind, asked)
        if asked.call.verb not in kind.verbs:
            raise _not_allowed()
        match asked.call.verb:
            case "get":
                return self._one(kind, self._objects.get(kind, asked.call.namespace, asked.call.name), asked)
            case "list":
                return self._list(kind, asked)
            case "watch":
                return self._watch(kind, asked)
            case "create":
                return self._create(kind, asked)
            case "update" | "patch":
                return self._change(kind, asked)
            case "delete":
                return self._delete(kind, asked)
            case _:
                return self._delete_many(kind, asked)

    def _kind(self, call: Call) -> Kind:
        kind = self._objects.registry.find(call.group, call.version, call.resource)
        if kind is None or (call.namespace and not kind.namespaced):
            raise problems.no_such_path()
        if kind.namespaced and not call.namespace and call.verb not in ("list", "watch", "deletecollection"):
            raise problems.no_such_path()
        return kind

    def _one(
        self, kind: Kind, stored: Stored, asked: Asked, *, status: int = 200, options: Options | None = None
    ) -> Response:
        form = form_for(kind, asked.accept, self._now())
        response = Response(form.one(stored), status_code=status, media_type=JSON)
        for warning in dict.fromkeys(options.warnings if options else ()):
            response.headers.append("Warning", f'299 - "{warning.replace(chr(34), chr(92) + chr(34))}"')
        return response

    def _list(self, kind: Kind, asked: Asked) -> Response:
        page = self._lists.page(kind, asked.call.namespace, asked.query)
        form = form_for(kind, asked.accept, self._now())
        return Response(form.many(page.items, metadata=page.metadata, version=page.version), media_type=JSON)

    def _watch(self, kind: Kind, asked: Asked) -> Response:
        query = dict(asked.query)
        if asked.call.name:
            query["fieldSelector"] = f"metadata.name={asked.call.name}"
        form = form_for(kind, asked.accept, self._now())
        wish = _watch_wish(kind, asked.call.namespace, query, form)
        return StreamingResponse(watch.stream(self._objects.store, wish), media_type=JSON)

    def _create(self, kind: Kind, asked: Asked) -> Response:
        sent = bodies.read(asked.content_type, asked.body)
        if kind.verbs == ("create",):
            answer = reviews.review(kind, sent, user=asked.user, store=self._objects.store, access=self._access)
            return Response(orjson.dumps(answer), status_code=201, media_type=JSON)
        if asked.call.name:
            raise _not_allowed()
        options = self._options(asked)
        stored = self._objects.create(kind, asked.call.namespace, sent, options)
        return self._one(kind, stored, asked, status=201, options=options)

    def _change(self, kind: Kind, asked: Asked) -> Response:
        options = self._options(asked)
        call = asked.call
        if not call.name:
            raise _not_allowed()
        existed = self._objects.store.get(kind.resource, call.namespace if kind.namespaced else "", call.name)
        if call.verb == "update":
            sent = bodies.read(asked.content_type, asked.body)
            stored = self._objects.replace(kind, call.namespace, call.name, sent, options)
        else:
            patch = bodies.read_patch(asked.content_type, asked.body, custom=kind.custom)
            stored = self._objects.patch(kind, call.namespace, call.name, patch=patch, options=options)
        return self._one(kind, stored, asked, status=200 if existed else 201, options=options)

    def _delete(self, kind: Kind, asked: Asked) -> Response:
        deletion = _deletion(asked)
        stored, gone = self._objects.delete(kind, asked.call.namespace, asked.call.name, deletion)
        if not gone or kind.plural in _RETURN_DELETED:
            return self._one(kind, stored, asked)
        details = {"name": stored.name, "group": kind.group, "kind": kind.plural, "uid": stored.uid}
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {name: value for name, value in details.items() if value},
        }
        return Response(orjson.dumps(status), media_type=JSON)

    def _delete_many(self, kind: Kind, asked: Asked) -> Response:
        deletion = _deletion(asked)
        page = self._lists.page(kind, asked.call.namespace, {**asked.query, "limit": "", "continue": ""})
        for stored in page.items:
            self._objects.delete(kind, stored.namespace, stored.name, deletion)
        form = form_for(kind, asked.accept, self._now())
        return Response(form.many(page.items, metadata=page.metadata, version=page.version), media_type=JSON)

    def _serve_subresource(self, kind: Kind, asked: Asked) -> Response:
        call = asked.call
        match call.subresource, call.verb:
            case "status", "get" if kind.has_status:
                return self._one(kind, self._objects.get(kind, call.namespace, call.name), asked)
            case "status", "update" | "patch" if kind.has_status:
                return self._change(kind, asked)
            case "finalize", "update" if kind.plural == "namespaces":
                return self._change(kind, asked)
            case "scale", "get" | "update" | "patch" if kind.scale:
                return self._scale(kind, asked)
            case "token", "create" if kind.resource == ("", "serviceaccounts"):
                return self._token(kind, asked)
        raise problems.no_such_path()

    def _scale(self, kind: Kind, asked: Asked) -> Response:
        call = asked.call
        stored = self._objects.get(kind, call.namespace, call.name)
        if call.verb != "get":
            view = scale.view(kind, stored.obj)
            if call.verb == "update":
                sent = bodies.read(asked.content_type, asked.body)
            else:
                _, patch = bodies.read_patch(asked.content_type, asked.body, custom=False)
                sent = {**view, "spec": {**view["spec"], **(patch.get("spec") or {})}}
            options = replace(self._options(asked), subresource="scale")
            made = scale.changed(kind, stored.obj, sent)
            stored = self._objects.replace(kind, call.namespace, call.name, made, options)
        return Response(orjson.dumps(scale.view(kind, stored.obj)), media_type=JSON)

    def _token(self, kind: Kind, asked: Asked) -> Response:
        call = asked.call
        account = self._objects.get(kind, call.namespace, call.name)
        sent = bodies.read(asked.content_type, asked.body)
        token = f"sandbox-{self._objects.new_id()}"
        self._access.add(token, replace(service_account(call.namespace, call.name), uid=account.uid))
        spec = sent.get("spec") if isinstance(sent, dict) else None
        answer = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": call.name, "namespace": call.namespace},
            "spec": spec or {},
            # Tokens of the sandbox live as long as it does; clients want to see some end.
            "status": {"token": token, "expirationTimestamp": "2099-01-01T00:00:00Z"},
        }
        return Response(orjson.dumps(answer), status_code=201, media_type=JSON)

    def _options(self, asked: Asked) -> Options:
        query = asked.query
        mode = query.get("fieldValidation") or "Warn"
        if mode not in ("Ignore", "Warn", "Strict"):
            raise problems.bad_request(f'fieldValidation: Unsupported value: "{mode}"')
        applying = asked.content_type.startswith("application/apply-patch")
        manager = query.get("fieldManager") or ("" if applying else asked.user_agent.partition("/")[0])
        force = query.get("force")
        return Options(
            manager=manager[:_MAX_MANAGER],
            dry_run=_dry_run(query.get("dryRun")),
            field_validation=mode,
            force=None if force is None else force in ("true", "1"),
            subresource=asked.call.subresource,
            admit=lambda kind, obj: self._access.check_escalation(asked.user, kind, obj),
        )


def _not_allowed() -> Problem:
    text = "the server does not allow this method on the requested resource"
    return Problem(405, "MethodNotAllowed", text, details={})


def _dry_run(value: Any) -> bool:
    given = [value] if isinstance(value, str) else value or []
    if any(each != "All" for each in given if each):
        raise problems.bad_request(f'dryRun: Unsupported value: "{given[0]}": supported values: "All"')
    return "All" in given


def _deletion(asked: Asked) -> Deletion:
    sent = bodies.read(asked.content_type, asked.body) if asked.body.strip() else {}
    if not isinstance(sent, dict):
        raise problems.bad_request("the body must be DeleteOptions")
    options = {
        **sent,
        **{
            name: asked.query[name]
            for name in ("propagationPolicy", "dryRun", "orphanDependents")
            if name in asked.query
        },
    }
    policy = options.get("propagationPolicy")
    if policy not in (None, "Foreground", "Background", "Orphan"):
        text = f'Unsupported value: "{policy}": supported values: "Foreground", "Background", "Orphan", "nil"'
        raise problems.invalid(
            _DELETE_OPTIONS, "", [Cause(field="propagationPolicy", message=text, reason="FieldValueNotSupported")]
        )
    orphan = options.get("orphanDependents")
    if orphan is not None and policy is None:
        policy = "Orphan" if orphan in (True, "true") else "Background"
    preconditions = options.get("preconditions") or {}
    return Deletion(
        propagation=policy,
        uid=preconditions.get("uid"),
        version=preconditions.get("resourceVersion"),
        dry_run=_dry_run(options.get("dryRun")),
    )


def _watch_wish(kind: Kind, namespace: str, query: dict[str, str], form: Form) -> watch.Wish:
    version = lists.number(query, "resourceVersion") or 0
    initial = query.get("sendInitialEvents")
    from_the_start = initial in ("true", "1") or (version == 0 and initial is None)
    test = lists.predicate(kind, query)
    return watch.Wish(
        resource=kind.resource,
        api_version=kind.api_version,
        kind=kind.kind,
        namespace=namespace,
        matches=test or (lambda _obj: True),
        version=None if from_the_start else version,
        bookmarks=query.get("allowWatchBookmarks") in ("true", "1"),
        announce_end_of_list=initial in ("true", "1"),
        seconds=float(lists.number(query, "timeoutSeconds") or _WATCH_SECONDS),
        render=form.one,
    )
