"""What is true of every Kubernetes object: who it is, who owns it, and when its turn is.

Objects are plain JSON; nobody here changes one in place. Nothing here talks to an API server.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pymaestro.kube.errors import Malformed

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Identity:
    """Which object: two manifests with the same identity are the same object."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return split_api_version(self.api_version)[0]

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {where}"


def identify(manifest: Mapping[str, Any]) -> Identity:
    """Return who `manifest` is; refuse one that cannot be addressed."""
    return Identity(
        api_version=_required(manifest, "apiVersion"),
        kind=_required(manifest, "kind"),
        namespace=_optional(metadata(manifest), "metadata.namespace"),
        name=_required(metadata(manifest), "metadata.name"),
    )


def metadata(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata, empty if there is none."""
    found = manifest.get("metadata")
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise Malformed("metadata must be an object")
    return found


def uid(manifest: Mapping[str, Any]) -> str:
    """Return the uid, empty before the object exists."""
    return _optional(metadata(manifest), "metadata.uid")


def resource_version(manifest: Mapping[str, Any]) -> str:
    """Return the resource version, empty before the object exists."""
    return _optional(metadata(manifest), "metadata.resourceVersion")


def is_terminating(manifest: Mapping[str, Any]) -> bool:
    """Whether somebody deleted the object and its finalizers still hold it."""
    return bool(metadata(manifest).get("deletionTimestamp"))


def split_api_version(api_version: str) -> tuple[str, str]:
    """Return group and version; the group of `v1` is empty."""
    group, _, version = api_version.rpartition("/")
    return group, version


def _required(parent: Mapping[str, Any], path: str) -> str:
    found = _optional(parent, path)
    if not found:
        raise Malformed(f"{path} is missing")
    return found


def _optional(parent: Mapping[str, Any], path: str) -> str:
    found = parent.get(path.rpartition(".")[2])
    if found is None:
        return ""
    if not isinstance(found, str):
        raise Malformed(f"{path} must be a string")
    return found


# What others need comes first. Only the kind counts, not its group, as operators know it from the Go agent.
_RANKS: Sequence[frozenset[str]] = (
    frozenset(
        {
            "PriorityClass",
            "Namespace",
            "CustomResourceDefinition",
            "StorageClass",
            "PersistentVolume",
            "PodSecurityPolicy",
        }
    ),
    frozenset({"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}),
    frozenset({"NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget", "ServiceAccount"}),
    frozenset({"Secret", "ConfigMap", "PersistentVolumeClaim"}),
    frozenset({"Service"}),
    frozenset(
        {
            "DaemonSet",
            "Pod",
            "ReplicationController",
            "ReplicaSet",
            "Deployment",
            "HorizontalPodAutoscaler",
            "StatefulSet",
            "Job",
            "CronJob",
        }
    ),
    frozenset(
        {
            "APIService",
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        }
    ),
)
LAST_RANK = 1000
_RANK_OF_KIND: Mapping[str, int] = {kind: rank for rank, kinds in enumerate(_RANKS) for kind in kinds}


def apply_rank(kind: str) -> int:
    """Return when a kind's turn is: lower is applied earlier and deleted later; kinds we do not know come last."""
    return _RANK_OF_KIND.get(kind, LAST_RANK)


def owner_references(manifest: Mapping[str, Any]) -> Sequence[Json]:
    """Return the owners an object names."""
    found = metadata(manifest).get("ownerReferences")
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Malformed("metadata.ownerReferences must be a list of objects")
    return found


def reference_to(owner: Mapping[str, Any]) -> Json:
    """Return the reference that makes an object owned by `owner`, a live object."""
    who = identify(owner)
    return {"apiVersion": who.api_version, "kind": who.kind, "name": who.name, "uid": uid(owner)}


def is_owned_by(manifest: Mapping[str, Any], owner_uid: str) -> bool:
    """Whether an object names the owner with this uid."""
    return bool(owner_uid) and any(each.get("uid") == owner_uid for each in owner_references(manifest))


def is_same_owner(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two references mean the same name of the same kind, whichever version and life (uid) of it."""
    return _owner_slot(one) == _owner_slot(other)


def with_owner(references: Iterable[Json], owner: Json) -> list[Json]:
    """Return `references` naming `owner` once: it takes the place of an earlier life of the same owner."""
    found = list(references)
    for index, each in enumerate(found):
        if is_same_owner(each, owner):
            # What we do not set (controller, blockOwnerDeletion) stays as somebody wanted it.
            found[index] = each | owner
            return found
    return [*found, owner]


def without_owner(references: Iterable[Json], owner_uid: str) -> list[Json]:
    """Return `references` without the owner of this uid."""
    return [each for each in references if each.get("uid") != owner_uid]


def _owner_slot(reference: Mapping[str, Any]) -> tuple[str, Any, Any]:
    return split_api_version(str(reference.get("apiVersion", "")))[0], reference.get("kind"), reference.get("name")


def is_same(found: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Whether two sights of an object show the same life and version of it."""
    return uid(found) == uid(known) and resource_version(found) == resource_version(known)


def is_stale(found: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Whether `found` is an older sight of the object than `known`: a watch may tell late what an answer told before.

    Versions of one object are compared as numbers where they are numbers; where they are not, nothing is stale.
    """
    if uid(found) != uid(known):
        return False
    one, other = resource_version(found), resource_version(known)
    return one.isdecimal() and other.isdecimal() and int(one) < int(other)
