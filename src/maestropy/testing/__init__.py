"""Run a whole fleet in a test: PostgreSQL, a server, clusters and agents, ready in about a second.

    from maestropy.testing import running_fleet

    def test_it() -> None:
        with running_fleet() as fleet, fleet.maestro("my-adapter") as maestro:
            maestro.works("cluster1").apply(work)

or, in a `conftest.py`, fixtures for pytest (`fleet`, `maestro`, `cluster`, `hyperfleet`):

    pytest_plugins = ["maestropy.testing.fixtures"]

The Kubernetes API of each cluster is the sandbox's; everything else is real. Inside your own event loop use
`maestropy.sandbox.fleet`.
"""

from maestropy.testing.cluster import Cluster as Cluster
from maestropy.testing.fleet import RunningFleet as RunningFleet
from maestropy.testing.fleet import running_fleet as running_fleet
from maestropy.testing.hyperfleet import FakeHyperFleet as FakeHyperFleet
from maestropy.testing.hyperfleet import fake_hyperfleet as fake_hyperfleet
