"""Decide a deletion: check its preconditions and choose the finalizers. Pure."""

from dataclasses import dataclass

from maestropy.sandbox.kubeapi.errors import StatusError
from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind
from maestropy.sandbox.kubeapi.storage.store import StoredObject

DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")
CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_BY_POLICY = {"Orphan": ["orphan"], "Foreground": ["foregroundDeletion"], "Background": []}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionRequest:
    """The `DeleteOptions` of one request: propagation policy, preconditions, dry run."""

    propagation: str | None = None
    uid: str | None = None
    version: str | None = None
    dry_run: bool = False


def check(kind: ServedKind, old: StoredObject, deletion: DeletionRequest) -> None:
    """Reject the deletion if its UID or resourceVersion precondition does not hold."""
    if deletion.uid and deletion.uid != old.uid:
        why = (
            f"the UID in the precondition ({deletion.uid}) does not match the UID in record ({old.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise _conflict(kind, old.name, why)
    version = old.obj["metadata"]["resourceVersion"]
    if deletion.version and deletion.version != version:
        why = (
            f"the ResourceVersion in the precondition ({deletion.version}) does not match the ResourceVersion in "
            f"record ({version}). The object might have been modified"
        )
        raise _conflict(kind, old.name, why)


def _conflict(kind: ServedKind, name: str, why: str) -> StatusError:
    # Kubernetes names the kind here, not the resource.
    about = {"name": name, "group": kind.group, "kind": kind.kind}
    details = {field: value for field, value in about.items() if value}
    message = f'Operation cannot be fulfilled on {kind.qualified_kind} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=details)


def finalizers(kind: ServedKind, old: StoredObject, deletion: DeletionRequest) -> list[str]:
    """Return the finalizers after the request; an earlier propagation policy stays unless a new one is given."""
    present = list(old.obj["metadata"].get("finalizers") or [])
    if kind.resource == DEFINITIONS and CRD_FINALIZER not in present:
        present.append(CRD_FINALIZER)
    policy = deletion.propagation
    if policy is None and kind.resource == ("batch", "jobs") and not present:
        # Kubernetes orphans the pods of a Job that is deleted without a propagation policy.
        policy = "Orphan"
    if policy is None:
        return present
    kept = [finalizer for finalizer in present if finalizer not in ("orphan", "foregroundDeletion")]
    return [*kept, *_BY_POLICY[policy]]
