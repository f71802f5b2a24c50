"""What a Go agent relies on its server for, beyond the scenario of the matrix."""

import asyncio
import itertools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import asyncpg
import peer_postgres
import pytest
from combination import Combination
from e2e_works import config_map, work
from matrix_steps import is_reported, let_it_finish
from stage import Ground, Stage, staged

pytestmark = [pytest.mark.peers, pytest.mark.timeout(240)]
NUMBERS = itertools.count(1)


TIMEOUT_SECONDS = 4
SUBSCRIBED = '"subscribed to grpc server"'
UNHEALTHY = "stream timeout"
Open = Callable[..., Stage]


@pytest.fixture
def start(
    ground: Ground, postgres: peer_postgres.Cluster, namespace: str, tmp_path: Path, show: Callable[[Path], None]
) -> Iterator[Open]:
    """Start a Go agent and a Go client around our server."""
    with ExitStack() as stack:

        def opened(broker: str, **settings: str) -> Stage:
            name = f"trust{next(NUMBERS)}"
            stage = Stage(
                ground=ground,
                players=Combination(client="go", server="python", agent="go", broker=broker),
                database=postgres.create(name),
                consumer=name,
                namespace=namespace,
                folder=tmp_path,
                api=stack.enter_context(ground.cluster.client()),
                on_log=show,
                **settings,
            )
            return stack.enter_context(staged(stage))

        yield opened


@pytest.fixture
def heeding(start: Open) -> Stage:
    """An agent that takes a server without heartbeats for dead."""
    return start("grpc", agent_settings=f"serverHealthinessTimeout: {TIMEOUT_SECONDS}s\n")


def create(stage: Stage, name: str) -> None:
    stage.client.create(stage.consumer, work(name, config_map(stage, name)))
    stage.wait(lambda: is_reported(stage.work(name), generation=1), f"the status of {name}")


def test_what_the_server_does_not_know_leaves_the_cluster(start: Open) -> None:
    """As after a restore of the database to a time before the work; a Go server's word for it no agent understands."""
    stage = start("grpc")
    for name in ("kept", "lost"):
        create(stage, name)
    let_it_finish(stage)
    forget(stage, "lost")
    assert stage.value("lost") == "1"
    stage.cut_off_the_agent()
    stage.wait(lambda: stage.value("lost") is None, "the object of the lost work to go")
    assert stage.value("kept") == "1"


def forget(stage: Stage, name: str) -> None:
    """Take a work out of the database as if it had never been there."""

    async def remove() -> None:
        connection = await asyncpg.connect(stage.database.dsn)
        try:
            await connection.execute("DELETE FROM resources WHERE payload->'metadata'->>'name' = $1", name)
        finally:
            await connection.close()

    asyncio.run(remove())


def test_heartbeats_keep_an_agent_and_their_end_sends_it_away(heeding: Stage) -> None:
    assert heeding.agent is not None
    assert heeding.server is not None
    log = heeding.agent.log

    def count(phrase: str) -> int:
        return log.read_text().count(phrase)

    heeding.wait(
        lambda: count('"heartbeat received"') > 2 * TIMEOUT_SECONDS, "more heartbeats than the agent waits for"
    )
    assert count(SUBSCRIBED) == 1, "the agent has left a server that is well"
    os.kill(heeding.server.pid, signal.SIGSTOP)
    try:
        heeding.wait(lambda: count(UNHEALTHY) > 0, "the agent to miss the heartbeats")
    finally:
        os.kill(heeding.server.pid, signal.SIGCONT)
    heeding.wait(lambda: count(SUBSCRIBED) > 1, "the agent to come back")
    create(heeding, "later")
