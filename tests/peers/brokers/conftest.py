"""Fixtures of the tests with a real MQTT broker: Mosquitto, and databases for our own server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from maestropy.store.dsn import Dsn
from tests.peers.mosquitto import Mosquitto, mosquitto
from tests.stack import harness


@pytest.fixture(scope="session")
def stack_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[harness.Postgres]:
    """The PostgreSQL of this run."""
    with harness.postgres(tmp_path_factory.mktemp("stack-postgres")) as server:
        yield server


@pytest.fixture
def database(stack_postgres: harness.Postgres) -> Iterator[Dsn]:
    """An empty database of this test's own."""
    with stack_postgres.temporary() as address:
        yield address


@pytest.fixture
def broker(tmp_path: Path, shown_logs: list[Path]) -> Iterator[Mosquitto]:
    """A broker of this test's own, in plain text and without limits."""
    with mosquitto(tmp_path / "mosquitto") as running:
        shown_logs.append(running.log)
        yield running
        shown_logs.remove(running.log)
