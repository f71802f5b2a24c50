"""The works of Maestro's own end-to-end and upgrade tests, and how to look at what became of them."""

from typing import Any

from peer_clients import Json
from stage import Stage

RECORDS = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks"


def manifest(stage: Stage, kind: str, name: str, *, api_version: str = "v1", **body: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": stage.namespace}, **body}


def config_map(stage: Stage, name: str, value: str = "1") -> Json:
    return manifest(stage, "ConfigMap", name, data={"value": value})


def deployment(stage: Stage, name: str, *, replicas: int = 1) -> Json:
    pod = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "web", "image": "web.test/web"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": pod}
    return manifest(stage, "Deployment", name, api_version="apps/v1", spec=spec)


def read_only(stage: Stage, kind: str, name: str, *, api_version: str = "v1") -> Json:
    """Return a manifest that only names an object."""
    return manifest(stage, kind, name, api_version=api_version)


def option(
    stage: Stage, resource: str, name: str, *, group: str = "", strategy: str = "Update", feedback: str = ""
) -> Json:
    where = {"group": group, "resource": resource, "name": name, "namespace": stage.namespace}
    rules = [{"type": "JSONPaths", "jsonPaths": [{"name": "seen", "path": feedback}]}] if feedback else []
    return {"resourceIdentifier": where, "updateStrategy": {"type": strategy}, "feedbackRules": rules}


def work(name: str, *manifests: Json, options: tuple[Json, ...] = (), labels: dict[str, str] | None = None) -> Json:
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"workload": {"manifests": list(manifests)}, "manifestConfigs": list(options)},
    }


def nested(stage: Stage, name: str, *, value: str = "1") -> Json:
    """Return a work whose manifest is a work, applied by the server's side."""
    inner = manifest(
        stage,
        "ManifestWork",
        f"{name}-inner",
        api_version="work.open-cluster-management.io/v1",
        spec={"workload": {"manifests": [config_map(stage, f"{name}-innermost", value)]}},
    )
    rule = option(
        stage,
        "manifestworks",
        f"{name}-inner",
        group="work.open-cluster-management.io",
        strategy="ServerSideApply",
        feedback=".metadata.generation",
    )
    return work(name, inner, options=(rule,))


def records(stage: Stage, uid: str) -> list[str]:
    """Return the names of the records that an agent keeps of a work."""
    found = stage.api.get(RECORDS).json()["items"]
    return [each["metadata"]["name"] for each in found if each["spec"]["manifestWorkName"] == uid]
