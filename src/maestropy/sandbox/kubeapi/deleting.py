"""May this object be deleted, and what must happen before it goes? Preconditions and finalizers. Pure."""

from dataclasses import dataclass

from maestropy.sandbox.kubeapi.kinds import Kind
from maestropy.sandbox.kubeapi.problems import Problem
from maestropy.sandbox.kubeapi.store import Stored

DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")
CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_BY_POLICY = {"Orphan": ["orphan"], "Foreground": ["foregroundDeletion"], "Background": []}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """How one object is to be deleted."""

    propagation: str | None = None
    uid: str | None = None
    version: str | None = None
    dry_run: bool = False


def check(kind: Kind, old: Stored, deletion: Deletion) -> None:
    """Refuse to delete another object, or another state of it, than the client saw."""
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


def _conflict(kind: Kind, name: str, why: str) -> Problem:
    # Said of the kind, not of the resource: so it is in Kubernetes.
    about = {"name": name, "group": kind.group, "kind": kind.kind}
    details = {field: value for field, value in about.items() if value}
    message = f'Operation cannot be fulfilled on {kind.qualified_kind} "{name}": {why}'
    return Problem(409, "Conflict", message, details=details)


def finalizers(kind: Kind, old: Stored, deletion: Deletion) -> list[str]:
    """Return what holds the object back; the policy of an earlier request stays unless a new one is given."""
    present = list(old.obj["metadata"].get("finalizers") or [])
    if kind.resource == DEFINITIONS and CRD_FINALIZER not in present:
        present.append(CRD_FINALIZER)
    policy = deletion.propagation
    if policy is None and kind.resource == ("batch", "jobs") and not present:
        # As old as Job itself: without a word, its pods stay.
        policy = "Orphan"
    if policy is None:
        return present
    kept = [each for each in present if each not in ("orphan", "foregroundDeletion")]
    return [*kept, *_BY_POLICY[policy]]
