"""Decide which access reviews a work's executor must pass.

The agent writes and reads with its own permissions; a work may name a service account that must have the permissions
too. They are checked by SubjectAccessReviews up to the first denial. For roles and bindings a dry run as that account
detects privilege escalation. An object that the account may not get is not reported: no feedback, no condition rules.
`state.access_reviews` sends the requests.
"""

from dataclasses import dataclass
from typing import Any

from maestropy.wire.works import options, status

RETRY_SECONDS = 60
"""A denied manifest is reviewed again after this time: permissions may be granted later."""

_VERBS = ("create", "update", "patch", "get")
_ESCALATING = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessChecks:
    """The reviews before one manifest is applied."""

    reviews: tuple[dict[str, Any], ...]
    """SubjectAccessReviews in this order; the first denial ends it."""
    dry_run_as: str
    """The user to impersonate in a dry-run create, or empty; 403 denies, 409 (already exists) does not."""


def problem(executor: options.Executor) -> str:
    """Return why an executor is invalid, or an empty string."""
    if executor.type != options.SERVICE_ACCOUNT:
        return "only support ServiceAccount type for the executor"
    if not executor.name or not executor.namespace:
        return "the executor service account is nil"
    return ""


def access_checks(executor: options.Executor, meta: status.ResourceMeta, *, is_owned: bool) -> AccessChecks:
    """Return the reviews for one manifest."""
    verbs = (*_VERBS, "delete") if is_owned else _VERBS
    is_escalating = meta.group == _RBAC and meta.resource in _ESCALATING
    return AccessChecks(
        reviews=tuple(_review(executor, meta, verb) for verb in verbs),
        dry_run_as=user(executor) if is_escalating else "",
    )


def read_review(executor: options.Executor, meta: status.ResourceMeta) -> dict[str, Any]:
    """Return the review before anything of an object is reported."""
    return _review(executor, meta, "get")


def user(executor: options.Executor) -> str:
    """Return the user name of a service account."""
    return f"system:serviceaccount:{executor.namespace}:{executor.name}"


def groups(executor: options.Executor) -> list[str]:
    """Return the groups of a service account."""
    return ["system:serviceaccounts", "system:authenticated", f"system:serviceaccounts:{executor.namespace}"]


def denial(meta: status.ResourceMeta, *, is_escalation: bool = False) -> str:
    """Return the message of a denied manifest's condition."""
    detail = ", error: permission escalation" if is_escalation else ""
    return (
        f"not allowed to apply the resource {meta.group} {meta.resource}, {meta.namespace} {meta.name}{detail}, "
        f"will try again in {RETRY_SECONDS // 60}m0s"
    )


def read_denial(executor: options.Executor, meta: status.ResourceMeta) -> str:
    """Return the message of the conditions of an object that may not be reported."""
    location = f"{meta.group} {meta.resource}, {meta.namespace} {meta.name}"
    return f"the executor {user(executor)} is not allowed to get the resource {location}"


def _review(executor: options.Executor, meta: status.ResourceMeta, verb: str) -> dict[str, Any]:
    attributes = {
        "verb": verb,
        "group": meta.group,
        "version": meta.version,
        "resource": meta.resource,
        "namespace": meta.namespace,
        "name": meta.name,
    }
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user(executor), "groups": groups(executor), "resourceAttributes": attributes},
    }
