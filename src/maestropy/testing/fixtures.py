"""Fixtures for pytest: `pytest_plugins = ["maestropy.testing.fixtures"]` in the topmost `conftest.py`.

The fleet is started once for a whole run, by the first test that wants it. Tests that must not meet each other's works
use names of their own, or `running_fleet()`.
"""

from collections.abc import Iterator

import pytest

from maestropy.sdk.blocking import Maestro
from maestropy.testing.cluster import Cluster
from maestropy.testing.fleet import RunningFleet, running_fleet
from maestropy.testing.hyperfleet import FakeHyperFleet, fake_hyperfleet


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFleet]:
    """A whole fleet with the cluster `cluster1`; its logs stay in pytest's temporary folder."""
    with running_fleet(folder=tmp_path_factory.mktemp("fleet")) as found:
        yield found


@pytest.fixture
def maestro(fleet: RunningFleet) -> Iterator[Maestro]:
    """A client of the fleet, with the source id `test`."""
    with fleet.maestro() as client:
        yield client


@pytest.fixture
def cluster(fleet: RunningFleet) -> Cluster:
    """The cluster `cluster1`."""
    return fleet.cluster()


@pytest.fixture
def hyperfleet() -> Iterator[FakeHyperFleet]:
    """An empty HyperFleet API of this test's own."""
    with fake_hyperfleet() as found:
        yield found
