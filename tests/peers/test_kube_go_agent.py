"""Run the Go agent on our cluster, with our CRDs, through either server: from spec to status to deletion."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers import peer_build
from tests.peers.kube_agents import Restartable, go_agent, wait_for_deletion, wait_until_silent
from tests.peers.kube_cluster import KubeCluster, answer
from tests.peers.peer_clients import Json, Refused, WorkClient
from tests.peers.peer_servers import RunningServer
from tests.waiting import wait_for

pytestmark = pytest.mark.peers

RECORDS = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks"


@pytest.fixture
def agent(
    programs: peer_build.Programs,
    real_cluster: KubeCluster,
    server: RunningServer,
    consumer: str,
    tmp_path: Path,
    shown_logs: list[Path],
) -> Iterator[Restartable]:
    def start() -> contextlib.AbstractContextManager[Path]:
        return go_agent(programs, cluster=real_cluster, server=server, consumer=consumer, folder=tmp_path)

    with contextlib.closing(Restartable(start)) as running:
        shown_logs.append(running.log)
        yield running
        shown_logs.remove(running.log)


def work(namespace: str) -> Json:
    meta = {"name": "web", "namespace": namespace}
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web.test/web"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    manifests: list[Json] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"k": "v"}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec},
    ]
    identifier = {"group": "apps", "resource": "deployments", "name": "web", "namespace": namespace}
    rule = {"type": "JSONPaths", "jsonPaths": [{"name": "replicas", "path": ".status.replicas"}]}
    config = {"resourceIdentifier": identifier, "feedbackRules": [rule]}
    return {
        "metadata": {"name": "web"},
        "spec": {"workload": {"manifests": manifests}, "manifestConfigs": [config]},
    }


def test_a_work_is_applied_reported_and_removed(
    agent: Restartable,
    server: RunningServer,
    real_cluster: KubeCluster,
    namespace: str,
    client: WorkClient,
    consumer: str,
) -> None:
    uid = client.create(consumer, work(namespace))["metadata"]["uid"]

    def reported() -> Json | None:
        manifests = client.get(consumer, "web").get("status", {}).get("resourceStatus", {}).get("manifests", [])
        return next((manifest for manifest in manifests if manifest["statusFeedback"].get("values")), None)

    (value,) = wait_for(reported, what="feedback", seconds=40)["statusFeedback"]["values"]
    assert (value["name"], value["fieldValue"]["integer"]) == ("replicas", 1)

    with real_cluster.client() as api:
        config_map = f"/api/v1/namespaces/{namespace}/configmaps/web"
        (owner,) = answer(api.get(config_map))["metadata"]["ownerReferences"]
        record = answer(api.get(f"{RECORDS}/{owner['name']}"))
        assert record["metadata"]["uid"] == owner["uid"]
        assert record["spec"]["manifestWorkName"] == uid
        assert {each["resource"] for each in applied(record)} == {"configmaps", "deployments"}
        assert all(each["uid"] for each in applied(record))

        wait_until_silent(agent.log)
        client.delete(consumer, "web")
        wait_until_gone(agent, server, client, consumer)
        wait_for(lambda: api.get(config_map).status_code == 404, what="the ConfigMap to go", seconds=40)
        wait_for(lambda: api.get(f"{RECORDS}/{owner['name']}").status_code == 404, what="the record to go", seconds=40)


def applied(record: dict[str, Any]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = record["status"]["appliedResources"]
    return found


def is_gone(client: WorkClient, consumer: str) -> bool:
    try:
        client.get(consumer, "web")
    except Refused as refused:
        return refused.reason == "NotFound"
    return False


def wait_until_gone(agent: Restartable, server: RunningServer, client: WorkClient, consumer: str) -> None:
    """Wait for the end of the deleted work."""
    restart = agent.restart if server.kind == "go" else None
    wait_for_deletion(lambda: is_gone(client, consumer), what="the work to go", restart_of_go_pair=restart)
