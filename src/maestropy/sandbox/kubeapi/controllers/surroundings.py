"""Keeps what workloads lean on: accounts of namespaces, the node, volumes, aggregated roles, budgets."""

from typing import Any

from maestropy.sandbox.kubeapi.objects import Objects, Options
from maestropy.sandbox.kubeapi.selectors import match_labels
from maestropy.sandbox.kubeapi.store import Stored

Json = dict[str, Any]
_ROLES = ("rbac.authorization.k8s.io", "clusterroles")
_MANAGER = "kube-controller-manager"


def namespace(objects: Objects, stored: Stored) -> None:
    """Give a namespace what every namespace has: its default service account and the certificate of the API."""
    if stored.obj["metadata"].get("deletionTimestamp"):
        return
    for plural, made in (
        ("serviceaccounts", {"metadata": {"name": "default"}}),
        ("configmaps", {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": ""}}),
    ):
        kind = objects.registry.of_resource("", plural)
        assert kind is not None
        if objects.store.get(kind.resource, stored.name, made["metadata"]["name"]) is None:
            objects.create(kind, stored.name, made, Options(manager=_MANAGER))


def node(objects: Objects, stored: Stored) -> None:
    """Let a node be ready, and look again at what runs on every node."""
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


def claim(objects: Objects, stored: Stored) -> None:
    """Bind a volume claim."""
    if stored.obj["metadata"].get("deletionTimestamp"):
        return
    spec = stored.obj["spec"]
    volume = spec.get("volumeName") or f"pvc-{stored.uid}"
    objects.amend(stored, lambda obj: {**obj, "spec": {**obj["spec"], "volumeName": volume}})
    status = {
        "phase": "Bound",
        "accessModes": spec.get("accessModes") or [],
        "capacity": (spec.get("resources") or {}).get("requests") or {},
    }
    objects.write_status(stored, status, manager=_MANAGER)


def cluster_role(objects: Objects, stored: Stored) -> None:
    """Fill every role that gathers rules from others; which ones changed is not worth finding out."""
    for role in objects.store.select(_ROLES):
        aggregation = role.obj.get("aggregationRule")
        if not aggregation or role.obj["metadata"].get("deletionTimestamp"):
            continue
        rules = _gathered(objects, role, aggregation)
        objects.amend(role, lambda obj, rules=rules: {**obj, "rules": rules})  # type: ignore[misc]  # mypy cannot infer a lambda with a bound default
    _ = stored


def _gathered(objects: Objects, role: Stored, aggregation: Json) -> list[Json]:
    chosen: list[Json] = []
    for other in objects.store.select(_ROLES):
        labels = other.obj["metadata"].get("labels") or {}
        fits = any(match_labels(each, labels) for each in aggregation.get("clusterRoleSelectors") or [])
        if fits and other.uid != role.uid:
            chosen.extend(rule for rule in other.obj.get("rules") or [] if rule not in chosen)
    return chosen


def budget(objects: Objects, stored: Stored) -> None:
    """Count the pods a disruption budget protects."""
    selector = stored.obj["spec"].get("selector") or {}
    pods = [
        pod
        for pod in objects.store.select(("", "pods"), stored.namespace)
        if match_labels(selector, pod.obj["metadata"].get("labels") or {})
    ]
    counts = {"currentHealthy": len(pods), "expectedPods": len(pods), "desiredHealthy": 0}
    status = {**counts, "disruptionsAllowed": len(pods), "observedGeneration": stored.obj["metadata"]["generation"]}
    objects.write_status(stored, status, manager=_MANAGER)
