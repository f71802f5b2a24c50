"""Provide pytest fixtures: `pytest_plugins = ["maestropy.testing.fixtures"]` in the topmost `conftest.py`.

The first test that needs the fleet starts it, once for the whole run. Tests that must not share works use different
names, or `running_fleet()`.
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
    with running_fleet(folder=tmp_path_factory.mktemp("fleet")) as running:
        yield running


@pytest.fixture
def maestro(fleet: RunningFleet) -> Iterator[Maestro]:
    """A client of the fleet, with the source ID `test`."""
    with fleet.maestro() as client:
        yield client


@pytest.fixture
def cluster(fleet: RunningFleet) -> Cluster:
    """The cluster `cluster1`."""
    return fleet.cluster()


@pytest.fixture
def hyperfleet() -> Iterator[FakeHyperFleet]:
    """An empty fake HyperFleet API for this test."""
    with fake_hyperfleet() as api:
        yield api
