"""The adapters in examples/, end to end on a fleet."""

import ast

import pytest

from maestropy.adapter.runner import EventTimeouts
from maestropy.testing import Cluster, FakeHyperFleet, RunningFleet
from tests.adapter.runs import EXAMPLES, GROUP, example, handled

UNTIL_AVAILABLE = EventTimeouts(wait_seconds=10)
RELEASE = {"release": "quay.io/openshift-release-dev/ocp-release:4.14.0"}


def test_hosted_cluster_is_created_reported_and_deleted(
    fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet
) -> None:
    adapter = example("hosted_cluster")
    handled(adapter, hyperfleet.put("Cluster", "abc123", spec=RELEASE), fleet=fleet, api=hyperfleet)
    created = hypershift.get(GROUP, "HostedCluster", "abc123", namespace="clusters")
    assert created
    assert created["spec"]["release"]["image"] == RELEASE["release"]
    assert created["metadata"]["annotations"]["hyperfleet.io/generation"] == "1"
    assert hyperfleet.condition("abc123", "controlplane", "Applied")["status"] == "True"
    assert hyperfleet.condition("abc123", "controlplane", "Available")["status"] == "Unknown"

    hypershift.set_status(
        GROUP,
        "HostedCluster",
        "abc123",
        namespace="clusters",
        status={
            "conditions": [{"type": "Available", "status": "True", "reason": "AsExpected"}],
            "controlPlaneEndpoint": {"host": "api.example.net", "port": 6443},
        },
    )
    handled(adapter, hyperfleet.event("abc123"), fleet=fleet, api=hyperfleet, timeouts=UNTIL_AVAILABLE)
    assert hyperfleet.condition("abc123", "controlplane", "Available")["reason"] == "AsExpected"
    assert hyperfleet.statuses["abc123"]["controlplane"]["data"]["control_plane_endpoint"] == "api.example.net:6443"

    handled(adapter, hyperfleet.delete("abc123"), fleet=fleet, api=hyperfleet)
    assert hyperfleet.condition("abc123", "controlplane", "Finalized")["status"] == "True"
    assert hypershift.get(GROUP, "HostedCluster", "abc123", namespace="clusters") is None


def test_hosted_cluster_example_has_under_thirty_lines_of_code() -> None:
    source = (EXAMPLES / "hosted_cluster.py").read_text()
    docstrings = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    code = [number for number, line in enumerate(source.splitlines(), 1) if line.strip() and number not in docstrings]
    assert len(code) < 30


def test_node_pool_and_config_map_follow_the_spec(
    fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet
) -> None:
    adapter = example("node_pool")
    event_document = hyperfleet.put("NodePool", "np1", spec={"replicas": 2}, owner_id="abc124")
    handled(adapter, event_document, fleet=fleet, api=hyperfleet)
    assert hypershift.get("v1", "ConfigMap", "np1-settings", namespace="clusters")
    hypershift.set_status(GROUP, "NodePool", "np1", namespace="clusters", status={"replicas": 2})
    handled(adapter, event_document, fleet=fleet, api=hyperfleet, timeouts=UNTIL_AVAILABLE)
    assert hyperfleet.condition("np1", "nodepool", "Available")["reason"] == "AllNodesReady"

    handled(
        adapter,
        hyperfleet.put("NodePool", "np1", spec={"replicas": 3}, owner_id="abc124"),
        fleet=fleet,
        api=hyperfleet,
    )
    scaled = hypershift.get(GROUP, "NodePool", "np1", namespace="clusters")
    assert scaled
    assert scaled["spec"]["replicas"] == 3
    assert scaled["metadata"]["annotations"]["hyperfleet.io/generation"] == "2"
    assert hyperfleet.condition("np1", "nodepool", "Available")["message"] == "2 of 3 nodes are ready"
    assert hyperfleet.statuses["np1"]["nodepool"]["observed_generation"] == 2


def test_node_pool_without_cluster_is_not_ready(fleet: RunningFleet, hyperfleet: FakeHyperFleet) -> None:
    event_document = hyperfleet.put("NodePool", "np2", spec={})
    handled(example("node_pool"), event_document, fleet=fleet, api=hyperfleet)
    assert hyperfleet.condition("np2", "nodepool", "Applied")["reason"] == "NoCluster"
    assert hyperfleet.condition("np2", "nodepool", "Health")["status"] == "True"


@pytest.mark.parametrize(
    ("spec", "status", "message"),
    [
        pytest.param(
            {"release": "a:1", "network": {"machine": "10.0.0.0/16", "pod": "10.1.0.0/16", "service": "10.2.0.0/16"}},
            "True",
            "",
            id="valid",
        ),
        pytest.param(
            {"release": "a:1", "network": {"machine": "10.0.0.0/8", "pod": "10.1.0.0/16", "service": "1.2.0.0/16"}},
            "False",
            "spec.network.machine overlaps pod",
            id="overlap",
        ),
        pytest.param({"release": "a"}, "False", "spec.release is 'a', and must be an image with a tag", id="no-tag"),
    ],
)
def test_validation_reports_problems_of_the_spec(
    fleet: RunningFleet, hyperfleet: FakeHyperFleet, spec: dict[str, object], status: str, message: str
) -> None:
    event = hyperfleet.put("Cluster", "v1", spec=spec)
    handled(example("validation_job"), event, fleet=fleet, api=hyperfleet)
    condition = hyperfleet.condition("v1", "validation", "Available")
    assert condition["status"] == status
    assert message in condition["message"]
