"""May the service account that a work names do what the work wants?

The agent writes with its own rights, which are usually all of them; a work may therefore name an account that must
have the rights too. The questions go to the cluster as SubjectAccessReviews, stopping at the first no; for roles and
bindings a dry run as that account shows whether it would hand out more than it has. Asking is the caller's half.
"""

from dataclasses import dataclass
from typing import Any

from maestropy.wire import options, status

RETRY_SECONDS = 60
"""A denial is asked again after this time: rights may be granted later."""

_VERBS = ("create", "update", "patch", "get")
_ESCALATING = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """What to ask the cluster before one manifest is applied."""

    reviews: tuple[dict[str, Any], ...]
    """SubjectAccessReviews, in this order; the first denial ends it."""
    dry_run_as: str
    """The user to impersonate in a dry-run create, or empty; 403 denies, 409 (exists already) does not."""


def problem(executor: options.Executor) -> str:
    """Return why an executor cannot be asked for at all, or an empty string."""
    if executor.type != options.SERVICE_ACCOUNT:
        return "only support ServiceAccount type for the executor"
    if not executor.name or not executor.namespace:
        return "the executor service account is nil"
    return ""


def questions(executor: options.Executor, meta: status.ResourceMeta, *, is_owned: bool) -> Questions:
    """Return what has to be allowed for this object."""
    verbs = (*_VERBS, "delete") if is_owned else _VERBS
    is_escalating = meta.group == _RBAC and meta.resource in _ESCALATING
    return Questions(
        reviews=tuple(_review(executor, meta, verb) for verb in verbs),
        dry_run_as=user(executor) if is_escalating else "",
    )


def user(executor: options.Executor) -> str:
    """Return the user name of a service account."""
    return f"system:serviceaccount:{executor.namespace}:{executor.name}"


def groups(executor: options.Executor) -> list[str]:
    """Return the groups of a service account."""
    return ["system:serviceaccounts", "system:authenticated", f"system:serviceaccounts:{executor.namespace}"]


def denial(meta: status.ResourceMeta, *, is_escalation: bool = False) -> str:
    """Return what a denied manifest says in its condition."""
    detail = ", error: permission escalation" if is_escalation else ""
    return (
        f"not allowed to apply the resource {meta.group} {meta.resource}, {meta.namespace} {meta.name}{detail}, "
        f"will try again in {RETRY_SECONDS // 60}m0s"
    )


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
