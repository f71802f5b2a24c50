"""Decide in which order the manifests of a work are applied.

Dependencies come first: namespaces before namespaced objects, roles before bindings. Only the kind counts. Within a
rank the order of the work stays; the status always keeps the order of the work.
"""

from collections.abc import Iterable, Mapping
from typing import Any

_RANKS = (
    (
        "PriorityClass",
        "Namespace",
        "CustomResourceDefinition",
        "StorageClass",
        "PersistentVolume",
        "PodSecurityPolicy",
    ),
    ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    ("NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget", "ServiceAccount"),
    ("Secret", "ConfigMap", "PersistentVolumeClaim"),
    ("Service",),
    (
        "DaemonSet",
        "Pod",
        "ReplicationController",
        "ReplicaSet",
        "Deployment",
        "HorizontalPodAutoscaler",
        "StatefulSet",
        "Job",
        "CronJob",
    ),
    (
        "APIService",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ),
)
_RANK_OF = {kind: rank for rank, kinds in enumerate(_RANKS) for kind in kinds}
_OTHER = 1000
_UNREADABLE = 1001


def rank(manifest: object) -> int:
    """Return the rank of a manifest; lower ranks are applied first."""
    if not isinstance(manifest, Mapping) or not manifest.get("kind"):
        return _UNREADABLE
    return _RANK_OF.get(str(manifest["kind"]), _OTHER)


def ordinals(manifests: Iterable[Any]) -> list[int]:
    """Return the ordinals of the manifests in the order they are applied."""
    ranked = [rank(manifest) for manifest in manifests]
    return sorted(range(len(ranked)), key=ranked.__getitem__)
