"""A real kube-apiserver takes the manifests under `deploy/`, with strict validation of every field."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from maestropy.sdk._manifests.sources import plural
from tests.peers.kube_cluster import KubeCluster

pytestmark = pytest.mark.peers

DEPLOY = Path(__file__).parents[2] / "deploy"


def documents(path: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def test_a_real_api_server_takes_every_manifest(real_cluster: KubeCluster) -> None:
    files = [path for path in sorted(DEPLOY.rglob("*.yaml")) if path.name != "kustomization.yaml"]
    with real_cluster.client() as api:
        for path in DEPLOY.rglob("namespace.yaml"):
            answer = api.post("/api/v1/namespaces", json=documents(path)[0])
            assert answer.is_success or answer.status_code == httpx.codes.CONFLICT, answer.text
        refused = [told for path in files for document in documents(path) if (told := refusal(api, document))]
    assert refused == []


def refusal(api: httpx.Client, document: dict[str, Any]) -> str:
    group, slash, version = document["apiVersion"].partition("/")
    base = f"/apis/{group}/{version}" if slash else f"/api/{group}"
    namespace = document["metadata"].get("namespace")
    scope = f"/namespaces/{namespace}" if namespace else ""
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    answer = api.post(f"{base}{scope}/{plural(document['kind'])}", json=document, params=query)
    # What is there already (the namespaces, perhaps the definition) was taken before.
    return "" if answer.is_success or answer.status_code == httpx.codes.CONFLICT else answer.text
