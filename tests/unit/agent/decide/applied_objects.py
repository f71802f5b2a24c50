"""Objects that several tests of the agent's decisions speak of."""

from typing import Any

from maestropy.agent.decide import identity, ownership, strategy
from maestropy.wire import options, work

OWNER = ownership.Owner(name="hub-work1", uid="amw-1", is_wanted=True)
NO_OWNER = ownership.Owner(name="hub-work1", uid="amw-1", is_wanted=False)
REFERENCE = {
    "apiVersion": "work.open-cluster-management.io/v1",
    "kind": "AppliedManifestWork",
    "name": "hub-work1",
    "uid": "amw-1",
}
OTHER_WORK = REFERENCE | {"name": "hub-work2", "uid": "amw-2"}
FOREIGN = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs-1"}

SERVED: dict[identity.Kind, Any] = {
    identity.Kind("", "v1", "ConfigMap"): identity.ResourceType(
        group="", version="v1", resource="configmaps", is_namespaced=True
    ),
    identity.Kind("", "v1", "Namespace"): identity.ResourceType(
        group="", version="v1", resource="namespaces", is_namespaced=False
    ),
    identity.Kind("apps", "v1", "Deployment"): identity.ResourceType(
        group="apps", version="v1", resource="deployments", is_namespaced=True
    ),
    identity.Kind("rbac.authorization.k8s.io", "v1", "ClusterRole"): identity.ResourceType(
        group="rbac.authorization.k8s.io", version="v1", resource="clusterroles", is_namespaced=False
    ),
}


def config_map(name: str = "cm1", *, namespace: str = "ns1", **members: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} | members.pop("metadata", {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata} | members


def deployment(name: str = "deploy1", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns1"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def living(
    manifest: dict[str, Any], *, owners: tuple[dict[str, str], ...] = (REFERENCE,), **members: Any
) -> dict[str, Any]:
    """Return what a cluster makes of a manifest."""
    metadata = {
        **manifest["metadata"],
        "uid": "uid-1",
        "resourceVersion": "7",
        "creationTimestamp": "2024-01-01T00:00:00Z",
        "ownerReferences": [*owners],
        **members.pop("metadata", {}),
    }
    return {**manifest, "metadata": metadata, **members}


def wish(manifest: dict[str, Any], live: dict[str, Any] | None, **changes: Any) -> strategy.Wish:
    chosen = {"strategy": options.UpdateStrategy(type=options.UPDATE), "owner": OWNER} | changes
    return strategy.Wish(manifest=manifest, live=live, **chosen)


def manifest_work(*manifests: Any, name: str = "work1", **spec: Any) -> work.ManifestWork:
    found = work.new(name, namespace="cluster1", manifests=manifests).with_metadata(uid=name, generation=2)
    return found.with_spec(**spec)
