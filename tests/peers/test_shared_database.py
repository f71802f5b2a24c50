"""Go and Python servers on one database: one after the other, and both at once."""

import asyncio
import functools
import itertools
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import asyncpg
import pytest

from tests.peers import peer_postgres
from tests.peers.peer_build import Programs
from tests.peers.peer_clients import Agent, WorkClient, rest
from tests.peers.peer_servers import (
    PYTHON_CLI,
    RunningServer,
    database_files,
    go_server,
    migrate,
    python_server,
)
from tests.peers.test_peer_work_client import config_map_work, wait_available, wait_gone

pytestmark = pytest.mark.peers

NUMBERS = itertools.count(1)


@pytest.fixture
def database(postgres: peer_postgres.Cluster) -> peer_postgres.Database:
    return postgres.create(f"shared{next(NUMBERS)}")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def both(
    programs: Programs, database: peer_postgres.Database, folder: Path, stack: ExitStack
) -> tuple[RunningServer, RunningServer]:
    """Start one of each on one database; both count as ready before this returns."""
    places = folder / "go", folder / "python"
    for place in places:
        place.mkdir()
    go = stack.enter_context(go_server(programs, database=database, folder=places[0], flags=["--client-id=maestro-go"]))
    python = stack.enter_context(
        python_server(database=database, folder=places[1], flags=["--client-id=maestro-python"])
    )
    return go, python


def test_a_database_made_by_the_go_server_is_taken_over(
    programs: Programs, database: peer_postgres.Database, tmp_path: Path, stack: ExitStack
) -> None:
    folders = [tmp_path / name for name in ("go", "python", "go-again")]
    for folder in folders:
        folder.mkdir()
    with go_server(programs, database=database, folder=folders[0]) as go:
        rest(go, "POST", "/consumers", {"name": "c1"})
        with WorkClient(programs, go, source="s", log=tmp_path / "c1.log") as client:
            with Agent(programs, go, cluster="c1", log=tmp_path / "a1.log"):
                client.create("c1", config_map_work("old"))
                wait_available(client, "c1", "old", generation=1)

    migrated = subprocess.run(
        [*PYTHON_CLI, "migration", "--db-dsn", database.dsn], capture_output=True, text=True, check=True
    )
    assert "202412181141" not in migrated.stdout, "the Go server's own migrations are not run again"

    with python_server(database=database, folder=folders[1]) as python:
        with WorkClient(programs, python, source="s", log=tmp_path / "c2.log") as client:
            assert client.get("c1", "old")["status"]["conditions"], "rows of the Go server are read with their status"
            with Agent(programs, python, cluster="c1", log=tmp_path / "a2.log") as agent:
                agent.wait_event("received", type_ends="spec.resync_response", version=1)
                old = client.get("c1", "old")
                new = {**old, "spec": config_map_work("old", value="2")["spec"]}
                client.patch("c1", old, new)
                wait_available(client, "c1", "old", generation=2)
                client.create("c1", config_map_work("young"))
                wait_available(client, "c1", "young", generation=1)

    # And back: what we wrote, the Go server reads, changes and deletes.
    with go_server(programs, database=database, folder=folders[2]) as go:
        with WorkClient(programs, go, source="s", log=tmp_path / "c3.log") as client:
            assert client.get("c1", "old")["metadata"]["generation"] == 2
            with Agent(programs, go, cluster="c1", log=tmp_path / "a3.log"):
                for name in ("old", "young"):
                    client.delete("c1", name)
                    wait_gone(client, "c1", name)


def checked(database: peer_postgres.Database) -> str:
    """Return what `maestro check server` says about the schema."""
    done = subprocess.run(
        [*PYTHON_CLI, "check", "server", "--db-dsn", database.dsn], capture_output=True, text=True, check=False
    )
    (line,) = [line for line in done.stdout.splitlines() if " database-migrations " in line]
    return line


@pytest.mark.parametrize("version", ["pinned", "newest"])
def test_schema_made_by_go_is_not_taken_for_an_incomplete_one(
    version: str, programs: Programs, database: peer_postgres.Database, tmp_path: Path
) -> None:
    go = programs.maestro if version == "pinned" else programs.newest
    migrate([str(go), "migration", *database_files(database, tmp_path)])
    assert "migrations are missing, the first is " in checked(database)
    migrated = subprocess.run(
        [*PYTHON_CLI, "migration", "--db-dsn", database.dsn], capture_output=True, text=True, check=True
    )
    assert migrated.stderr == ""
    assert checked(database).split() == ["ok", "database-migrations", "complete"]


def test_replicas_of_both_kinds_work_together(
    programs: Programs, database: peer_postgres.Database, tmp_path: Path, stack: ExitStack
) -> None:
    go, python = both(programs, database, tmp_path, stack)
    for name in ("on-go", "on-python"):
        rest(python, "POST", "/consumers", {"name": name})
    agents = {
        "on-go": stack.enter_context(Agent(programs, go, cluster="on-go", log=tmp_path / "ag.log")),
        "on-python": stack.enter_context(Agent(programs, python, cluster="on-python", log=tmp_path / "ap.log")),
    }
    clients = {
        "go": stack.enter_context(WorkClient(programs, go, source="via-go", log=tmp_path / "cg.log")),
        "python": stack.enter_context(WorkClient(programs, python, source="via-python", log=tmp_path / "cp.log")),
    }
    for client in clients.values():
        for consumer, agent in agents.items():
            watch = client.watch(consumer)
            created = client.create(consumer, config_map_work("mixed"))
            uid = created["metadata"]["uid"]
            agent.wait_event("received", type_ends="spec.create_request", resource=uid, version=1)
            client.wait_watched(
                watch,
                functools.partial(
                    lambda uid, line: line["object"]["metadata"]["uid"] == uid and bool(line["object"].get("status")),
                    uid,
                ),
                what=f"the status of {consumer} at {client.source}",
            )
            client.delete(consumer, "mixed")
            wait_gone(client, consumer, "mixed")


@pytest.mark.parametrize("connected_to", ["go", "python"])
def test_deletion_that_an_agent_lost_is_sent_again_through_either_server(
    programs: Programs, database: peer_postgres.Database, tmp_path: Path, stack: ExitStack, connected_to: str
) -> None:
    """Our delete recovery queues an event once; the server that the agent is connected to sends it."""
    servers = dict(zip(("go", "python"), both(programs, database, tmp_path, stack), strict=True))
    rest(servers["python"], "POST", "/consumers", {"name": "c1"})
    agent = stack.enter_context(Agent(programs, servers[connected_to], cluster="c1", log=tmp_path / "agent.log"))
    client = stack.enter_context(WorkClient(programs, servers["go"], source="s", log=tmp_path / "client.log"))
    created = client.create("c1", config_map_work("lost"))
    wait_available(client, "c1", "lost", generation=1)
    uid = created["metadata"]["uid"]
    # As if the delete request had been sent, and lost.
    lost = "UPDATE resources SET deleted_at = now() - interval '90 seconds' WHERE id = $1 RETURNING id"
    assert execute(database, lost, uid) == [uid]
    agent.wait_event("received", type_ends="spec.delete_request", resource=uid, version=1)
    wait_gone(client, "c1", "lost")
    assert execute(database, "SELECT id FROM events WHERE event_type = 'Delete' AND source_id = $1 OFFSET 1", uid) == []


def execute(database: peer_postgres.Database, statement: str, *params: object) -> list[object]:
    """Run one statement; return the first column of what it yields."""

    async def run() -> list[object]:
        connection = await asyncpg.connect(database.dsn)
        try:
            return [row[0] for row in await connection.fetch(statement, *params)]
        finally:
            await connection.close()

    return asyncio.run(run())
