"""Answer SubjectAccessReviews by RBAC and TokenReviews from the tokens of the cluster."""

from typing import Any

from maestropy.sandbox.kubeapi import errors
from maestropy.sandbox.kubeapi.access import rbac
from maestropy.sandbox.kubeapi.access.authorizer import AccessControl
from maestropy.sandbox.kubeapi.access.rbac import AccessAttributes, User
from maestropy.sandbox.kubeapi.rules.validation import invalid_value, required
from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind
from maestropy.sandbox.kubeapi.storage.store import ObjectStore

Json = dict[str, Any]


def review(kind: ServedKind, sent: Any, *, user: User, store: ObjectStore, access: AccessControl) -> Json:
    """Return the review that was sent, with its status."""
    if not isinstance(sent, dict) or not isinstance(sent.get("spec") or {}, dict):
        raise errors.bad_request(f"the body must be a {kind.kind}")
    spec = sent.get("spec") or {}
    if kind.kind == "TokenReview":
        status = _token_status(spec, access)
    else:
        subject = user if kind.kind == "SelfSubjectAccessReview" else _subject(kind, spec)
        status = _access_status(kind, spec, subject, store)
    return {
        "kind": kind.kind,
        "apiVersion": kind.api_version,
        "metadata": {**(sent.get("metadata") or {}), "creationTimestamp": None},
        "spec": spec,
        "status": status,
    }


def _subject(kind: ServedKind, spec: Json) -> User:
    groups = tuple(spec.get("groups") or ())
    if not spec.get("user") and not groups:
        raise errors.invalid(
            kind, "", [invalid_value("spec.user", "", "at least one of user or group must be specified")]
        )
    return User(name=spec.get("user") or "", groups=groups)


def _access_status(kind: ServedKind, spec: Json, user: User, store: ObjectStore) -> Json:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if bool(resource) == bool(path):
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise errors.invalid(kind, "", [invalid_value("spec.resourceAttributes", "", why)])
    reason = rbac.allows(user, _attributes(resource, path), store.select)
    return {"allowed": True, "reason": reason} if reason else {"allowed": False}


def _attributes(resource: Json | None, path: Json | None) -> AccessAttributes:
    if path:
        return AccessAttributes(verb=path.get("verb", ""), path=path.get("path", ""))
    assert resource is not None
    below = f"/{resource['subresource']}" if resource.get("subresource") else ""
    return AccessAttributes(
        verb=resource.get("verb", ""),
        group=resource.get("group", ""),
        resource=f"{resource.get('resource', '')}{below}",
        namespace=resource.get("namespace", ""),
        name=resource.get("name", ""),
    )


def _token_status(spec: Json, access: AccessControl) -> Json:
    token = spec.get("token")
    if not token:
        kind = ServedKind(group="authentication.k8s.io", version="v1", kind="TokenReview", plural="tokenreviews")
        raise errors.invalid(kind, "", [required("spec.token")])
    user = access.user_of(token)
    if user is None:
        return {"user": {}, "error": "[invalid bearer token, token lookup failed]"}
    user_info = {"username": user.name, "groups": list(user.groups)} | ({"uid": user.uid} if user.uid else {})
    audiences = spec.get("audiences") or ["https://kubernetes.default.svc.cluster.local"]
    return {"authenticated": True, "user": user_info, "audiences": audiences}
