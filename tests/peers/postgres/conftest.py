"""Fixtures of the tests with PostgreSQL servers and poolers of their own."""

from collections.abc import Iterator

import pytest

from tests.peers.postgres import postgres_servers
from tests.peers.postgres.postgres_servers import PostgresServer


@pytest.fixture
def single() -> Iterator[PostgresServer]:
    """A PostgreSQL server of this test's own."""
    with postgres_servers.installation() as installed, postgres_servers.single(installed) as server:
        yield server


@pytest.fixture
def pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A primary and its synchronous standby, of this test's own."""
    with postgres_servers.installation() as installed, postgres_servers.pair(installed) as servers:
        yield servers
