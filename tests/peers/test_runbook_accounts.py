"""The account that a runbook creates for reading an agent's metrics works on a real cluster, and its removal too."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.peers import kube_build
from tests.peers.kube_cluster import KubeCluster, answer

pytestmark = pytest.mark.peers

PAGE = Path(__file__).parents[2] / "docs" / "runbooks" / "MaestroStatusesNotReported.md"
Shell = Callable[[str], str]


@pytest.fixture
def shell(control_plane: kube_build.ControlPlane, real_cluster: KubeCluster, tmp_path: Path) -> Shell:
    """Runs a command with kubectl for the real cluster."""
    search = f"{control_plane.kubectl.parent}:{os.environ['PATH']}"
    environ = {"PATH": search, "KUBECONFIG": str(real_cluster.kubeconfig), "HOME": str(tmp_path)}

    def run(command: str) -> str:
        ran = subprocess.run(
            ["/bin/sh", "-ec", command], env=environ, capture_output=True, text=True, check=False, timeout=120
        )
        assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
        return ran.stdout.strip()

    return run


def test_account_of_the_runbook_may_read_metrics_until_it_is_deleted(shell: Shell, real_cluster: KubeCluster) -> None:
    page = PAGE.read_text()
    create = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    token = re.findall(r"TOKEN=\$\((kubectl [^)]*)\)", page)
    delete = re.findall(r"`(kubectl delete [^`]*)`", page)
    assert (len(create), len(token), len(delete)) == (1, 1, 1)
    shell("kubectl create namespace maestro-agent --dry-run=client -o yaml | kubectl apply -f -")
    shell(create[0])
    who = may_read_metrics(real_cluster, token=shell(token[0]))
    assert who == ("system:serviceaccount:maestro-agent:maestro-agent-metrics", True)
    shell(delete[0].replace("\n", " "))
    left = "serviceaccounts,clusterroles,clusterrolebindings -A -o name"
    assert "maestro-agent-metrics" not in shell(f"kubectl get {left}")


def may_read_metrics(cluster: KubeCluster, *, token: str) -> tuple[str, bool]:
    """Ask as an agent does: whose token it is, and whether they may."""
    with cluster.client() as api:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        user = answer(api.post("/apis/authentication.k8s.io/v1/tokenreviews", json=review))["status"]["user"]
        spec = {
            "user": user["username"],
            "groups": user["groups"],
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        }
        access = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        decided = answer(api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", json=access))["status"]
        return user["username"], decided["allowed"]
