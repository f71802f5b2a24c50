"""What a Go agent relies on its server for, beyond the scenario of the matrix."""

import asyncio
import itertools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.peers import peer_postgres
from tests.peers.matrix.combination import Combination
from tests.peers.matrix.e2e_works import config_map, work
from tests.peers.matrix.matrix_steps import is_reported, let_it_finish
from tests.peers.matrix.rig import Ground, Rig, running_rig

pytestmark = [pytest.mark.peers, pytest.mark.timeout(240)]
NUMBERS = itertools.count(1)


TIMEOUT_SECONDS = 4
SUBSCRIBED = '"subscribed to grpc server"'
UNHEALTHY = "stream timeout"
Open = Callable[..., Rig]


@pytest.fixture
def start(
    ground: Ground, postgres: peer_postgres.Cluster, namespace: str, tmp_path: Path, show: Callable[[Path], None]
) -> Iterator[Open]:
    """Start a Go agent and a Go client around our server."""
    with ExitStack() as stack:

        def opened(broker: str, **settings: Any) -> Rig:
            name = f"trust{next(NUMBERS)}"
            rig = Rig(
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
            return stack.enter_context(running_rig(rig))

        yield opened


@pytest.fixture
def heeding(start: Open) -> Rig:
    """An agent that takes a server without heartbeats for dead."""
    return start("grpc", agent_settings=f"serverHealthinessTimeout: {TIMEOUT_SECONDS}s\n")


def create(rig: Rig, name: str) -> None:
    rig.client.create(rig.consumer, work(name, config_map(rig, name)))
    rig.wait(lambda: is_reported(rig.work(name), generation=1), f"the status of {name}")


def test_what_the_server_does_not_know_leaves_the_cluster(start: Open) -> None:
    """As after a restore of the database to a time before the work; a Go server's word for it no agent understands."""
    rig = start("grpc")
    # One of four: half of the works, or more, would be held.
    for name in ("kept", "kept-too", "kept-as-well", "lost"):
        create(rig, name)
    let_it_finish(rig)
    forget(rig, "lost")
    assert rig.value("lost") == "1"
    rig.cut_off_the_agent()
    rig.wait(lambda: rig.value("lost") is None, "the object of the lost work to go")
    assert rig.value("kept") == "1"


def forget(rig: Rig, name: str) -> None:
    """Take a work out of the database as if it had never been there."""

    async def remove() -> None:
        connection = await asyncpg.connect(rig.database.dsn)
        try:
            await connection.execute("DELETE FROM resources WHERE payload->'metadata'->>'name' = $1", name)
        finally:
            await connection.close()

    asyncio.run(remove())


def test_heartbeats_keep_an_agent_and_their_end_sends_it_away(heeding: Rig) -> None:
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
