"""A whole fleet in a test: PostgreSQL, a server, clusters and agents, ready in about a second and gone afterwards.

    from maestropy.testing import running_fleet

    def test_it() -> None:
        with running_fleet() as fleet, fleet.maestro("my-adapter") as maestro:
            maestro.works("cluster1").apply(work)

or, in a `conftest.py`, fixtures for pytest (`fleet`, `maestro`, `cluster`, `hyperfleet`):

    pytest_plugins = ["maestropy.testing.fixtures"]

Everything is real but the clusters' machines: the Kubernetes API is the sandbox's. Inside an event loop of your own use
`maestropy.sandbox.fleet`.
"""

from maestropy.testing.cluster import Cluster as Cluster
from maestropy.testing.fleet import RunningFleet as RunningFleet
from maestropy.testing.fleet import running_fleet as running_fleet
from maestropy.testing.hyperfleet import FakeHyperFleet as FakeHyperFleet
from maestropy.testing.hyperfleet import fake_hyperfleet as fake_hyperfleet
