"""Create the objects that every cluster starts with: namespaces, bootstrap RBAC roles, a Service and one Node."""

from typing import Any

from maestropy.sandbox.kubeapi.errors import StatusError
from maestropy.sandbox.kubeapi.objects import Objects, ObjectWriteOptions

Json = dict[str, Any]
_RBAC = "rbac.authorization.k8s.io/v1"
_EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_GROUPS = ["", "apps", "batch", "autoscaling", "networking.k8s.io", "policy", "coordination.k8s.io"]
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
NODE = "sandbox"


def _role(name: str, rules: list[Json]) -> Json:
    return {
        "apiVersion": _RBAC,
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": _LABELS},
        "rules": rules,
    }


def _group_binding(name: str, group: str) -> Json:
    return {
        "apiVersion": _RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "labels": _LABELS},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
    }


def _objects(*, with_node: bool) -> list[Json]:
    names = ("default", "kube-system", "kube-public", "kube-node-lease")
    objects: list[Json] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
    paths = [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
    ]
    reviews = {
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        "verbs": ["create"],
    }
    objects += [
        _role("cluster-admin", [*_EVERYTHING, {"nonResourceURLs": ["*"], "verbs": ["*"]}]),
        _role(
            "admin",
            [{"apiGroups": [*_GROUPS, "rbac.authorization.k8s.io"], "resources": ["*"], "verbs": [*_READ, *_WRITE]}],
        ),
        _role("edit", [{"apiGroups": _GROUPS, "resources": ["*"], "verbs": [*_READ, *_WRITE]}]),
        _role("view", [{"apiGroups": _GROUPS, "resources": ["*"], "verbs": _READ}]),
        _role("system:discovery", [{"nonResourceURLs": paths, "verbs": ["get"]}]),
        _role("system:basic-user", [reviews]),
        _group_binding("cluster-admin", "system:masters"),
        _group_binding("system:discovery", "system:authenticated"),
        _group_binding("system:basic-user", "system:authenticated"),
    ]
    service = {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443}], "type": "ClusterIP"}
    objects.append(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "kubernetes", "namespace": "default"},
            "spec": service,
        }
    )
    if with_node:
        objects.append(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}}}
        )
    return objects


def create_missing(objects: Objects, *, with_node: bool) -> None:
    """Create the initial objects that do not exist yet."""
    for obj in _objects(with_node=with_node):
        group = obj["apiVersion"].rpartition("/")[0]
        kind = objects.registry.named(group, obj["kind"])
        assert kind is not None
        try:
            objects.create(
                kind, obj["metadata"].get("namespace", ""), obj, ObjectWriteOptions(manager="kube-apiserver")
            )
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
