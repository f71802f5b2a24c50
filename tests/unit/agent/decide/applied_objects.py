"""Objects shared by the tests of the agent's decisions."""

from typing import Any

from maestropy.agent.decide import manifest_identity, ownership, update_strategy
from maestropy.wire.works import options, work

OWNER = ownership.OwnerReference(name="hub-work1", uid="amw-1", is_owned=True)
NO_OWNER = ownership.OwnerReference(name="hub-work1", uid="amw-1", is_owned=False)
REFERENCE = {
    "apiVersion": "work.open-cluster-management.io/v1",
    "kind": "AppliedManifestWork",
    "name": "hub-work1",
    "uid": "amw-1",
}
OTHER_WORK = REFERENCE | {"name": "hub-work2", "uid": "amw-2"}
FOREIGN = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs-1"}

SERVED: dict[manifest_identity.GroupVersionKind, Any] = {
    manifest_identity.GroupVersionKind("", "v1", "ConfigMap"): manifest_identity.ApiResource(
        group="", version="v1", resource="configmaps", is_namespaced=True
    ),
    manifest_identity.GroupVersionKind("", "v1", "Namespace"): manifest_identity.ApiResource(
        group="", version="v1", resource="namespaces", is_namespaced=False
    ),
    manifest_identity.GroupVersionKind("apps", "v1", "Deployment"): manifest_identity.ApiResource(
        group="apps", version="v1", resource="deployments", is_namespaced=True
    ),
    manifest_identity.GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole"): manifest_identity.ApiResource(
        group="rbac.authorization.k8s.io", version="v1", resource="clusterroles", is_namespaced=False
    ),
}


def config_map(name: str = "cm1", *, namespace: str = "ns1", **members: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} | members.pop("metadata", {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata} | members


def deployment(name: str = "deploy1", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns1"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def live_object(
    manifest: dict[str, Any], *, owners: tuple[dict[str, str], ...] = (REFERENCE,), **members: Any
) -> dict[str, Any]:
    """Return the live object of a manifest."""
    metadata = {
        **manifest["metadata"],
        "uid": "uid-1",
        "resourceVersion": "7",
        "creationTimestamp": "2024-01-01T00:00:00Z",
        "ownerReferences": [*owners],
        **members.pop("metadata", {}),
    }
    return {**manifest, "metadata": metadata, **members}


def apply_input(manifest: dict[str, Any], live: dict[str, Any] | None, **changes: Any) -> update_strategy.ApplyInput:
    chosen: dict[str, Any] = {"strategy": options.UpdateStrategy(type=options.UPDATE), "owner": OWNER} | changes
    return update_strategy.ApplyInput(manifest=manifest, live=live, **chosen)


def manifest_work(*manifests: Any, name: str = "work1", **spec: Any) -> work.ManifestWork:
    new_work = work.new(name, namespace="cluster1", manifests=manifests).with_metadata(uid=name, generation=2)
    return new_work.with_spec(**spec)
