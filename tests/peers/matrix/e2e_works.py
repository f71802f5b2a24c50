"""The works of Maestro's own end-to-end and upgrade tests, and how to look at what became of them."""

from typing import Any

from tests.peers.matrix.rig import Rig
from tests.peers.peer_clients import Json

RECORDS = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks"


def manifest(rig: Rig, kind: str, name: str, *, api_version: str = "v1", **body: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": rig.namespace}, **body}


def config_map(rig: Rig, name: str, value: str = "1") -> Json:
    return manifest(rig, "ConfigMap", name, data={"value": value})


def deployment(rig: Rig, name: str, *, replicas: int = 1) -> Json:
    pod = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "web", "image": "web.test/web"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": pod}
    return manifest(rig, "Deployment", name, api_version="apps/v1", spec=spec)


def read_only(rig: Rig, kind: str, name: str, *, api_version: str = "v1") -> Json:
    """Return a manifest that only names an object."""
    return manifest(rig, kind, name, api_version=api_version)


def option(
    rig: Rig, resource: str, name: str, *, group: str = "", strategy: str = "Update", feedback: str = ""
) -> Json:
    where = {"group": group, "resource": resource, "name": name, "namespace": rig.namespace}
    rules = [{"type": "JSONPaths", "jsonPaths": [{"name": "seen", "path": feedback}]}] if feedback else []
    return {"resourceIdentifier": where, "updateStrategy": {"type": strategy}, "feedbackRules": rules}


def work(name: str, *manifests: Json, options: tuple[Json, ...] = (), labels: dict[str, str] | None = None) -> Json:
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"workload": {"manifests": list(manifests)}, "manifestConfigs": list(options)},
    }


def nested(rig: Rig, name: str, *, value: str = "1") -> Json:
    """Return a work whose manifest is a work, applied by the server's side."""
    inner = manifest(
        rig,
        "ManifestWork",
        f"{name}-inner",
        api_version="work.open-cluster-management.io/v1",
        spec={"workload": {"manifests": [config_map(rig, f"{name}-innermost", value)]}},
    )
    rule = option(
        rig,
        "manifestworks",
        f"{name}-inner",
        group="work.open-cluster-management.io",
        strategy="ServerSideApply",
        feedback=".metadata.generation",
    )
    return work(name, inner, options=(rule,))


def records(rig: Rig, uid: str) -> list[str]:
    """Return the names of the records that an agent keeps of a work."""
    found = rig.api.get(RECORDS).json()["items"]
    return [each["metadata"]["name"] for each in found if each["spec"]["manifestWorkName"] == uid]
