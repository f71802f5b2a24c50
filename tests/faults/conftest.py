"""Fixtures of the fault tests: a PostgreSQL, and chance that can be repeated."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from maestropy.store.dsn import Dsn
from tests.faults import fault_programs
from tests.faults.fault_ledger import Ledger
from tests.stack import harness


@pytest.fixture(scope="session")
def shared_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[harness.Postgres]:
    """The PostgreSQL of this run, for tests that leave it alive."""
    with harness.postgres(tmp_path_factory.mktemp("faults")) as server:
        yield server


@pytest.fixture
def database(shared_postgres: harness.Postgres) -> Iterator[Dsn]:
    """An empty database of this test's own."""
    with shared_postgres.temporary() as address:
        yield address


@pytest.fixture
def reached(database: Dsn) -> fault_programs.Postgres:
    """The shared PostgreSQL, as one to be reached through a proxy and not to be killed."""
    return fault_programs.Postgres(folder=Path(), cluster=None, address=database)


@pytest.fixture
def postgres() -> Iterator[fault_programs.Postgres]:
    """A PostgreSQL of this test's own, to be killed."""
    with fault_programs.postgres() as running:
        yield running


@pytest.fixture
def chance() -> random.Random:
    """Chance; MAESTRO_FAULT_SEED repeats that of an earlier run."""
    seed = int(os.environ.get("MAESTRO_FAULT_SEED") or random.randrange(2**32))
    print(f"MAESTRO_FAULT_SEED={seed}")
    return random.Random(seed)


@pytest.fixture
def ledger() -> Ledger:
    """What clients are told in this test."""
    return Ledger()
