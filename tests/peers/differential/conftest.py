"""Two servers on fresh databases for every module, so that what one table leaves behind does not reach another."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.peers import peer_build, peer_postgres
from tests.peers.differential.twins import Twin, twin
from tests.peers.peer_servers import go_server, python_server

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def twins(
    programs: peer_build.Programs,
    postgres: peer_postgres.Cluster,
    tmp_path_factory: pytest.TempPathFactory,
    shown_logs: list[Path],
) -> Iterator[tuple[Twin, Twin]]:
    """The Go server and ours, in this order."""
    databases = [postgres.create(f"twin{next(NUMBERS)}") for _ in range(2)]
    folders = [tmp_path_factory.mktemp(kind) for kind in ("go", "python")]
    with ExitStack() as stack:
        # The pinned one: docs/differences.md speaks of that version.
        go = stack.enter_context(
            go_server(programs, database=databases[0], folder=folders[0], flags=["--v=2"], program=programs.maestro)
        )
        # Finished events are kept, because the Go server keeps them for hours.
        flags = ["--v=2", "--event-retention=1h"]
        python = stack.enter_context(python_server(database=databases[1], folder=folders[1], flags=flags))
        logs = [go.log, python.log]
        shown_logs += logs
        yield stack.enter_context(twin(go)), stack.enter_context(twin(python))
        for log in logs:
            shown_logs.remove(log)
