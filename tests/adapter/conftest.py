"""Fixtures of the adapter tests: the public ones of maestropy.testing."""

import pytest

from maestropy import Work
from maestropy.testing import Cluster, RunningFleet
from maestropy.testing.fixtures import cluster, fleet, hyperfleet, maestro

__all__ = ["cluster", "fleet", "hyperfleet", "maestro"]


@pytest.fixture(scope="session")
def hypershift(fleet: RunningFleet) -> Cluster:
    """The cluster with the kinds and the namespace of HyperShift, once the agent has discovered them."""
    cluster = fleet.cluster()
    cluster.add_kind("hypershift.openshift.io/v1beta1", "HostedCluster")
    cluster.add_kind("hypershift.openshift.io/v1beta1", "NodePool")
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clusters"}})
    api_version = "hypershift.openshift.io/v1beta1"
    probes = [
        {"apiVersion": api_version, "kind": kind, "metadata": {"name": "probe", "namespace": "clusters"}}
        for kind in ("HostedCluster", "NodePool")
    ]
    with fleet.maestro("probe") as client:
        works = client.works("cluster1")
        works.apply(Work("probe").add(probes))
        works.wait_for("probe", "Applied", timeout=60)
        works.delete("probe", wait=True, timeout=60)
    return cluster
