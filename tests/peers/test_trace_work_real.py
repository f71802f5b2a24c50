"""`maestro trace work` on what the Go Maestro made: its database or ours, its agent, a real API server."""

import json
import subprocess
from typing import Any

import pytest

from tests.peers.kube_agents import Restartable, wait_for_deletion, wait_until_silent
from tests.peers.kube_cluster import KubeCluster, answer
from tests.peers.peer_clients import WorkClient
from tests.peers.peer_servers import PYTHON_CLI, RunningServer
from tests.peers.test_kube_go_agent import agent, applied, wait_until_gone, work
from tests.waiting import wait_for

pytestmark = pytest.mark.peers

__all__ = ["agent", "applied"]


def trace(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Run the command and return its exit code and its JSON."""
    done = subprocess.run([*PYTHON_CLI, "trace", "work", *arguments, "-o", "json"], capture_output=True, check=False)
    assert done.stdout, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, found


def test_a_work_of_the_go_client_on_the_go_agent(
    agent: Restartable,
    real_cluster: KubeCluster,
    namespace: str,
    client: WorkClient,
    consumer: str,
    server: RunningServer,
) -> None:
    uid = client.create(consumer, work(namespace))["metadata"]["uid"]
    access = [f"--mgmt-kubeconfig={consumer}={real_cluster.kubeconfig}", f"--db-dsn={server.database.dsn}"]

    def is_applied() -> bool:
        _, found = trace("--resource-id", uid, *access)
        manifests = found["works"][0]["manifests"]
        return len(manifests) == 2 and all(manifest["applied"] and manifest["live"] for manifest in manifests)

    wait_for(is_applied, what="the work to be applied", seconds=40)
    entries = (
        ["--work-name=web", f"--consumer={consumer}"],
        [f"--manifest=deployment.apps/{namespace}/web"],
        [f"--manifest=cm/{namespace}/web"],
    )
    for entry in entries:
        code, found = trace(*entry, *access)
        (one,) = found["works"]
        assert one["resourceId"] == uid
        assert one["db"]["idIsComputed"] is True
        assert {manifest["uidMatch"] for manifest in one["manifests"]} == {True}
        # Nobody runs the pods of this Deployment, so that it may be applied and not available.
        assert one["code"] in {"MW-001", "MW-111"}, one["findings"]
        assert code == found["exitCode"]
    code, found = trace("--resource-id", uid, f"--rest-url={server.rest_url}", access[0])
    assert found["works"][0]["code"] in {"MW-001", "MW-111"}

    wait_until_silent(agent.log)
    client.delete(consumer, "web")
    wait_until_gone(agent, server, client, consumer)
    code, found = trace("--resource-id", uid, *access)
    assert (code, found["works"][0]["code"]) in {(4, "MW-102"), (4, "MW-010")}


def test_a_blocked_deletion_and_a_record_deleted_by_hand(
    agent: Restartable,
    real_cluster: KubeCluster,
    namespace: str,
    client: WorkClient,
    consumer: str,
    server: RunningServer,
) -> None:
    held = work(namespace)
    held["spec"]["workload"]["manifests"][0]["metadata"] = {
        "name": "web",
        "namespace": namespace,
        "finalizers": ["example.com/keep"],
    }
    uid = client.create(consumer, held)["metadata"]["uid"]
    access = [f"--mgmt-kubeconfig={consumer}={real_cluster.kubeconfig}", f"--db-dsn={server.database.dsn}"]
    path = f"/api/v1/namespaces/{namespace}/configmaps/web"
    with real_cluster.client() as api:
        wait_for(lambda: api.get(path).is_success, what="the ConfigMap", seconds=40)
        wait_for(lambda: client.get(consumer, "web").get("status", {}).get("conditions"), what="the status", seconds=40)
        wait_until_silent(agent.log)
        client.delete(consumer, "web")
        wait_for_deletion(
            lambda: "deletionTimestamp" in answer(api.get(path))["metadata"],
            what="the ConfigMap to leave",
            restart_of_go_pair=agent.restart if server.kind == "go" else None,
        )
        code, found = trace("--resource-id", uid, *access)
        assert (code, found["works"][0]["code"]) == (1, "MW-007")
        assert "example.com/keep" in json.dumps(found["works"][0]["findings"])
        patch = {"metadata": {"finalizers": None}}
        api.patch(path, json=patch, headers={"Content-Type": "application/merge-patch+json"})
        wait_until_gone(agent, server, client, consumer)
