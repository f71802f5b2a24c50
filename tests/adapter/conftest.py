"""Fixtures of the adapter tests: the ones that users have."""

from pathlib import Path

import pytest

from pymaestro.testing import Cluster
from pymaestro.testing.fixtures import cluster, fleet, hyperfleet, maestro

__all__ = ["cluster", "fleet", "hyperfleet", "maestro"]

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="session")
def hypershift(fleet) -> Cluster:
    """The cluster with HyperShift's kinds and the namespace of its objects."""
    found = fleet.cluster()
    found.add_kind("hypershift.openshift.io/v1beta1", "HostedCluster")
    found.add_kind("hypershift.openshift.io/v1beta1", "NodePool")
    found.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clusters"}})
    return found
