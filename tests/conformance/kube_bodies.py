"""Objects and custom resource definitions that the cases of a Kubernetes API send."""

import itertools
from typing import Any

from tests.conformance.kube_client import Json, Kube

NUMBERS = itertools.count(1)
APPS, BATCH, RBAC = "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1"


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


CONTAINER = {"name": "web", "image": "registry.test/web:1"}


def config_map(name: str = "one", **fields: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


def deployment(name: str = "web", **spec: Any) -> Json:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [CONTAINER]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        # Paused, so that responses do not depend on the speed of a controller.
        "spec": {
            "paused": True,
            "replicas": 0,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
            **spec,
        },
    }


def definition(plural: str, schema: Json | None = None, **version: Any) -> Json:
    structure = schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    kind = plural.capitalize()
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": structure}, **version}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.conformance.test"},
        "spec": {
            "group": "conformance.test",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [served],
        },
    }


def install(kube: Kube, crd: Json) -> str:
    """Install a custom kind and return the path of its objects."""
    kube.ok("POST", CRDS, crd)
    path = kube.path(crd["spec"]["names"]["plural"], group="conformance.test/v1")
    kube.eventually(lambda: kube.call("GET", path)["http"] == 200, what="custom kind")
    return path


def custom(plural: str, name: str = "one", **fields: Any) -> Json:
    return {"apiVersion": "conformance.test/v1", "kind": plural.capitalize(), "metadata": {"name": name}, **fields}


SCALED = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.count"}


SIZED = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 3, "minimum": 1},
                "mode": {"type": "string", "enum": ["a", "b"]},
                "items": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
                    },
                },
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
