"""Fixtures of the stack tests."""

from collections.abc import Iterator

import pytest

from maestropy.store.dsn import Dsn
from tests.stack import harness


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[harness.Postgres]:
    """The PostgreSQL of this run."""
    with harness.postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture
def database(postgres: harness.Postgres) -> Iterator[Dsn]:
    """An empty database of this test's own."""
    with postgres.temporary() as address:
        yield address
