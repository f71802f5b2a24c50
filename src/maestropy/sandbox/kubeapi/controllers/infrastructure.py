"""Control what workloads depend on: default ServiceAccounts, Nodes, PVCs, aggregated ClusterRoles and PDBs."""

from typing import Any

from maestropy.sandbox.kubeapi.objects import Objects, ObjectWriteOptions
from maestropy.sandbox.kubeapi.rules.selectors import match_labels
from maestropy.sandbox.kubeapi.storage.store import StoredObject

Json = dict[str, Any]
_ROLES = ("rbac.authorization.k8s.io", "clusterroles")
_MANAGER = "kube-controller-manager"


def namespace(objects: Objects, stored: StoredObject) -> None:
    """Create the default ServiceAccount and the root CA ConfigMap of a namespace."""
    if stored.obj["metadata"].get("deletionTimestamp"):
        return
    for plural, obj in (
        ("serviceaccounts", {"metadata": {"name": "default"}}),
        ("configmaps", {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": ""}}),
    ):
        kind = objects.registry.of_resource("", plural)
        assert kind is not None
        if objects.store.get(kind.resource, stored.name, obj["metadata"]["name"]) is None:
            objects.create(kind, stored.name, obj, ObjectWriteOptions(manager=_MANAGER))


def node(objects: Objects, stored: StoredObject) -> None:
    """Set a Node ready."""
    room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": stored.obj["metadata"]["creationTimestamp"],
        "lastTransitionTime": stored.obj["metadata"]["creationTimestamp"],
    }
    objects.write_status(stored, {"capacity": room, "allocatable": room, "conditions": [condition]}, manager="kubelet")


def claim(objects: Objects, stored: StoredObject) -> None:
    """Bind a PersistentVolumeClaim."""
    if stored.obj["metadata"].get("deletionTimestamp"):
        return
    spec = stored.obj["spec"]
    volume = spec.get("volumeName") or f"pvc-{stored.uid}"
    objects.guaranteed_update(stored, lambda obj: {**obj, "spec": {**obj["spec"], "volumeName": volume}})
    status = {
        "phase": "Bound",
        "accessModes": spec.get("accessModes") or [],
        "capacity": (spec.get("resources") or {}).get("requests") or {},
    }
    objects.write_status(stored, status, manager=_MANAGER)


def cluster_role(objects: Objects, stored: StoredObject) -> None:
    """Write the rules of all aggregated ClusterRoles: finding out which ones are affected costs as much."""
    for role in objects.store.select(_ROLES):
        aggregation = role.obj.get("aggregationRule")
        if not aggregation or role.obj["metadata"].get("deletionTimestamp"):
            continue
        rules = _gathered(objects, role, aggregation)
        objects.guaranteed_update(role, lambda obj, rules=rules: {**obj, "rules": rules})  # type: ignore[misc]  # mypy cannot infer a lambda with a bound default
    _ = stored


def _gathered(objects: Objects, role: StoredObject, aggregation: Json) -> list[Json]:
    chosen: list[Json] = []
    for source in objects.store.select(_ROLES):
        labels = source.obj["metadata"].get("labels") or {}
        fits = any(match_labels(selector, labels) for selector in aggregation.get("clusterRoleSelectors") or [])
        if fits and source.uid != role.uid:
            chosen.extend(rule for rule in source.obj.get("rules") or [] if rule not in chosen)
    return chosen


def budget(objects: Objects, stored: StoredObject) -> None:
    """Write the pod counts of a PodDisruptionBudget."""
    selector = stored.obj["spec"].get("selector") or {}
    pods = [
        pod
        for pod in objects.store.select(("", "pods"), stored.namespace)
        if match_labels(selector, pod.obj["metadata"].get("labels") or {})
    ]
    counts = {"currentHealthy": len(pods), "expectedPods": len(pods), "desiredHealthy": 0}
    status = {**counts, "disruptionsAllowed": len(pods), "observedGeneration": stored.obj["metadata"]["generation"]}
    objects.write_status(stored, status, manager=_MANAGER)
