"""What do the review kinds answer? Access reviews from RBAC, token reviews from the known tokens."""

from typing import Any

from maestropy.sandbox.kubeapi import problems, rbac
from maestropy.sandbox.kubeapi.access import Access
from maestropy.sandbox.kubeapi.kinds import Kind
from maestropy.sandbox.kubeapi.rbac import Question, User
from maestropy.sandbox.kubeapi.store import Store
from maestropy.sandbox.kubeapi.validation import required, wrong

Json = dict[str, Any]


def review(kind: Kind, sent: Any, *, user: User, store: Store, access: Access) -> Json:
    """Return the review that was sent, with its answer."""
    if not isinstance(sent, dict) or not isinstance(sent.get("spec") or {}, dict):
        raise problems.bad_request(f"the body must be a {kind.kind}")
    spec = sent.get("spec") or {}
    if kind.kind == "TokenReview":
        status = _token_status(spec, access)
    else:
        asker = user if kind.kind == "SelfSubjectAccessReview" else _subject(kind, spec)
        status = _access_status(kind, spec, asker, store)
    return {
        "kind": kind.kind,
        "apiVersion": kind.api_version,
        "metadata": {**(sent.get("metadata") or {}), "creationTimestamp": None},
        "spec": spec,
        "status": status,
    }


def _subject(kind: Kind, spec: Json) -> User:
    groups = tuple(spec.get("groups") or ())
    if not spec.get("user") and not groups:
        raise problems.invalid(kind, "", [wrong("spec.user", "", "at least one of user or group must be specified")])
    return User(name=spec.get("user") or "", groups=groups)


def _access_status(kind: Kind, spec: Json, user: User, store: Store) -> Json:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if bool(resource) == bool(path):
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise problems.invalid(kind, "", [wrong("spec.resourceAttributes", "", why)])
    reason = rbac.allows(user, _question(resource, path), store.select)
    return {"allowed": True, "reason": reason} if reason else {"allowed": False}


def _question(resource: Json | None, path: Json | None) -> Question:
    if path:
        return Question(verb=path.get("verb", ""), path=path.get("path", ""))
    assert resource is not None
    below = f"/{resource['subresource']}" if resource.get("subresource") else ""
    return Question(
        verb=resource.get("verb", ""),
        group=resource.get("group", ""),
        resource=f"{resource.get('resource', '')}{below}",
        namespace=resource.get("namespace", ""),
        name=resource.get("name", ""),
    )


def _token_status(spec: Json, access: Access) -> Json:
    token = spec.get("token")
    if not token:
        kind = Kind(group="authentication.k8s.io", version="v1", kind="TokenReview", plural="tokenreviews")
        raise problems.invalid(kind, "", [required("spec.token")])
    user = access.who_has(token)
    if user is None:
        return {"user": {}, "error": "[invalid bearer token, token lookup failed]"}
    who = {"username": user.name, "groups": list(user.groups)} | ({"uid": user.uid} if user.uid else {})
    audiences = spec.get("audiences") or ["https://kubernetes.default.svc.cluster.local"]
    return {"authenticated": True, "user": who, "audiences": audiences}
