"""Minimal manifests and work options for the cases."""

from typing import Any

Json = dict[str, Any]


def config_map(namespace: str, name: str, *, data: Json | None = None, **metadata: Any) -> Json:
    body = {"name": name, "namespace": namespace, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": body, "data": data or {"test": "testdata"}}


def deployment(namespace: str, name: str, *, replicas: int | None = 1, env: Json | None = None) -> Json:
    container: Json = {"name": "web", "image": "web.test/web"}
    if env:
        container["env"] = [{"name": key, "value": value} for key, value in env.items()]
    spec: Json = {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
    }
    if replicas is not None:
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _named(namespace, name), "spec": spec}


def daemon_set(namespace: str, name: str) -> Json:
    spec = deployment(namespace, name, replicas=None)["spec"]
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": _named(namespace, name), "spec": spec}


def job(namespace: str, name: str, *, suspend: bool = True) -> Json:
    pod = {"containers": [{"name": "work", "image": "job.test/job"}], "restartPolicy": "Never"}
    spec = {"suspend": suspend, "template": {"metadata": {"labels": {"app": name}}, "spec": pod}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _named(namespace, name), "spec": spec}


def service_account(namespace: str, name: str) -> Json:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named(namespace, name)}


def role(namespace: str, name: str, *verbs: str, names: tuple[str, ...] = (), groups: Json | None = None) -> Json:
    """A role; `groups` maps API groups to resources, by default ConfigMaps."""
    rules = [
        {"apiGroups": [group], "resources": resources, "verbs": [*verbs]}
        | ({"resourceNames": [*names]} if names else {})
        for group, resources in (groups or {"": ["configmaps"]}).items()
    ]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": _named(namespace, name),
        "rules": rules,
    }


def role_binding(namespace: str, name: str, *, role: str, account: str) -> Json:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": _named(namespace, name),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }


def cluster_role(name: str, **metadata: Any) -> Json:
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, **metadata},
        "rules": rules,
    }


def namespace(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def crd(group: str, *, versions: tuple[str, ...] = ("v1",)) -> Json:
    """A kind `Gadget` in a group of the caller's own."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget"},
            "versions": [
                {"name": version, "served": True, "storage": version == versions[0], "schema": schema}
                for version in versions
            ],
        },
    }


def gadget(group: str, namespace: str, name: str, *, version: str = "v1", **metadata: Any) -> Json:
    meta = {**_named(namespace, name), **metadata}
    return {"apiVersion": f"{group}/{version}", "kind": "Gadget", "metadata": meta, "spec": {"size": 1}}


def config(resource: str, name: str, *, group: str = "", namespace: str = "*", **options: Any) -> Json:
    """A manifestConfig."""
    identifier = {"group": group, "resource": resource, "name": name, "namespace": namespace}
    return {"resourceIdentifier": identifier, **options}


def strategy(kind: str, **server_side_apply: Any) -> Json:
    return {"type": kind} | ({"serverSideApply": server_side_apply} if server_side_apply else {})


def json_paths(**paths: str) -> list[Json]:
    """Feedback rules, one per name."""
    return [{"type": "JSONPaths", "jsonPaths": [{"name": name, "path": path} for name, path in paths.items()]}]


WELL_KNOWN = [{"type": "WellKnownStatus"}]


def selectively(*kept: tuple[str, str], namespace: str) -> Json:
    """A delete option that orphans these (resource, name)."""
    rules = [{"group": "", "resource": resource, "name": name, "namespace": namespace} for resource, name in kept]
    return {"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {"orphaningRules": rules}}


def executor(namespace: str, name: str) -> Json:
    account = {"type": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}
    return {"subject": account}


def _named(namespace: str, name: str) -> Json:
    return {"name": name, "namespace": namespace}
