"""Fixtures of the adapter tests: the ones that users have."""

import pytest

from maestropy import Work
from maestropy.testing import Cluster
from maestropy.testing.fixtures import cluster, fleet, hyperfleet, maestro

__all__ = ["cluster", "fleet", "hyperfleet", "maestro"]


@pytest.fixture(scope="session")
def hypershift(fleet) -> Cluster:
    """The cluster with HyperShift's kinds and the namespace of its objects, known to the agent too."""
    found = fleet.cluster()
    found.add_kind("hypershift.openshift.io/v1beta1", "HostedCluster")
    found.add_kind("hypershift.openshift.io/v1beta1", "NodePool")
    found.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clusters"}})
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
    return found
